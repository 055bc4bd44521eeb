//! The program `svc`. `svc serve` runs the server, `svc admin` works on its data, and the other
//! commands are clients of a server. Without the feature `server`, only the clients are there.

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

#[cfg(feature = "server")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Build, release and run mobile apps and their backends, on your own machine.
#[derive(Parser)]
#[command(name = "svc", version, arg_required_else_help = true)]
struct Svc {
    #[command(flatten)]
    global: cli::Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server.
    #[cfg(feature = "server")]
    Serve(Box<svc::config::ServeArgs>),
    /// Back up, restore and check a server's data, and manage its administrators.
    #[cfg(feature = "server")]
    #[command(subcommand)]
    Admin(svc::admin::AdminCommand),
    /// Print a completion script for a shell.
    Completions {
        /// The shell to complete for.
        shell: cli::Shell,
    },
    /// Write the manual pages of all commands into a folder.
    Man {
        /// The folder, which is made if it is missing.
        folder: std::path::PathBuf,
    },
    #[command(flatten)]
    Client(cli::Command),
}

/// The commands that are no clients of a server. They ignore the options of clients.
const NO_CLIENTS: [&str; 4] = ["serve", "admin", "completions", "man"];

/// The command line, with the help of each command limited to the options that it reads.
fn program() -> clap::Command {
    let program = Svc::command();
    NO_CLIENTS.iter().fold(program, |program, name| match program.find_subcommand(name) {
        Some(_) => program.mut_subcommand(name, without_client_options),
        None => program,
    })
}

/// Hides the options of clients, by options of the command itself in their place.
fn without_client_options(command: clap::Command) -> clap::Command {
    let hidden = cli::Global::augment_args(clap::Command::new("options"));
    command.args(hidden.get_arguments().map(|option| option.clone().hide(true)))
}

fn main() -> ExitCode {
    let matches: ArgMatches = program().get_matches();
    let Svc { global, command } = Svc::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    match command {
        Command::Client(command) => cli::run(command, &global),
        Command::Completions { shell } => cli::completions(shell, &mut program()),
        Command::Man { folder } => cli::manual(&folder, program()),
        #[cfg(feature = "server")]
        Command::Serve(args) => {
            svc::process::keep_files_private();
            ended(svc::serve::run(&args))
        }
        #[cfg(feature = "server")]
        Command::Admin(command) => {
            svc::process::keep_files_private();
            ended(svc::admin::run(command))
        }
    }
}

#[cfg(feature = "server")]
fn ended(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use super::*;
    use std::path::Path;

    /// `UPDATE=1` writes the pages again; review the difference.
    #[test]
    fn the_pages_of_commands_and_settings_are_what_the_program_takes() {
        let mut program = program();
        program.build();
        let serve = program.find_subcommand("serve").unwrap();
        for (file, made) in [
            ("commands.md", cli::reference::commands(&program, &[("svc serve", "settings.md")])),
            ("settings.md", cli::reference::settings(serve)),
        ] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(file);
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(&path, &made).unwrap();
            }
            let kept = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(kept == made, "docs/{file} is old; run `make openapi` and read the difference");
        }
    }
}
