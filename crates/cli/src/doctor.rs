//! `svc doctor`: checks the repository, the service and the sign-in.

use crate::{
    Context,
    client::Client,
    compatibility::{self, Check, Listing, Verdict},
    failure::Failure,
    printer::{Table, word},
};
use contract::{AppId, artifacts::GetArtifacts, endpoint::ReadyState, page::Limit};
use serde_json::json;

/// Prints a line for each check. A certain error fails; a missing or unknown part is a warning.
pub fn doctor(cx: &Context<'_>) -> Result<(), Failure> {
    let mut checks = compatibility::checks(&Listing::read(&cx.repository));
    service_checks(cx, &mut checks)?;
    cx.printer.reply(&checks, |checks| {
        let [first, rest @ ..] = checks.as_slice() else { return String::new() };
        rest.iter().fold(table(first), |table, check| table.row(line(check))).to_string()
    })?;
    match checks.iter().filter(|check| check.verdict == Verdict::Fail).count() {
        0 => Ok(()),
        1 => Err(Failure::told("one check failed", "mend the line that starts with fail")),
        n => {
            Err(Failure::told(format!("{n} checks failed"), "mend the lines that start with fail"))
        }
    }
}

fn table(first: &Check) -> Table {
    Table::new(line(first).each_ref().map(String::as_str))
}

fn line(check: &Check) -> [String; 3] {
    [word(&check.verdict), check.check.clone(), check.remedy.clone().unwrap_or_default()]
}

fn service_checks(cx: &Context<'_>, checks: &mut Vec<Check>) -> Result<(), Failure> {
    let client = cx.client()?;
    let url = client.api_url();
    match client.readiness() {
        Ok(readiness) if readiness.status == ReadyState::Ready => {
            checks.push(Check::ok(format!("service: {url} is ready")));
        }
        Ok(readiness) => checks.push(Check::warn(
            format!("service: {url} is {}", word(&readiness.status)),
            "its /readyz says which part is not well",
        )),
        Err(failure) => {
            checks.push(Check::warn(format!("service: {failure}"), failure.hint()));
            return Ok(());
        }
    }
    if !cx.settings.may_call() {
        checks.push(Check::warn(
            "application id: none is known",
            "give --application-id or SVC_APPLICATION_ID, or sign in",
        ));
        return Ok(());
    }
    if cx.settings.application_id.is_some() {
        checks.push(match probe(&client.clone().anonymous(), "svc_getLatestRelease") {
            Ok(()) => Check::ok("application id: the service takes it"),
            Err(failure) => Check::fail(
                format!("application id: {failure}"),
                "ask who operates the service, and give it with --application-id",
            ),
        });
    }
    if cx.settings.credential.is_none() {
        checks.push(Check::warn("sign-in: missing", "`svc login`, or SVC_TOKEN in CI jobs"));
        return Ok(());
    }
    checks.push(match probe(&client, "svc_getArtifacts") {
        Ok(()) => Check::ok("sign-in: it holds"),
        Err(failure) => Check::fail(format!("sign-in: {failure}"), failure.hint()),
    });
    if let Some(app) = cx.settings.app {
        checks.push(app_check(&client, app));
    }
    Ok(())
}

fn app_check(client: &Client, app: AppId) -> Check {
    let artifacts = GetArtifacts {
        app_id: app,
        platform: None,
        version: None,
        state: None,
        limit: Limit::default(),
        cursor: None,
    };
    match client.call(&artifacts) {
        Ok(_) => Check::ok(format!("app: {app} can be reached")),
        Err(failure) => Check::fail(format!("app: {app}: {failure}"), failure.hint()),
    }
}

/// Calls a function without its required parameters. The service checks the application id and the
/// credentials before the parameters, so a refusal of the parameters means that both are right.
fn probe(client: &Client, function: &str) -> Result<(), Failure> {
    let spec = contract::all().find(|spec| spec.name == function);
    match spec.map(|spec| client.call_untyped(spec, &json!({}))) {
        Some(Err(failure)) if failure.refused_with(142).is_none() => Err(failure),
        _ => Ok(()),
    }
}
