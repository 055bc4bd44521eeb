//! `svc repo`: the repository of an app, as the service sees it.

use crate::{
    Context,
    args::RepoCommand,
    client::Client,
    failure::Failure,
    findings,
    printer::{Fields, moment},
};
use contract::repositories::{
    CheckRepository, ConnectRepository, DisconnectRepository, GetRepository, Repository, Severity,
};
use std::{
    io::{self, Read},
    thread,
    time::Duration,
};

/// How long a command waits for a check, and how often it looks.
const CHECK_WITHIN: Duration = Duration::from_secs(180);
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub fn repo(cx: &Context<'_>, command: RepoCommand) -> Result<(), Failure> {
    let client = cx.client()?;
    match command {
        RepoCommand::Connect { url, app, branch, token_stdin, installation, host_key } => {
            let app_id = cx.settings.app(app)?;
            let token = token_stdin.then(token).transpose()?;
            let installation_id = installation;
            let wanted =
                ConnectRepository { app_id, url, branch, token, installation_id, host_key };
            let connected = client.call(&wanted)?;
            examined(cx, checked(&client, connected)?)
        }
        RepoCommand::Check { app } => {
            let app_id = cx.settings.app(app)?;
            let begun = client.call(&CheckRepository { app_id })?;
            examined(cx, checked(&client, begun)?)
        }
        RepoCommand::Disconnect { app } => {
            let app_id = cx.settings.app(app)?;
            let done = client.call(&DisconnectRepository { app_id })?;
            cx.printer
                .reply(&done, |done| format!("disconnected the repository of {}", done.deleted))
        }
    }
}

/// Reads a token from standard input, so that it is neither in the history of the shell nor in the
/// list of processes.
fn token() -> Result<contract::text::AccessToken, Failure> {
    let mut text = String::new();
    let read = io::stdin().read_to_string(&mut text).map_err(|e| e.to_string());
    let token = read.and_then(|_| text.trim().parse().map_err(|problem: String| problem));
    token.map_err(|problem| {
        Failure::usage(format!("the token on standard input {problem}"), "pipe the token into it")
    })
}

/// Waits until the check is done, if the service did not wait so long.
fn checked(client: &Client, mut repository: Repository) -> Result<Repository, Failure> {
    for _ in 0..CHECK_WITHIN.as_secs() / LOOK_EVERY.as_secs() {
        if !repository.checking {
            return Ok(repository);
        }
        thread::sleep(LOOK_EVERY);
        repository = client.call(&GetRepository { app_id: repository.app_id })?;
    }
    Err(Failure::told("the check still runs", "run `svc repo check` again later"))
}

/// Prints a repository. Fails if it could not be read, or if a build of it would fail.
fn examined(cx: &Context<'_>, repository: Repository) -> Result<(), Failure> {
    cx.printer.reply(&repository, show)?;
    if let Some(why) = &repository.error {
        let advice = match repository.deploy_key {
            Some(_) => {
                "if the host does not know the deploy key above, add it there with permission to \
                 read only; then run `svc repo check`"
            }
            None => "correct it with `svc repo connect`, or try `svc repo check` again later",
        };
        return Err(Failure::told(format!("the repository could not be read: {why}"), advice));
    }
    match repository.findings.iter().any(|finding| finding.severity == Severity::Error) {
        false => Ok(()),
        true => Err(Failure::told(
            "the repository has errors",
            "correct what the lines with error say, push it, and run `svc repo check`",
        )),
    }
}

fn show(repository: &Repository) -> String {
    let fields = Fields::new()
        .with("url", repository.url.as_str())
        .with_some("deploy key", repository.deploy_key.as_ref())
        .with_some("host key", repository.host_key.as_ref())
        .with_some("branch", repository.branch.as_ref())
        .with_some("commit", repository.commit.as_ref())
        .with_some("checked", repository.checked_at.map(moment))
        .with_some("error", repository.error.as_ref());
    let found = findings::table(repository.mode, &repository.detected, &repository.findings);
    format!("{fields}{found}")
}
