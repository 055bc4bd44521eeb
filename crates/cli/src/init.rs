//! `svc init`: writes the three files of a managed repository. What exists stays as it is.

use crate::{Context, args, failure::Failure, printer::Table, working_copy::GITHUB};
use contract::apps::Platform;
use repository::{CONFIG, Config, PACKAGE, PLACEHOLDER, Recipe, WORKFLOW};
use serde::Serialize;
use serde_json::json;
use std::{collections::BTreeMap, fs, io::Write, path::Path};
use url::{Host, Url};

/// The workflow of an app, with two placeholders.
const WRAPPER: &str = include_str!("../../../ci/wrapper/svc-build.yml");
const REUSABLE_IN: &str = "OWNER/REPOSITORY";
const API_URL: &str = "API_URL";
/// The name of the repository with the reusable workflow, if none is given: one of the same owner.
const DEFAULT_NAME: &str = "svc-ci";

/// The reply of `svc init`.
#[derive(Serialize)]
struct Written {
    files: Vec<WrittenFile>,
}

#[derive(Serialize)]
struct WrittenFile {
    path: &'static str,
    /// False: the file existed, and is as it was.
    written: bool,
}

pub fn init(cx: &Context<'_>, args: &args::InitArgs) -> Result<(), Failure> {
    let root = cx.working_copy.root();
    let missing = |path: &str| !root.join(path).exists();
    // All contents are there before the first file is written, so a usage failure leaves no files.
    let contents = [
        (PACKAGE, missing(PACKAGE).then(package).transpose()?),
        (CONFIG, missing(CONFIG).then(|| config(cx, args)).transpose()?),
        (WORKFLOW, missing(WORKFLOW).then(|| workflow(cx, args)).transpose()?),
    ];
    let mut files = Vec::new();
    for (path, content) in contents {
        let written = content.is_some();
        if let Some(content) = content {
            write(&root.join(path), &content)?;
        }
        files.push(WrittenFile { path, written });
    }
    cx.printer.reply(&Written { files }, |written| {
        written.files.iter().fold(Table::new(["FILE", ""]), |table, file| {
            let state = if file.written { "written" } else { "exists, and is as it was" };
            table.row([file.path.to_owned(), state.to_owned()])
        })
    })?;
    cx.printer.note("next: svc doctor, then commit and push, then svc repo connect URL");
    Ok(())
}

/// Writes a new file. A file that appears meanwhile stays as it is.
fn write(path: &Path, content: &str) -> Result<(), Failure> {
    let done = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        let mut file = fs::File::options().write(true).create_new(true).open(path)?;
        file.write_all(content.as_bytes())
    });
    done.map_err(|error| Failure::file(path, &error))
}

fn package() -> Result<String, Failure> {
    pretty(&json!({"private": true}))
}

fn config(cx: &Context<'_>, args: &args::InitArgs) -> Result<String, Failure> {
    let root = cx.working_copy.root();
    let platforms = match args.platform.is_empty() {
        true => detected_platforms(root),
        false => args.platform.clone(),
    };
    let (mut build, mut artifact) = (BTreeMap::new(), BTreeMap::new());
    for platform in &platforms {
        let recipes = recipes(root, *platform);
        let part = |of: fn(&Recipe) -> &String| {
            recipes.iter().map(|(name, recipe)| ((*name).to_owned(), of(recipe).clone())).collect()
        };
        build.insert(*platform, part(|recipe| &recipe.command));
        artifact.insert(*platform, part(|recipe| &recipe.artifact));
    }
    pretty(&Config {
        platforms,
        build,
        artifact,
        api_url: Some(cx.settings.api_url.clone()).filter(|url| !is_of_this_machine(url)),
        application_id: cx.settings.application_id.clone(),
        app: cx.settings.app,
        repository: cx.working_copy.name_at(GITHUB),
    })
}

/// Whether an address leads every machine to itself.
fn is_of_this_machine(address: &str) -> bool {
    let address = Url::parse(address).ok();
    match address.as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unspecified(),
        None => false,
    }
}

fn workflow(cx: &Context<'_>, args: &args::InitArgs) -> Result<String, Failure> {
    let reusable_in = match &args.workflow {
        Some(named) => named.clone(),
        None => {
            let name = cx.working_copy.name_at(GITHUB).ok_or_else(|| {
                Failure::usage(
                    "the repository with the reusable workflow is not known",
                    "say --workflow OWNER/REPOSITORY; ci/README.md says what belongs into it",
                )
            })?;
            let owner = name.as_str().split('/').next().unwrap_or_default();
            format!("{owner}/{DEFAULT_NAME}")
        }
    };
    let is_part = |part: &str| {
        let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !part.is_empty() && part.chars().all(is_of_a_name)
    };
    if !reusable_in.split_once('/').is_some_and(|(owner, name)| is_part(owner) && is_part(name)) {
        return Err(Failure::usage(
            format!("--workflow {reusable_in:?} is no repository"),
            "name one such as acme/svc-ci",
        ));
    }
    if is_of_this_machine(&cx.settings.api_url) {
        return Err(Failure::usage(
            "the CI cannot reach the service at an address of this machine",
            "say --api-url with the address for everybody, or sign in to it with `svc login`",
        ));
    }
    Ok(WRAPPER.replace(REUSABLE_IN, &reusable_in).replace(API_URL, &cx.settings.api_url))
}

/// The platforms that the folders of the repository tell of; both if they tell nothing.
fn detected_platforms(root: &Path) -> Vec<Platform> {
    let has = |path: &str| root.join(path).exists();
    let found: Vec<_> = Platform::ALL
        .into_iter()
        .filter(|platform| has(platform.name()) || *platform == Platform::Android && has("gradlew"))
        .collect();
    if found.is_empty() { Platform::ALL.to_vec() } else { found }
}

/// The recipes of a platform, by profile.
fn recipes(root: &Path, platform: Platform) -> [(&'static str, Recipe); 2] {
    let has = |path: &str| root.join(path).exists();
    let flutter = has("pubspec.yaml");
    let gradle = ["", "android/"].into_iter().find(|folder| has(&format!("{folder}gradlew")));
    let recipe = |command: String, artifact: String| Recipe { command, artifact };
    let (production, preview) = match (platform, gradle) {
        (Platform::Android, _) if flutter => {
            let made = |command: &str, file: &str| {
                recipe(format!("flutter build {command}"), format!("build/app/outputs/{file}"))
            };
            (
                made("appbundle", "bundle/release/app-release.aab"),
                made("apk", "flutter-apk/app-release.apk"),
            )
        }
        (Platform::Ios, _) if flutter => {
            // The name of the file is that of the app, which only Xcode knows.
            let made = |more: &str| {
                let build = format!("flutter build ipa{more}");
                let ipa = "build/ios/app.ipa";
                recipe(format!("{build} && mv build/ios/ipa/*.ipa {ipa}"), ipa.into())
            };
            (made(""), made(" --export-method ad-hoc"))
        }
        (Platform::Android, Some(folder)) => {
            let enter = if folder.is_empty() { String::new() } else { format!("cd {folder} && ") };
            let made = |task: &str, file: &str| {
                let file = format!("{folder}app/build/outputs/{file}");
                recipe(format!("{enter}./gradlew {task}"), file)
            };
            (
                made("bundleRelease", "bundle/release/app-release.aab"),
                made("assembleRelease", "apk/release/app-release.apk"),
            )
        }
        (platform, _) => {
            let name = platform.name();
            let command = format!("echo '{PLACEHOLDER} {name}' >&2; exit 1");
            let (production, preview) = match platform {
                Platform::Android => ("build/app.aab", "build/app.apk"),
                Platform::Ios => ("build/app.ipa", "build/app.ipa"),
            };
            (recipe(command.clone(), production.into()), recipe(command, preview.into()))
        }
    };
    [("production", production), ("preview", preview)]
}

fn pretty(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|error| Failure::local(error.to_string(), "run it again"))?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        login_file::LoginFile,
        printer::{Form, Printer},
        settings::ClientSettings,
        testing::TestService,
        working_copy::WorkingCopy,
    };
    use contract::repositories::{RepositoryMode, Severity};

    const FOLDERS: [&[&str]; 5] = [
        &[],
        &["gradlew"],
        &["android/gradlew", "ios/App.xcworkspace/contents"],
        &["pubspec.yaml", "android/gradlew"],
        &["pubspec.yaml", "android/gradlew", "ios/Runner.xcodeproj/project.pbxproj"],
    ];

    /// Those of a service that a CI reaches.
    fn settings(service: &TestService) -> ClientSettings {
        ClientSettings { api_url: "https://svc.example.com".into(), ..service.settings() }
    }

    #[test]
    fn what_it_writes_passes_the_checks_and_a_second_run_changes_nothing() {
        let service = TestService::start([]);
        for present in FOLDERS {
            let folder = tempfile::tempdir().unwrap();
            for path in present {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            let home = folder.path().to_string_lossy().into_owned();
            let cx = Context {
                printer: &Printer::new(Form::Text, true),
                settings: settings(&service),
                working_copy: WorkingCopy::at(folder.path()),
                login_file: LoginFile::locate(&|_| Some(home.clone())).unwrap(),
            };
            let args = args::InitArgs { platform: vec![], workflow: Some("acme/svc-ci".into()) };
            init(&cx, &args).unwrap();
            let files = cx.working_copy.files();
            let report = repository::check(&files);
            assert_eq!(report.mode, RepositoryMode::Managed);
            // What only the author knows is left to say.
            let wrong = report.findings.iter().filter(|f| {
                f.severity != Severity::Info
                    && !f.problem.contains("is still what `svc init` wrote")
            });
            assert_eq!(wrong.count(), 0, "{present:?}: {:?}", report.findings);
            init(&cx, &args).unwrap();
            assert_eq!(format!("{files:?}"), format!("{:?}", cx.working_copy.files()));
        }
    }

    #[test]
    fn a_file_of_the_author_stays() {
        let service = TestService::start([]);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(PACKAGE), "mine").unwrap();
        let home = folder.path().to_string_lossy().into_owned();
        let cx = Context {
            printer: &Printer::new(Form::Text, true),
            settings: settings(&service),
            working_copy: WorkingCopy::at(folder.path()),
            login_file: LoginFile::locate(&|_| Some(home.clone())).unwrap(),
        };
        let args = args::InitArgs { platform: vec![Platform::Ios], workflow: None };
        let failure = init(&cx, &args).unwrap_err();
        assert!(failure.hint().contains("--workflow"), "{failure}");
        assert!(!folder.path().join(CONFIG).exists(), "nothing is written before a refusal");
        let args = args::InitArgs { workflow: Some("acme/svc-ci".into()), ..args };
        init(&cx, &args).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join(PACKAGE)).unwrap(), "mine");
        assert!(folder.path().join(CONFIG).exists());
    }
}
