//! Checks whether a repository is managed or artifact-only, and whether its files are sound.

use crate::{
    printer::word,
    repository::{CONFIG, Config, PACKAGE, Repository, WORKFLOW, stays_inside},
};
use contract::{apps::Platform, artifacts::ArtifactKind};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The texts of the three files. `None`: the file is missing or cannot be read.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    pub package: Option<String>,
    pub config: Option<String>,
    pub workflow: Option<String>,
}

impl Listing {
    pub fn read(repository: &Repository) -> Self {
        Listing {
            package: repository.text(PACKAGE),
            config: repository.text(CONFIG),
            workflow: repository.text(WORKFLOW),
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub verdict: Verdict,
    /// The subject of the check, and the finding.
    pub check: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// A problem that does not make the command fail.
    Warn,
    Fail,
}

impl Check {
    pub fn ok(check: impl Into<String>) -> Self {
        Check { verdict: Verdict::Ok, check: check.into(), remedy: None }
    }

    pub fn warn(check: impl Into<String>, remedy: impl Into<String>) -> Self {
        Check { verdict: Verdict::Warn, check: check.into(), remedy: Some(remedy.into()) }
    }

    pub fn fail(check: impl Into<String>, remedy: impl Into<String>) -> Self {
        Check { verdict: Verdict::Fail, check: check.into(), remedy: Some(remedy.into()) }
    }
}

/// Checks the mode of a repository and its files. A repository with all three files is managed. A
/// repository with neither configuration nor workflow is artifact-only. Any other claims to be
/// managed, and fails. Problems in a file have their own checks.
pub fn checks(listing: &Listing) -> Vec<Check> {
    let mut checks = Vec::new();
    let claims_managed = listing.config.is_some() || listing.workflow.is_some();
    let files = [
        (PACKAGE, &listing.package, "add it to the repository's root"),
        (CONFIG, &listing.config, "add it, with \"platforms\", \"build\" and \"artifact\""),
        (
            WORKFLOW,
            &listing.workflow,
            "add it: triggered by workflow_dispatch, it calls the reusable build workflow",
        ),
    ];
    for (file, _, remedy) in files.iter().filter(|(_, text, _)| text.is_none()) {
        let missing = format!("{file} is missing");
        checks.push(match claims_managed {
            true => Check::fail(missing, *remedy),
            false => Check::warn(missing, *remedy),
        });
    }
    let is_managed = checks.is_empty();
    if let Some(text) = &listing.package {
        package_checks(text, &mut checks);
    }
    if let Some(text) = &listing.config {
        config_checks(text, &mut checks);
    }
    if let Some(text) = &listing.workflow {
        workflow_checks(text, &mut checks);
    }
    checks.push(match (is_managed, claims_managed) {
        (true, _) => Check::ok("mode: managed"),
        (false, false) => Check::ok("mode: artifact-only"),
        (false, true) => Check::fail(
            "mode: artifact-only, but the repository claims to be managed",
            format!("add the files that are missing, or remove {CONFIG} and {WORKFLOW}"),
        ),
    });
    checks
}

fn package_checks(text: &str, checks: &mut Vec<Check>) {
    checks.push(match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(_)) => Check::ok(PACKAGE),
        _ => Check::fail(format!("{PACKAGE} is no JSON object"), "correct its syntax"),
    });
}

fn config_checks(text: &str, checks: &mut Vec<Check>) {
    let config: Config = match serde_json::from_str(text) {
        Ok(config) => config,
        Err(error) => {
            checks.push(Check::fail(format!("{CONFIG}: {error}"), "correct it there"));
            return;
        }
    };
    let before = checks.len();
    if config.platforms.is_empty() {
        checks.push(Check::warn(
            format!("{CONFIG}: \"platforms\" names none"),
            "name \"ios\", \"android\" or both",
        ));
    }
    for platform in &config.platforms {
        platform_checks(&config, *platform, checks);
    }
    if checks.len() == before {
        checks.push(Check::ok(CONFIG));
    }
}

fn platform_checks(config: &Config, platform: Platform, checks: &mut Vec<Check>) {
    let name = word(&platform);
    let none = BTreeMap::new();
    let builds = config.build.get(&platform).unwrap_or(&none);
    let artifacts = config.artifact.get(&platform).unwrap_or(&none);
    if builds.is_empty() {
        checks.push(Check::warn(
            format!("{CONFIG}: build.{name} has no profile"),
            format!("give build.{name}.production the command that builds it"),
        ));
    }
    for (profile, command) in builds {
        if command.trim().is_empty() {
            checks.push(Check::warn(
                format!("{CONFIG}: build.{name}.{profile} is empty"),
                "give the command that builds it",
            ));
        }
        if !artifacts.contains_key(profile) {
            checks.push(Check::warn(
                format!("{CONFIG}: artifact.{name}.{profile} is missing"),
                "give the path of what the command builds",
            ));
        }
    }
    for (profile, path) in artifacts {
        if !builds.contains_key(profile) {
            checks.push(Check::warn(
                format!("{CONFIG}: build.{name}.{profile} is missing"),
                "give the command that builds it",
            ));
        }
        if !stays_inside(path) {
            checks.push(Check::warn(
                format!("{CONFIG}: artifact.{name}.{profile} leads out of the repository"),
                "give a relative path without ..",
            ));
        }
        let kind = ArtifactKind::of_file_name(path);
        if kind.map(ArtifactKind::platform) != Some(platform) {
            let endings = match platform {
                Platform::Ios => ".ipa",
                Platform::Android => ".apk or .aab",
            };
            checks.push(Check::warn(
                format!("{CONFIG}: artifact.{name}.{profile} is {path:?}"),
                format!("it has to end in {endings}"),
            ));
        }
    }
}

/// Searches for words and does not parse: the file is a thin wrapper, and the host of the
/// repository checks its syntax.
fn workflow_checks(text: &str, checks: &mut Vec<Check>) {
    let has_key = |key: &str| {
        text.lines().any(|line| {
            line.trim_start().strip_prefix(key).is_some_and(|rest| rest.starts_with(':'))
        })
    };
    let before = checks.len();
    if !text.contains("workflow_dispatch") {
        checks.push(Check::warn(
            format!("{WORKFLOW} has no workflow_dispatch"),
            "put it under \"on\", so that a build can be triggered",
        ));
    }
    for input in ["app_id", "platform", "profile"] {
        if !has_key(input) {
            checks.push(Check::warn(
                format!("{WORKFLOW} has no input {input}"),
                "add it under on.workflow_dispatch.inputs, and hand it on",
            ));
        }
    }
    if !text.contains("SVC_TOKEN") && !text.contains("secrets: inherit") {
        checks.push(Check::warn(
            format!("{WORKFLOW} does not hand on the secret SVC_TOKEN"),
            "name it under \"secrets\" of the job",
        ));
    }
    if checks.len() == before {
        checks.push(Check::ok(WORKFLOW));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND_CONFIG: &str = r#"{
        "platforms": ["ios", "android"],
        "build": {
            "ios": {"production": "make ipa"},
            "android": {"production": "make aab", "preview": "make apk"}
        },
        "artifact": {
            "ios": {"production": "build/App.ipa"},
            "android": {"production": "build/app.aab", "preview": "./build/app.apk"}
        }
    }"#;
    const SOUND_WORKFLOW: &str = "on:\n  workflow_dispatch:\n    inputs:\n      app_id:\n        \
        required: true\n      platform:\n      profile:\njobs:\n  build:\n    secrets:\n      \
        SVC_TOKEN: ${{ secrets.SVC_TOKEN }}\n";

    fn listing() -> Listing {
        Listing {
            package: Some("{}".into()),
            config: Some(SOUND_CONFIG.into()),
            workflow: Some(SOUND_WORKFLOW.into()),
        }
    }

    fn with(verdict: Verdict, listing: &Listing) -> Vec<String> {
        let lines = checks(listing).into_iter().filter(|check| check.verdict == verdict);
        lines.map(|check| check.check).collect()
    }

    /// The problems of a repository that is managed nevertheless.
    fn problems(listing: &Listing) -> Vec<String> {
        assert_eq!(checks(listing).last(), Some(&Check::ok("mode: managed")));
        [with(Verdict::Warn, listing), with(Verdict::Fail, listing)].concat()
    }

    fn with_config(from: &str, to: &str) -> Listing {
        assert!(SOUND_CONFIG.contains(from));
        Listing { config: Some(SOUND_CONFIG.replace(from, to)), ..listing() }
    }

    #[test]
    fn a_sound_repository_is_managed() {
        let checks = checks(&listing());
        assert!(checks.iter().all(|check| check.verdict == Verdict::Ok), "{checks:?}");
        assert_eq!(checks.last(), Some(&Check::ok("mode: managed")));
    }

    #[test]
    fn a_repository_that_claims_nothing_is_artifact_only() {
        let checks = checks(&Listing { config: None, workflow: None, ..listing() });
        assert!(checks.iter().all(|check| check.verdict != Verdict::Fail), "{checks:?}");
        assert_eq!(checks.last(), Some(&Check::ok("mode: artifact-only")));
    }

    #[test]
    fn a_claim_without_one_of_the_files_fails() {
        for incomplete in [
            Listing { package: None, ..listing() },
            Listing { config: None, ..listing() },
            Listing { workflow: None, ..listing() },
        ] {
            let failures = with(Verdict::Fail, &incomplete);
            assert_eq!(failures.len(), 2, "{failures:?}");
            assert!(failures[0].contains("is missing"));
            assert!(failures[1].contains("claims to be managed"));
        }
    }

    #[test]
    fn only_what_cannot_be_read_fails_in_a_managed_repository() {
        for (listing, expected) in [
            (Listing { package: Some("[]".into()), ..listing() }, "no JSON object"),
            (Listing { config: Some("{".into()), ..listing() }, CONFIG),
        ] {
            let failures = with(Verdict::Fail, &listing);
            assert!(failures.len() == 1 && failures[0].contains(expected), "{failures:?}");
            problems(&listing);
        }
        let gaps =
            Listing { config: Some("{}".into()), workflow: Some(String::new()), ..listing() };
        assert_eq!(with(Verdict::Fail, &gaps), Vec::<String>::new());
        assert!(problems(&gaps).len() > 3);
    }

    #[test]
    fn each_fault_of_the_configuration_has_its_line() {
        let cases = [
            (r#"["ios", "android"]"#, "[]", "names none"),
            (r#"["ios", "android"]"#, r#"["web"]"#, "unknown variant `web`"),
            ("App.ipa", "App.zip", "artifact.ios.production"),
            ("build/app.aab", "build/app.ipa", "artifact.android.production"),
            ("build/App.ipa", "../App.ipa", "leads out"),
            ("build/App.ipa", "/tmp/App.ipa", "leads out"),
            (r#""make ipa""#, r#"" ""#, "is empty"),
            (r#", "preview": "make apk""#, "", "build.android.preview is missing"),
            (r#", "preview": "./build/app.apk""#, "", "artifact.android.preview is missing"),
            (r#""ios": {"production": "make ipa"},"#, "", "build.ios has no profile"),
        ];
        for (from, to, expected) in cases {
            let problems = problems(&with_config(from, to));
            assert!(
                problems.iter().any(|line| line.contains(expected)),
                "{expected}: {problems:?}"
            );
        }
    }

    #[test]
    fn a_workflow_names_its_inputs() {
        for (word, expected) in [
            ("workflow_dispatch", "no workflow_dispatch"),
            ("app_id:", "input app_id"),
            ("profile:", "input profile"),
            ("SVC_TOKEN", "secret SVC_TOKEN"),
        ] {
            let workflow = Some(SOUND_WORKFLOW.replace(word, "other"));
            let problems = problems(&Listing { workflow, ..listing() });
            assert!(problems[0].contains(expected), "{problems:?}");
        }
    }
}
