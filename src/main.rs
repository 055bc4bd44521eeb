//! The program `svc`. `svc serve` runs the server, `svc admin` works on its data, and the other
//! commands are clients of a server.

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

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
    Serve(Box<svc::config::ServeArgs>),
    /// Back up, restore and check a server's data, and manage its administrators.
    #[command(subcommand)]
    Admin(svc::admin::AdminCommand),
    /// Print a completion script for a shell.
    Completions {
        /// The shell to complete for.
        shell: cli::Shell,
    },
    #[command(flatten)]
    Client(cli::Command),
}

fn main() -> ExitCode {
    let Svc { global, command } = Svc::parse();
    let done = match command {
        Command::Client(command) => return cli::run(command, &global),
        Command::Completions { shell } => return cli::completions(shell, &mut Svc::command()),
        Command::Serve(args) => {
            svc::process::keep_files_private();
            svc::serve::run(&args)
        }
        Command::Admin(command) => {
            svc::process::keep_files_private();
            svc::admin::run(command)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}
