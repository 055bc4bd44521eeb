//! `svc deploy`: sends a folder, and deploys it.

mod pack;

use crate::{
    Context, args,
    client::Client,
    failure::Failure,
    printer::{Fields, moment, word},
};
use contract::{
    AppId, DeploymentId,
    deployments::{
        Deployment, DeploymentSource, DeploymentState, FolderSource, GetDeployment,
        GetDeploymentLogs, StepName, TriggerDeployment,
    },
    endpoint::sources::SourceUrlRequest,
};
use indicatif::HumanBytes;
use pack::{Archive, pack};
use reqwest::Method;
use std::{collections::BTreeMap, path::PathBuf, thread, time::Duration};
use svc_client::Patience;

/// How long one attempt to send an archive may take: 64 MiB at 0.6 Mbit/s.
const SEND_LIMIT: Duration = Duration::from_secs(15 * 60);
/// The pause before a log that has no new lines is read again. The lowest tier has 60 requests a
/// minute.
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub fn deploy(cx: &Context<'_>, args: args::DeployArgs) -> Result<(), Failure> {
    let app_id = cx.settings.app(args.app)?;
    let root = args.folder.unwrap_or_else(|| PathBuf::from("."));
    let archive = pack(&root)?;
    let client = cx.client()?.with_patience(Patience::LASTING);
    let size = HumanBytes(archive.bytes.len() as u64);
    let files = if archive.files == 1 { "file" } else { "files" };
    match send(&client, app_id, &archive)? {
        true => cx.printer.note(format_args!("sent {} {files}, packed {size}", archive.files)),
        false => cx.printer.note("the service has these files already"),
    }
    let folder = FolderSource { sha256: archive.sha256 };
    let wrong = |e: String| Failure::told(e, "give fewer of them");
    let source = DeploymentSource {
        folder: Some(folder),
        build_args: args
            .build_arg
            .into_iter()
            .collect::<BTreeMap<_, _>>()
            .try_into()
            .map_err(wrong)?,
        build_secrets: args.build_secret.try_into().map_err(wrong)?,
        ..DeploymentSource::default()
    };
    let trigger = TriggerDeployment { app_id, target: args.target, source, env: None };
    let deployment = client.call(&trigger).map_err(|failure| match failure.refused_with(101) {
        Some(_) => failure.advise(
            "create a backend for this app first: `svc call svc_createBackendInstance`, with its \
             projectId and appId",
        ),
        None => failure,
    })?;
    let id = deployment.id;
    if args.detach {
        cx.printer.reply(&deployment, fields)?;
        cx.printer.note(format_args!("next: svc call getDeploymentLogs -p deploymentId={id}"));
        return Ok(());
    }
    cx.printer.note(format_args!("deployment {id}; it goes on if this command is stopped"));
    let deployment = follow(cx, &client, id)?;
    cx.printer.reply(&deployment, fields)?;
    outcome(&deployment)
}

/// Sends an archive. Returns `false` if the service has it already.
fn send(client: &Client, app: AppId, archive: &Archive) -> Result<bool, Failure> {
    let request =
        SourceUrlRequest { sha256: archive.sha256.clone(), size: archive.bytes.len() as u64 };
    let Some(address) = client.open_source(app, &request)?.upload_url else { return Ok(false) };
    let mut failures = 0;
    loop {
        let request = client.signed(Method::PUT, &address)?;
        let request = request.timeout(SEND_LIMIT).header("Content-Type", "application/gzip");
        let attempt = client.send(request.body(archive.bytes.clone()));
        let (failure, told) = match attempt {
            Ok(answer) if (200..300).contains(&answer.status) => return Ok(true),
            Ok(answer) => (client.refusal(&answer), answer.retry_after()),
            Err(error) => (client.unanswered(&error), None),
        };
        failures += 1;
        match client.patience().pause(failures, told).filter(|_| failure.is_passing()) {
            Some(pause) => thread::sleep(pause),
            None => return Err(failure),
        }
    }
}

/// Prints the log until the deployment serves or has ended. Does not wait for the container before
/// it, which finishes its requests.
fn follow(
    cx: &Context<'_>,
    client: &Client,
    deployment_id: DeploymentId,
) -> Result<Deployment, Failure> {
    let mut cursor = None;
    let mut is_switched = false;
    loop {
        let page = client.call(&GetDeploymentLogs { deployment_id, cursor })?;
        for line in &page.lines {
            cx.printer.note(&line.text);
            is_switched |= line.step == StepName::Switch;
        }
        if is_switched || page.done {
            let deployment = client.call(&GetDeployment { deployment_id })?;
            if page.done || deployment.finished_at.is_some() {
                return Ok(deployment);
            }
        }
        if page.lines.is_empty() {
            thread::sleep(LOOK_EVERY);
        }
        cursor = page.next_cursor;
    }
}

/// Fails if the deployment did not serve.
fn outcome(deployment: &Deployment) -> Result<(), Failure> {
    use DeploymentState::{Live, RolledBack, Superseded};
    if [Live, Superseded, RolledBack].contains(&deployment.state) {
        return Ok(());
    }
    let why = deployment.error.as_deref().unwrap_or("somebody ended it");
    Err(Failure::told(
        format!("the deployment is {}: {why}", word(&deployment.state)),
        "the version before serves on; the log is above",
    ))
}

fn fields(deployment: &Deployment) -> Fields {
    Fields::new()
        .with("id", deployment.id)
        .with("state", word(&deployment.state))
        .with("target", word(&deployment.target))
        .with_some("image", deployment.image_ref.as_ref())
        .with_some("error", deployment.error.as_ref())
        .with("created", moment(deployment.created_at))
        .with_some("finished", deployment.finished_at.map(moment))
}
