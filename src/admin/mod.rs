//! `svc admin`: a server's data and its administrators, without the server.

mod check;
mod dump;
mod superadmin;

use clap::Subcommand;
use contract::Email;
use std::path::PathBuf;

/// What an administrator does on the server's machine.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Write the store into one file. The server must not run.
    Backup {
        /// The file, which must not be there yet.
        file: PathBuf,
        /// The server's data directory.
        #[arg(long, env = "SVC_DATA", default_value = "data/run")]
        data: PathBuf,
    },
    /// Read a backup into a new data directory.
    Restore {
        /// The file that a backup wrote.
        file: PathBuf,
        /// The data directory to make.
        #[arg(long, env = "SVC_DATA", default_value = "data/run")]
        data: PathBuf,
    },
    /// Give an account the run of the platform, or take it back. The server must not run.
    Superadmin {
        /// The e-mail of the account.
        email: Email,
        /// Take it back.
        #[arg(long)]
        revoke: bool,
        /// The server's data directory.
        #[arg(long, env = "SVC_DATA", default_value = "data/run")]
        data: PathBuf,
    },
    /// Read the whole store and say what does not fit together. The server must not run.
    Check {
        /// The server's data directory.
        #[arg(long, env = "SVC_DATA", default_value = "data/run")]
        data: PathBuf,
    },
}

/// Does it.
pub fn run(command: AdminCommand) -> Result<(), String> {
    match command {
        AdminCommand::Backup { file, data } => dump::backup(&file, &data),
        AdminCommand::Restore { file, data } => dump::restore(&file, &data),
        AdminCommand::Superadmin { email, revoke, data } => superadmin::set(&email, !revoke, &data),
        AdminCommand::Check { data } => check::check(&data),
    }
}

#[allow(clippy::print_stdout, reason = "it is what the command answers")]
fn note(line: &str) {
    println!("{line}");
}
