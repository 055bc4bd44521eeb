//! The checks of a repository: a sound one, and each defect with its id and its line.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use contract::{
    AppId,
    apps::Platform,
    repositories::{Finding, RepositoryMode::*, Severity},
};
use repository::{
    CHECKS, CONFIG, Config, FileContent, Files, PACKAGE, Recipe, WORKFLOW, check, withheld_consent,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

const SOUND_CONFIG: &str = include_str!("../../../data/fixtures/managed/.svc/config.json");

const SOUND_WORKFLOW: &str =
    include_str!("../../../data/fixtures/managed/.github/workflows/svc-build.yml");

fn text(text: &str) -> FileContent {
    FileContent::Text(text.into())
}

fn sound() -> Files {
    Files { package: text("{}"), config: text(SOUND_CONFIG), workflow: text(SOUND_WORKFLOW) }
}

/// `id line` of each finding.
fn found(files: &Files) -> Vec<String> {
    let line = |line: Option<u32>| line.map_or("-".into(), |line| line.to_string());
    let short = |finding: &Finding| format!("{} {}", finding.check, line(finding.line));
    check(files).findings.iter().map(short).collect()
}

#[test]
fn a_sound_repository_is_managed_and_has_no_findings() {
    let report = check(&sound());
    assert_eq!(report.mode, Managed);
    assert_eq!(report.findings, []);
    assert!(report.detected.iter().all(|file| file.present && file.problem.is_none()));
    let config: Config = serde_json::from_str(SOUND_CONFIG).unwrap();
    assert_eq!(config.platforms, [Platform::Ios, Platform::Android]);
}

/// All combinations of the three files.
#[test]
fn the_mode_follows_from_the_files_that_are_there() {
    for present in 0..8 {
        let keep = |bit: u32, content: FileContent| {
            if present & bit == 0 { FileContent::Missing } else { content }
        };
        let Files { package, config, workflow } = sound();
        let (package, config, workflow) = (keep(1, package), keep(2, config), keep(4, workflow));
        let report = check(&Files { package, config, workflow });
        assert_eq!(report.mode == Managed, present == 7, "{present}");
        assert_eq!(report.mode == ArtifactOnly, present != 7, "{present}");
        let expected = match present {
            0..2 => Severity::Info,
            2..4 => Severity::Warning,
            _ => Severity::Error,
        };
        assert!(report.findings.iter().all(|finding| finding.severity == expected), "{present}");
        let missing = report.detected.iter().filter(|file| !file.present).count();
        assert_eq!(report.findings.len(), missing, "{present}");
    }
}

#[test]
fn each_defect_has_its_check_and_its_line() {
    let whole = SOUND_WORKFLOW;
    let steps = "on: [push, workflow_dispatch]\njobs:\n  build:\n    steps: [{run: make}]\n";
    let defects: &[(&str, &str, &str, &[&str])] = &[
        (PACKAGE, "{}", "[]", &["package-object 1"]),
        (PACKAGE, "{}", "{\n\"a\": }", &["file-syntax 2"]),
        (CONFIG, SOUND_CONFIG, "7", &["config-shape 1"]),
        (CONFIG, "\"make ipa\"}", "\"make ipa\"", &["file-syntax 18"]),
        (
            CONFIG,
            "\"platforms\"",
            "\"platform\"",
            &["config-platforms 1", "config-unknown 2", "config-unused 4", "config-unused 5"],
        ),
        (
            CONFIG,
            r#"["ios", "android"]"#,
            "[]",
            &["config-platforms 2", "config-unused 4", "config-unused 5"],
        ),
        (CONFIG, r#"["ios", "android"]"#, r#"["ios", "android", "web"]"#, &["config-platforms 2"]),
        (
            CONFIG,
            r#"["ios", "android"]"#,
            "\"ios\"",
            &["config-shape 2", "config-unused 4", "config-unused 5"],
        ),
        (CONFIG, r#"["ios", "android"]"#, r#"["android"]"#, &["config-unused 4"]),
        (CONFIG, r#""make ipa""#, r#"" ""#, &["config-build 4"]),
        (
            CONFIG,
            r#""make ipa""#,
            "1",
            &["config-shape 4", "config-build 11", "config-production 4"],
        ),
        (
            CONFIG,
            "\"make apk\"
        }",
            "\"make apk\"
        }, \"web\": {}",
            &["config-platform 8"],
        ),
        (CONFIG, ",\n            \"preview\": \"make apk\"", "", &["config-build 13"]),
        (CONFIG, ",\n            \"preview\": \"./build/app.apk\"", "", &["config-artifact 7"]),
        (
            CONFIG,
            "\"ios\": {\"production\": \"make ipa\"},",
            "",
            &["config-build 11", "config-production 11"],
        ),
        (CONFIG, "build/App.ipa", "../App.ipa", &["config-artifact-path 11"]),
        (CONFIG, "build/App.ipa", "/tmp/App.ipa", &["config-artifact-path 11"]),
        (CONFIG, "build/App.ipa", "build/App.zip", &["config-artifact-kind 11"]),
        (CONFIG, "build/app.aab", "build/app.ipa", &["config-artifact-kind 13"]),
        (CONFIG, "build/app.aab", "build/app.apk", &["config-artifact-store 13"]),
        (CONFIG, "\"platforms\"", "\"app\": \"my app\", \"platforms\"", &["config-shape 2"]),
        (WORKFLOW, whole, "", &["workflow-shape -"]),
        (WORKFLOW, "on:", "on: {", &["file-syntax 4"]),
        (WORKFLOW, "on:", "when:", &["workflow-trigger 1"]),
        (WORKFLOW, "workflow_dispatch:", "workflow_call:", &["workflow-trigger 2"]),
        (WORKFLOW, whole, "on: push\n", &["workflow-trigger 1", "workflow-reusable 1"]),
        (
            WORKFLOW,
            whole,
            steps,
            &["workflow-input 1", "workflow-input 1", "workflow-input 1", "workflow-reusable 2"],
        ),
        (
            WORKFLOW,
            "      app_id:\n        required: true",
            "      app:\n        required: true",
            &["workflow-input 5", "workflow-input-foreign 5"],
        ),
        (WORKFLOW, "        type: string", "        type: number", &["workflow-input-type 7"]),
        (
            WORKFLOW,
            "        default: production",
            "        type: choice",
            &["workflow-input-type 12", "workflow-input-type 12"],
        ),
        (WORKFLOW, "[ios, android]", "[ios]", &["workflow-input-type 11"]),
        (WORKFLOW, "svc-build.yml@v1", "svc-build.yml@main", &["workflow-version 18"]),
        (
            WORKFLOW,
            "svc-build.yml@v1",
            "svc-build.yml@59807616e1fa2540724bfbac14d7976d7e4a3860",
            &[],
        ),
        (
            WORKFLOW,
            "example/svc/.github",
            "./.github",
            &[
                "workflow-version 16",
                "workflow-with 16",
                "workflow-with 16",
                "workflow-with 16",
                "workflow-with 16",
                "workflow-secret 16",
            ],
        ),
        (WORKFLOW, "      profile: ${{ inputs.profile }}\n", "", &["workflow-with 20"]),
        (WORKFLOW, "      SVC_TOKEN:", "      TOKEN:", &["workflow-secret 25"]),
        (WORKFLOW, "secrets:\n      SVC_TOKEN: ${{ secrets.SVC_TOKEN }}", "secrets: inherit", &[]),
        (
            WORKFLOW,
            "secrets:\n      SVC_TOKEN: ${{ secrets.SVC_TOKEN }}",
            "permissions: {id-token: write}",
            &[],
        ),
        (WORKFLOW, "jobs:", "permissions: write-all\njobs:", &[]),
        (
            WORKFLOW,
            "secrets:\n      SVC_TOKEN: ${{ secrets.SVC_TOKEN }}",
            "permissions: {contents: read}\npermissions: write-all",
            &["workflow-secret 18"],
        ),
        (
            WORKFLOW,
            "default: production",
            "type: choice\n        options: [production, preview]",
            &[],
        ),
        (
            WORKFLOW,
            "rules/.github/workflows/lint.yml@main",
            "rules/.github/workflows/build.yml@v1",
            &[],
        ),
        (CONFIG, "\"platforms\"", "\"platforms\": [],\n\"platforms\"", &["file-syntax 3"]),
    ];
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for (path, from, to, expected) in defects {
        let replaced = |original: &str| {
            assert!(original.contains(from), "{from}");
            text(&original.replacen(from, to, 1))
        };
        let files = match *path {
            PACKAGE => Files { package: replaced("{}"), ..sound() },
            CONFIG => Files { config: replaced(SOUND_CONFIG), ..sound() },
            _ => Files { workflow: replaced(SOUND_WORKFLOW), ..sound() },
        };
        let mut found = found(&files);
        let mut expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
        found.sort();
        expected.sort();
        if found != expected {
            wrong.push(format!("{path}: {from} -> {to}: {found:?}, expected {expected:?}"));
        }
        let report = check(&files);
        assert_eq!(report.mode, Managed, "what is wrong in a file changes no mode");
        for finding in &report.findings {
            assert_eq!(finding.path.as_deref(), Some(*path));
            assert!(!finding.fix.is_empty() && !finding.problem.is_empty());
        }
        let order = |finding: &Finding| (Reverse(finding.severity), finding.line);
        assert!(report.findings.is_sorted_by_key(order), "{:?}", report.findings);
        seen.extend(report.findings.into_iter().map(|finding| finding.check));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let missing = ["package-missing", "config-missing", "workflow-missing", "file-readable"];
    seen.extend(missing.map(str::to_owned));
    // Not a defect of the files alone.
    seen.insert("config-app".into());
    let ids = CHECKS.iter().map(|(id, ..)| (*id).to_owned());
    assert_eq!(seen, ids.collect(), "each check has a defect");
}

#[test]
fn what_is_no_text_or_too_large_is_there_and_cannot_be_read() {
    for bytes in [vec![0xff, 0xfe], vec![b' '; repository::LARGEST_FILE + 1]] {
        let files = Files { config: bytes.into(), ..sound() };
        assert_eq!(check(&files).mode, Managed);
        assert_eq!(found(&files), ["file-readable -"]);
    }
}

#[test]
fn a_command_has_at_most_10_000_characters_and_a_path_1_000() {
    let with = |old: &str, new: String| {
        let config = SOUND_CONFIG.replacen(old, &new, 1);
        let files = Files { config: text(&config), ..sound() };
        (found(&files), Recipe::of(&files, Platform::Ios, "production").map(drop))
    };
    let command = |length| with("make ipa", "ä".repeat(length));
    assert_eq!(command(10_000), (vec![], Ok(())));
    let (found, refused) = command(10_001);
    assert_eq!(found, ["config-build 4"]);
    let why = refused.unwrap_err();
    assert!(why.contains("build.ios.production has 10001 characters, and at most 10000"), "{why}");

    let path = |length: usize| with("build/App.ipa", format!("{}.ipa", "ä".repeat(length - 4)));
    assert_eq!(path(1_000), (vec![], Ok(())));
    let (found, refused) = path(1_001);
    assert_eq!(found, ["config-artifact-path 11"]);
    assert!(refused.unwrap_err().contains("artifact.ios.production has 1001 characters"));
}

/// `UPDATE=1` writes the table again; review the difference.
#[test]
fn the_documentation_lists_all_checks() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/REPOSITORIES.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let head = "| id | severity | what to do |\n|---|---|---|\n";
    let (before, rest) = text.split_once(head).unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let row = |(id, severity, fix): &(&str, Severity, &str)| {
        format!("| `{id}` | {} | {fix} |", format!("{severity:?}").to_lowercase())
    };
    let rows: Vec<_> = CHECKS.iter().map(row).collect();
    let made = format!("{before}{head}{}\n\n{after}", rows.join("\n"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    assert!(text == made || std::env::var_os("UPDATE").is_some(), "run `make openapi`");
}

#[test]
fn a_configuration_consents_by_naming_the_app_and_the_repository() {
    let app: AppId = "app_01J00000000000000000000000".parse().unwrap();
    let other: AppId = "app_01J00000000000000000000001".parse().unwrap();
    let repository = "acme/app".parse().unwrap();
    let withheld = |config: &str, app| withheld_consent(config, app, &repository);
    let names_both = format!("\u{feff}{{\"app\": \"{app}\", \"repository\": \"Acme/App\"}}");
    assert_eq!(withheld(&names_both, Some(app)), None);
    assert_eq!(withheld(&names_both, None), None);
    let why = withheld(&names_both, Some(other)).unwrap();
    assert!(why.starts_with("app is \"app_"), "{why}");
    for nothing in ["", "[]", "{}", "{\"app\": 7}"] {
        let why = withheld(nothing, Some(app)).unwrap();
        assert_eq!(why, "app is missing, and repository is missing", "{nothing}");
    }
    // Only a managed repository is built in its CI.
    for (files, expected) in [(sound(), 1), (Files::default(), 0)] {
        let mut report = check(&files);
        report.add_withheld_consent("app is missing".into());
        let found = report.findings.iter().filter(|finding| finding.check == "config-app");
        assert_eq!(found.count(), expected);
    }
}

#[test]
fn the_profiles_that_can_be_built_are_told_by_platform() {
    let profiles = check(&sound()).profiles.unwrap();
    assert!(profiles[&Platform::Android].contains("production"), "{profiles:?}");
    let with = |config: FileContent| check(&Files { config, ..sound() }).profiles;
    assert_eq!(with(FileContent::Missing), Some(BTreeMap::new()));
    assert_eq!(with(text("{")), None);
    // A command without an artifact builds nothing.
    let half = with(text("{\"build\": {\"android\": {\"production\": \"make\"}}}")).unwrap();
    assert!(half[&Platform::Android].is_empty());
}

#[test]
fn the_schema_for_editors_has_the_fields_of_the_file() {
    let schema = repository::config::schema().to_value();
    let fields = schema["properties"].as_object().unwrap();
    let of_file: serde_json::Value = serde_json::from_str(SOUND_CONFIG).unwrap();
    for field in of_file.as_object().unwrap().keys() {
        assert!(fields.contains_key(field), "{field}: {schema}");
    }
    let app = &schema["$defs"]["AppId"];
    assert!(app.to_string().contains("app_"), "{schema}");
}
