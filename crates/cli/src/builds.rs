//! `svc build` and `svc builds`.

use crate::{
    Context,
    args::{self, BuildsCommand},
    client::Client,
    failure::Failure,
    lists,
    printer::{Fields, Table, cell, moment, word},
};
use contract::{
    BuildId, Limit,
    builds::{
        Build, BuildState, BuildTrigger, CancelBuild, GetBuild, GetBuildLogs, GetBuilds,
        TriggerBuild,
    },
};
use std::{thread, time::Duration};
use svc_client::Patience;

/// The pause before a log that has no new lines is read again. The lowest tier has 60 requests a
/// minute.
const LOOK_EVERY: Duration = Duration::from_secs(3);

pub fn build(cx: &Context<'_>, command: args::BuildCommand) -> Result<(), Failure> {
    match command {
        args::BuildCommand::Trigger { app, platform, profile, git_ref, label, follow } => {
            let client = cx.client()?;
            let trigger = TriggerBuild {
                app_id: cx.settings.app(app)?,
                platform,
                profile: Some(profile),
                git_ref,
                labels: Failure::list("--label", label)?,
                trigger: BuildTrigger::Cli,
            };
            let build =
                client.call(&trigger).map_err(|failure| match failure.refused_with(101) {
                    Some(_) => failure.advise("connect its repository with `svc repo connect URL`"),
                    None => failure,
                })?;
            for warning in &build.warnings {
                cx.printer.note(format_args!("warning: {warning}"));
            }
            if !follow {
                cx.printer.reply(&build, fields)?;
                cx.printer.note(format_args!("next: svc builds logs -f {}", build.id));
                return Ok(());
            }
            let line = |line: &str| {
                cx.printer.note(line);
                Ok(())
            };
            read_log(&client, build.id, true, line)?;
            let build = cx.client()?.call(&GetBuild { build_id: build.id })?;
            cx.printer.reply(&build, fields)?;
            outcome(cx, &build)
        }
        args::BuildCommand::Show { build } => {
            let build = cx.client()?.call(&GetBuild { build_id: build })?;
            cx.printer.reply(&build, fields)
        }
        args::BuildCommand::Cancel { build } => {
            let build = cx.client()?.call(&CancelBuild { build_id: build })?;
            cx.printer.reply(&build, fields)
        }
    }
}

pub fn builds(cx: &Context<'_>, args: args::BuildsArgs) -> Result<(), Failure> {
    match args.command {
        None => list(cx, &args.listing),
        Some(BuildsCommand::Logs { build, follow }) => {
            let client = cx.client()?;
            read_log(&client, build, follow, |line| cx.printer.text(line))?;
            match follow {
                true => outcome(cx, &client.call(&GetBuild { build_id: build })?),
                false => Ok(()),
            }
        }
    }
}

fn list(cx: &Context<'_>, args: &args::Listing) -> Result<(), Failure> {
    let app_id = cx.settings.app(args.app)?;
    let builds = cx.client()?.list(args.all, |cursor| GetBuilds {
        app_id,
        platform: args.platform,
        state: None,
        limit: Limit::default(),
        cursor,
    })?;
    lists::print(cx, &builds, |builds| {
        let headings = ["ID", "PLATFORM", "PROFILE", "STATE", "COMMIT", "FROM", "CREATED"];
        builds.iter().fold(Table::new(headings), |table, build| {
            let commit = build.commit.as_ref().map(|commit| commit.chars().take(10).collect());
            table.row([
                build.id.to_string(),
                word(&build.platform),
                build.profile.to_string(),
                word(&build.state),
                cell::<String>(commit),
                word(&build.execution_path),
                moment(build.created_at),
            ])
        })
    })
}

/// Reads a log to its end; with `follow`, to the end of the build. Once the service has answered, a
/// pause of the service does not end the log.
fn read_log(
    client: &Client,
    build_id: BuildId,
    follow: bool,
    mut print: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let lasting = client.clone().with_patience(Patience::LASTING);
    let mut client = client;
    let mut cursor = None;
    loop {
        let page = client.call(&GetBuildLogs { build_id, cursor })?;
        client = &lasting;
        page.lines.iter().try_for_each(|line| print(&line.text))?;
        if page.done || page.lines.is_empty() && !follow {
            return Ok(());
        }
        if page.lines.is_empty() {
            thread::sleep(LOOK_EVERY);
        }
        cursor = page.next_cursor;
    }
}

/// Fails if a build did not succeed.
fn outcome(cx: &Context<'_>, build: &Build) -> Result<(), Failure> {
    let Some(artifact) = build.artifact_id.filter(|_| build.state == BuildState::Succeeded) else {
        let why = build.error.clone().unwrap_or_default();
        return Err(Failure::told(
            format!("the build is {}: {why}", word(&build.state)),
            format!("read its log with `svc builds logs {}`", build.id),
        ));
    };
    cx.printer.note(format_args!("next: svc release create --artifact {artifact}"));
    Ok(())
}

fn fields(build: &Build) -> Fields {
    Fields::new()
        .with("id", build.id)
        .with("state", word(&build.state))
        .with("platform", word(&build.platform))
        .with("profile", &build.profile)
        .with_some("ref", build.git_ref.as_ref())
        .with_some("commit", build.commit.as_ref())
        .with_some("runner", build.runner.as_ref())
        .with_some("artifact", build.artifact_id)
        .with_some("error", build.error.as_ref())
        .with("created", moment(build.created_at))
        .with_some("finished", build.finished_at.map(moment))
}
