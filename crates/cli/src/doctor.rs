//! `svc doctor`: checks the repository, the service and the sign-in.

use crate::{
    Context, client::Client, failure::Failure, findings, printer::word, settings::ClientCredential,
    tools, working_copy::GITHUB,
};
use contract::{
    AppId, ArtifactId, Id, ReleaseId,
    artifacts::GetArtifacts,
    endpoint::{Checks, FinalizeRequest, ReadyState},
    instance_helpers::GetInstanceDetails,
    instances::{InstanceKind, Service},
    page::Limit,
    releases::GetRelease,
    repositories::{DetectedFile, Finding, RepositoryMode, Severity},
    service::{GetServiceInfo, Registration},
};
use repository::FileContent;
use serde::Serialize;
use serde_json::json;
use ulid::Ulid;

/// The reply of `svc doctor`.
#[derive(Serialize)]
struct Examination {
    mode: RepositoryMode,
    detected: Vec<DetectedFile>,
    findings: Vec<Finding>,
}

/// Prints a line for each finding and each sound file. Fails if there is an error.
pub fn doctor(cx: &Context<'_>) -> Result<(), Failure> {
    let mut report = repository::check(&cx.working_copy.files());
    if let Some(problem) = withheld_consent(cx) {
        report.add_withheld_consent(problem);
    }
    let mut findings = report.findings;
    if let Ok(Some(config)) = cx.working_copy.config() {
        tools::check(&cx.working_copy, &config, &mut findings);
    }
    check_service(cx, &mut findings)?;
    let examination = Examination { mode: report.mode, detected: report.detected, findings };
    cx.printer.reply(&examination, show)?;
    let is_error = |finding: &&Finding| finding.severity == Severity::Error;
    match examination.findings.iter().filter(is_error).count() {
        0 => Ok(()),
        1 => Err(Failure::told("one check failed", "correct what the line with error says")),
        n => Err(Failure::told(
            format!("{n} checks failed"),
            "correct what the lines with error say",
        )),
    }
}

/// What would keep the service from beginning builds in the CI of this repository, if it has its origin at
/// the GitHub of the service's GitHub App. A service that does not answer counts as one with an app at
/// github.com, where everybody may register.
fn withheld_consent(cx: &Context<'_>) -> Option<String> {
    let client = cx.client().ok()?.anonymous();
    let info = client.readiness().ok().and_then(|_| client.call(&GetServiceInfo {}).ok());
    let (github, registration) = match &info {
        Some(info) => (info.github_url.as_ref()?.as_str(), info.registration),
        None => (GITHUB, Registration::Open),
    };
    if registration == Registration::Closed {
        return None;
    }
    let repository = cx.working_copy.name_at(github)?;
    let FileContent::Text(config) = cx.working_copy.files().config else { return None };
    repository::withheld_consent(&config, cx.settings.app, &repository)
}

fn show(examination: &Examination) -> String {
    let Examination { mode, detected, findings } = examination;
    findings::table(*mode, detected, findings)
}

fn finding(
    check: &str,
    severity: Severity,
    problem: impl Into<String>,
    fix: impl Into<String>,
) -> Finding {
    let (problem, fix) = (problem.into(), fix.into());
    Finding { check: check.into(), severity, path: None, line: None, problem, fix }
}

fn good(check: &str, found: impl Into<String>) -> Finding {
    finding(check, Severity::Info, found, "")
}

fn doubtful(check: &str, problem: impl Into<String>, fix: impl Into<String>) -> Finding {
    finding(check, Severity::Warning, problem, fix)
}

fn bad(check: &str, problem: impl Into<String>, fix: impl Into<String>) -> Finding {
    finding(check, Severity::Error, problem, fix)
}

/// The parts of a service that are not well, with the reason where it says one.
fn unwell(checks: &Checks) -> String {
    let Checks { store, actors, engine, clock, egress } = checks;
    let parts = [
        ("store", store.ok, &None),
        ("actors", actors.ok, &None),
        ("engine", engine.ok, &engine.error),
        ("clock", clock.ok, &None),
        ("egress", egress.ok, &egress.error),
    ];
    let unwell = parts.into_iter().filter(|(_, ok, _)| !ok).map(|(part, _, why)| match why {
        Some(why) => format!("{part} ({why})"),
        None => part.to_owned(),
    });
    unwell.collect::<Vec<_>>().join(", ")
}

fn check_service(cx: &Context<'_>, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let client = cx.client()?;
    let url = client.api_url();
    match client.readiness() {
        Ok(readiness) if readiness.status == ReadyState::Ready => {
            findings.push(good("service", format!("{url} is ready")));
        }
        Ok(readiness) => findings.push(doubtful(
            "service",
            format!("{url} is {}: {}", word(&readiness.status), unwell(&readiness.checks)),
            "tell an operator of the service",
        )),
        Err(failure) => {
            findings.push(doubtful("service", failure.to_string(), failure.hint()));
            return Ok(());
        }
    }
    if !cx.settings.may_call() {
        findings.push(doubtful(
            "application-id",
            "none is known",
            "give --application-id or SVC_APPLICATION_ID, or sign in",
        ));
        return Ok(());
    }
    if cx.settings.application_id.is_some() {
        findings.push(match probe(&client.clone().anonymous(), "svc_getLatestRelease") {
            Ok(()) => good("application-id", "the service accepts it"),
            Err(failure) => bad(
                "application-id",
                failure.to_string(),
                "ask who operates the service, and give it with --application-id",
            ),
        });
    }
    if cx.settings.credential.is_none() {
        findings.push(doubtful("sign-in", "is missing", "`svc login`, or SVC_TOKEN in CI jobs"));
        return Ok(());
    }
    findings.push(match probe(&client, "svc_getArtifacts") {
        Ok(()) => good("sign-in", "is valid"),
        Err(failure) => bad("sign-in", failure.to_string(), failure.hint()),
    });
    if matches!(cx.settings.credential, Some(ClientCredential::DeployToken(_))) {
        check_scopes(&client, findings);
    }
    if let Some(app) = cx.settings.app {
        findings.push(check_app(&client, app));
        check_instances(&client, app, findings);
    }
    Ok(())
}

/// Checks that a deploy token has the scopes of a CI job. The service checks scopes before it looks
/// for an object, so a missing object means that the token has them.
fn check_scopes(client: &Client, findings: &mut Vec<Finding>) {
    let nothing = "0".repeat(64).parse().ok();
    let finalize = nothing.map(|sha256| {
        let request = FinalizeRequest::of(sha256, None);
        client.finalize(ArtifactId::of(Ulid::nil()), &request).map(drop)
    });
    let read = client.call(&GetRelease { release_id: ReleaseId::of(Ulid::nil()) }).map(drop);
    for (scope, asked, severity) in [
        ("artifact:upload", finalize, Severity::Error),
        ("release:create", Some(read), Severity::Warning),
    ] {
        let lacks = matches!(&asked, Some(Err(Failure::Refused(refusal))) if refusal.status == 403);
        findings.push(match lacks {
            false => good("scope", format!("the token has {scope}")),
            true => finding(
                "scope",
                severity,
                format!("the token lacks {scope}"),
                format!("svc token create --name ci --scope {scope}, with its other scopes"),
            ),
        });
    }
}

fn check_app(client: &Client, app: AppId) -> Finding {
    let artifacts = GetArtifacts {
        app_id: app,
        platform: None,
        version: None,
        state: None,
        limit: Limit::default(),
        cursor: None,
    };
    match client.call(&artifacts) {
        Ok(_) => good("app", format!("{app} can be reached")),
        Err(failure) => bad("app", format!("{app}: {failure}"), failure.hint()),
    }
}

/// Says what is known against the images of the app's instances. An app without an instance has none,
/// and credentials that may not read instances learn nothing.
fn check_instances(client: &Client, app: AppId, findings: &mut Vec<Finding>) {
    for kind in [InstanceKind::Backend, InstanceKind::Market] {
        let read = GetInstanceDetails { app_id: app, kind: Some(kind) };
        let Ok(instance) = client.call(&read) else { continue };
        findings.extend(instance.services.iter().filter_map(check_image));
    }
}

fn check_image(service: &Service) -> Option<Finding> {
    let known = service.outdated.as_ref()?;
    let advisories = known.advisories.iter().map(|advisory| advisory.id.as_str());
    let deprecated = known.deprecated.then_some("it is deprecated");
    let against: Vec<&str> = deprecated.into_iter().chain(advisories).collect();
    let (image, version) = (&service.image, &service.image_version);
    let problem =
        format!("the {} runs {image} {version}: {}", service.role.label(), against.join(", "));
    let fix = match &known.better {
        Some(better) => format!("deploy {image} {better}"),
        None => "ask who operates the service for a better version".to_owned(),
    };
    Some(doubtful("image", problem, fix))
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
