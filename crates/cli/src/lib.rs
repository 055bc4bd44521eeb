//! The client side of the command line: every command that talks to a running service.
//!
//! What can be said is declared in [`args`]; each command is done in a module of its own. Only
//! `client` speaks HTTP and only `printer` prints. A command that cannot be done is a
//! `Failure`, which knows its exit code and what to do next.

#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a test fails by panicking"
    )
)]

pub mod args;

mod binary;
mod call;
mod client;
mod compatibility;
mod completions;
mod doctor;
mod failure;
mod lists;
mod login;
mod login_file;
mod parameters;
mod printer;
mod provenance;
mod publish;
mod release;
mod repository;
mod retry;
mod settings;
#[cfg(test)]
mod testing;
mod token;
mod upload;

pub use args::{Command, Global, Shell};
pub use completions::completions;

use client::Client;
use failure::Failure;
use login_file::LoginFile;
use printer::Printer;
use repository::Repository;
use settings::{Settings, Sources};
use std::process::ExitCode;

/// Does a command and gives the exit code: 0 done, 1 the service said no or a check failed,
/// 2 wrong usage, 3 the service cannot be reached.
///
/// It blocks; call it from a thread that runs no async runtime.
pub fn run(command: Command, global: &Global) -> ExitCode {
    let printer = Printer::new(global.json, global.quiet);
    match execute(command, global, &printer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            printer.failure(&failure);
            failure.exit_code()
        }
    }
}

/// What a command works with.
struct Context<'a> {
    printer: &'a Printer,
    settings: Settings,
    repository: Repository,
    login_file: LoginFile,
}

impl Context<'_> {
    fn client(&self) -> Result<Client, Failure> {
        Client::new(&self.settings)
    }
}

fn execute(command: Command, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let repository = Repository::find()?;
    let config = match repository.config() {
        // The doctor says what is wrong with the file, so it has to go on without it.
        Err(_) if matches!(command, Command::Doctor) => None,
        config => config?,
    };
    let login_file = LoginFile::locate(&environment)?;
    let login = login_file.read()?;
    let sources = Sources {
        flags: global,
        environment: &environment,
        config: config.as_ref(),
        login: login.as_ref(),
    };
    let settings = Settings::resolve(&sources)?;
    let cx = Context { printer, settings, repository, login_file };
    match command {
        Command::Login(args) => login::login(&cx, args),
        Command::Logout => login::logout(&cx, login),
        Command::Whoami => login::whoami(&cx),
        Command::Call(args) => call::call(&cx, args),
        Command::Projects => lists::projects(&cx),
        Command::Apps(args) => lists::apps(&cx, args),
        Command::Artifacts(args) => lists::artifacts(&cx, args),
        Command::Releases(args) => lists::releases(&cx, args),
        Command::Publish(args) => publish::publish(&cx, config.as_ref(), args, &environment),
        Command::Release(command) => release::release(&cx, command),
        Command::Token(command) => token::token(&cx, command),
        Command::Doctor => doctor::doctor(&cx),
    }
}
