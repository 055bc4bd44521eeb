//! The client commands: every command that talks to a running service.
//!
//! [`args`] declares the command line, and each command has its own module. Only `client` speaks
//! HTTP, and only `printer` prints. A command fails with a `Failure`, which has an exit code and a
//! hint.

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
pub mod reference;

mod binary;
mod builds;
mod call;
mod client;
mod completions;
mod create;
mod credential;
mod deploy;
mod doctor;
mod engine;
mod failure;
mod findings;
mod init;
mod input;
mod lists;
mod login;
mod login_file;
mod manual;
mod open;
mod parameters;
mod printer;
mod provenance;
mod publish;
mod publisher;
mod release;
mod repo;
mod runner;
mod settings;
#[cfg(test)]
mod testing;
mod token;
mod tools;
mod top;
mod upload;
mod values;
mod webhooks;
mod working_copy;

pub use args::{Command, Global, Shell};
pub use completions::completions;
pub use manual::manual;

use client::Client;
use failure::Failure;
use login_file::LoginFile;
use printer::{Form, Printer};
use settings::{ClientSettings, Sources};
use std::process::ExitCode;
use working_copy::WorkingCopy;

/// Runs a command and returns the exit code: 0 success, 1 the service refused, a check failed or
/// this machine failed, 2 wrong usage, 3 the service cannot be reached.
///
/// Blocks, so call it from a thread without an async runtime.
pub fn run(command: Command, global: &Global) -> ExitCode {
    let form = match &global.output {
        _ if global.json => Form::Json,
        Some(field) => Form::Field(field.clone()),
        None => Form::Text,
    };
    let printer = Printer::new(form, global.quiet);
    match execute(command, global, &printer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            printer.failure(&failure);
            failure.exit_code()
        }
    }
}

struct Context<'a> {
    printer: &'a Printer,
    settings: ClientSettings,
    working_copy: WorkingCopy,
    login_file: LoginFile,
}

impl Context<'_> {
    fn client(&self) -> Result<Client, Failure> {
        Client::new(&self.settings)
    }
}

fn execute(command: Command, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let working_copy = WorkingCopy::find()?;
    let config = match working_copy.config() {
        // The doctor reports what is wrong with the file, so it continues without it.
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
    let settings = ClientSettings::resolve(&sources)?;
    let cx = Context { printer, settings, working_copy, login_file };
    match command {
        Command::Register(args) => login::register(&cx, args),
        Command::Login(args) => login::login(&cx, args),
        Command::Logout => login::logout(&cx, login),
        Command::Whoami => login::whoami(&cx),
        Command::Call(args) => call::call(&cx, args, &environment),
        Command::Project(command) => create::project(&cx, command),
        Command::App(command) => create::app(&cx, command),
        Command::Projects => lists::projects(&cx),
        Command::Apps(args) => lists::apps(&cx, args),
        Command::Artifacts(args) => lists::artifacts(&cx, args),
        Command::Releases(args) => lists::releases(&cx, args),
        Command::Deploy(args) => deploy::deploy(&cx, args),
        Command::Publish(args) => publish::publish(&cx, config.as_ref(), args, &environment),
        Command::Release(command) => release::release(&cx, command),
        Command::Build(command) => builds::build(&cx, command),
        Command::Builds(args) => builds::builds(&cx, args),
        Command::Runner(args) => runner::runner(&cx, args, global.token.is_some()),
        Command::Engine(command) => engine::engine(&cx, command),
        Command::Token(command) => token::token(&cx, command),
        Command::Credential(command) => credential::credential(&cx, command),
        Command::Repo(command) => repo::repo(&cx, command),
        Command::Open(args) => open::open(&cx, args),
        Command::Publisher(command) => publisher::publisher(&cx, command),
        Command::Webhook(command) => webhooks::webhook(&cx, command),
        Command::Top(args) => top::top(&cx, &args),
        Command::Init(args) => init::init(&cx, &args),
        Command::Doctor => doctor::doctor(&cx),
    }
}
