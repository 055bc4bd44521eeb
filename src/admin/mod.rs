//! `svc admin`: commands for a server's data and its administrators. They open the data directory
//! themselves.

mod check;
mod dump;
mod rekey;
mod superadmin;

use crate::secrets;
use clap::Subcommand;
use contract::Email;
use std::path::PathBuf;

/// Commands for the administrator of the machine.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Write the store into one file. The server must not run.
    Backup {
        /// The file to write. It must not exist.
        file: PathBuf,
        /// The server's data directory.
        #[arg(long, env = "SVC_DATA", default_value = "data/run")]
        data: PathBuf,
    },
    /// Read a backup into a new data directory.
    Restore {
        /// The file that `svc admin backup` wrote.
        file: PathBuf,
        /// The new data directory.
        #[arg(long, env = "SVC_DATA", default_value = "data/run")]
        data: PathBuf,
    },
    /// Make an account a superadmin, or revoke that. The server must not run.
    Superadmin {
        /// The account's e-mail address.
        email: Email,
        /// Revoke instead of grant.
        #[arg(long)]
        revoke: bool,
        /// The server's data directory.
        #[arg(long, env = "SVC_DATA", default_value = "data/run")]
        data: PathBuf,
    },
    /// Make new keys, by default a new encryption key for the secrets in the store. The server must not
    /// run.
    Rekey {
        /// Make a new encryption key, and encrypt the secrets in the store with it.
        #[arg(long)]
        encryption_key: bool,
        /// Make a new signing key. Signed addresses and the secrets of repositories' webhooks end.
        #[arg(long)]
        signing_key: bool,
        /// Make a new master key.
        #[arg(long)]
        master_key: bool,
        /// The server's data directory.
        #[arg(long, env = "SVC_DATA", default_value = "data/run")]
        data: PathBuf,
    },
    /// Print the application id, which clients send with every call. It is not a secret.
    ApplicationId {
        /// The server's data directory.
        #[arg(long, env = "SVC_DATA", default_value = "data/run")]
        data: PathBuf,
    },
    /// Read the whole store and report inconsistencies. The server must not run.
    Check {
        /// The server's data directory.
        #[arg(long, env = "SVC_DATA", default_value = "data/run")]
        data: PathBuf,
    },
}

pub fn run(command: AdminCommand) -> Result<(), String> {
    match command {
        AdminCommand::Backup { file, data } => dump::backup(&file, &data),
        AdminCommand::Restore { file, data } => dump::restore(&file, &data),
        AdminCommand::Superadmin { email, revoke, data } => superadmin::set(&email, !revoke, &data),
        AdminCommand::ApplicationId { data } => {
            let id = secrets::application_id(&data).map_err(|e| {
                format!(
                    "{}: {e}; has the server been started?",
                    secrets::keys_path(&data).display()
                )
            })?;
            note(&id);
            Ok(())
        }
        AdminCommand::Rekey { encryption_key, signing_key, master_key, data } => {
            let named = encryption_key || signing_key || master_key;
            let encryption_key = encryption_key || !named;
            rekey::rekey(&data, secrets::Renewal { encryption_key, signing_key, master_key })
        }
        AdminCommand::Check { data } => check::check(&data),
    }
}

#[allow(clippy::print_stdout, reason = "it is what the command answers")]
fn note(line: &str) {
    println!("{line}");
}
