//! `svc admin`: commands for a server's data and its administrators. They open the data directory
//! themselves.

mod check;
mod dump;
mod engine;
mod rekey;
mod superadmin;

use crate::{config::storage::DatabaseArgs, database, secrets};
use clap::{Args, Subcommand};
use contract::Email;
use std::path::PathBuf;
use store::Store;

/// Where a server keeps what these commands work on.
#[derive(Debug, Args)]
pub struct Place {
    /// The server's data directory.
    #[arg(long, env = "SVC_DATA", default_value = "data/run")]
    data: PathBuf,
    #[command(flatten)]
    database: DatabaseArgs,
}

impl Place {
    /// Opens the store that is there. Fails while a server uses it.
    fn open(&self) -> Result<Store, String> {
        database::open_existing(&self.data, &self.database)
    }
}

/// Commands for the administrator of the machine.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Write the store into one file. The server must not run.
    Backup {
        /// The file to write. It must not exist.
        file: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// Read a backup into a new data directory, or into an empty database.
    Restore {
        /// The file that `svc admin backup` wrote.
        file: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// Make an account a superadmin, or revoke that. The server must not run.
    Superadmin {
        /// The account's e-mail address.
        email: Email,
        /// Revoke instead of grant.
        #[arg(long)]
        revoke: bool,
        #[command(flatten)]
        place: Place,
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
        #[command(flatten)]
        place: Place,
    },
    /// Forget the container engine that nodes share, because it was replaced. No node may run.
    ForgetEngine {
        #[command(flatten)]
        place: Place,
    },
    /// Print the application id, which clients send with every call. It is not a secret.
    ApplicationId {
        /// The server's data directory.
        #[arg(long, env = "SVC_DATA", default_value = "data/run")]
        data: PathBuf,
    },
    /// Read the whole store and report inconsistencies. The server must not run.
    Check {
        #[command(flatten)]
        place: Place,
    },
}

pub fn run(command: AdminCommand) -> Result<(), String> {
    match command {
        AdminCommand::Backup { file, place } => dump::backup(&file, &place),
        AdminCommand::Restore { file, place } => dump::restore(&file, &place),
        AdminCommand::Superadmin { email, revoke, place } => {
            superadmin::set(&email, !revoke, &place)
        }
        AdminCommand::ForgetEngine { place } => engine::forget(&place),
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
        AdminCommand::Rekey { encryption_key, signing_key, master_key, place } => {
            let named = encryption_key || signing_key || master_key;
            let encryption_key = encryption_key || !named;
            rekey::rekey(&place, secrets::Renewal { encryption_key, signing_key, master_key })
        }
        AdminCommand::Check { place } => check::check(&place),
    }
}

#[allow(clippy::print_stdout, reason = "it is what the command answers")]
fn note(line: &str) {
    println!("{line}");
}
