//! `svc publish`: makes a release of a file, or of the source.

use crate::{
    Context, args,
    binary::Binary,
    client::Client,
    failure::Failure,
    printer::{Fields, word},
    provenance, release,
    upload::upload,
    working_copy::WorkingCopy,
};
use contract::{
    AppId, BoundedSet,
    apps::Platform,
    artifacts::Artifact,
    endpoint::{FinalizeRequest, UploadUrlRequest},
    releases::{CreateRelease, Release},
};
use repository::{CONFIG, Config, Recipe};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use svc_client::Patience;

/// The reply of `svc publish`.
#[derive(Serialize)]
struct Published {
    artifact: Artifact,
    release: Release,
}

pub fn publish(
    cx: &Context<'_>,
    config: Option<&Config>,
    args: args::PublishArgs,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(), Failure> {
    let published = make(cx, config, &args, environment)?;
    cx.printer.reply(&published, |Published { artifact, release }| {
        let file = Fields::new()
            .with("artifact", artifact.id)
            .with("file", &artifact.file_name)
            .with_some("sha256", artifact.sha256.as_ref());
        format!("{file}{}", release::fields(release))
    })?;
    release::outcome(&published.release)
}

/// Builds the file if none is named, uploads it, has it verified and makes a release of it. After
/// an interrupted run, the upload and the later steps continue where that run stopped.
fn make(
    cx: &Context<'_>,
    config: Option<&Config>,
    args: &args::PublishArgs,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Published, Failure> {
    let app_id = cx.settings.app(args.app)?;
    let client = cx.client()?.with_patience(Patience::LASTING);
    let file = match &args.file {
        Some(file) => file.clone(),
        None => build(cx, config, args)?,
    };
    let attestation = args.attestation.as_deref().map(attestation).transpose()?;
    let binary = Binary::open(&file, cx.printer)?;
    let platform = binary.kind.platform();
    if let Some(asked) = args.platform.filter(|asked| *asked != platform) {
        return Err(Failure::usage(
            format!("{} is a file for {}", file.display(), word(&platform)),
            format!("leave --platform {} out, or name another file", word(&asked)),
        ));
    }
    let request = UploadUrlRequest {
        app_id,
        platform,
        file_name: binary.name.clone(),
        version: args.version.clone(),
        size: Some(binary.size),
        sha256: Some(binary.sha256.clone()),
        build_number: None,
        // The profile of a named file is unknown.
        profile: args.file.is_none().then(|| args.profile.clone()),
        provenance: Some(provenance::declared(environment)),
        build: None,
    };
    let artifact = deliver(cx, &client, &binary, &request, attestation)?;
    let release = release(&client, app_id, &artifact, args)
        .inspect_err(|_| cx.printer.note(format_args!("the file is uploaded: {}", artifact.id)))?;
    Ok(Published { artifact, release })
}

/// Uploads a file and has it verified.
fn deliver(
    cx: &Context<'_>,
    client: &Client,
    binary: &Binary,
    request: &UploadUrlRequest,
    attestation: Option<Map<String, Value>>,
) -> Result<Artifact, Failure> {
    let bar = cx.printer.progress("uploading", binary.size);
    let artifact = upload(client, binary, request, &bar);
    bar.finish_and_clear();
    let artifact = artifact.map_err(|failure| match failure {
        Failure::Unreachable { .. } => {
            failure.advise("run the same command again: it goes on where this one stopped")
        }
        failure => failure,
    })?;
    cx.printer.note("uploaded; the service verifies it now");
    let request = FinalizeRequest {
        attestation,
        ..FinalizeRequest::of(binary.sha256.clone(), Some(binary.size))
    };
    client.finalize(artifact, &request)
}

/// Reads a Sigstore bundle. A file with several documents begins with the one that counts.
fn attestation(file: &Path) -> Result<Map<String, Value>, Failure> {
    let read = || -> Result<Map<String, Value>, String> {
        let content = std::fs::read(file).map_err(|error| error.to_string())?;
        let first = serde_json::Deserializer::from_slice(&content).into_iter().next();
        first.ok_or("is empty")?.map_err(|error| error.to_string())
    };
    read().map_err(|why| {
        Failure::usage(
            format!("{}: {why}", file.display()),
            "name the bundle that attest-build-provenance wrote (its output bundle-path)",
        )
    })
}

fn release(
    client: &Client,
    app_id: AppId,
    artifact: &Artifact,
    args: &args::PublishArgs,
) -> Result<Release, Failure> {
    let wanted = CreateRelease {
        app_id,
        artifact_ids: BoundedSet::one(artifact.id),
        version: artifact.version.clone(),
        channel: args.channel.clone(),
        notes: args.notes.clone(),
    };
    let release = release::ensure(client, &wanted)?;
    if args.auto_publish { release::ensure_published(client, release) } else { Ok(release) }
}

/// Runs the build of the repository and returns the path of the built file.
fn build(
    cx: &Context<'_>,
    config: Option<&Config>,
    args: &args::PublishArgs,
) -> Result<PathBuf, Failure> {
    let config = config.ok_or_else(|| {
        Failure::usage(
            format!("there is no file to publish, and no {CONFIG} that says how to build one"),
            "name a file, or run it in the repository of the app",
        )
    })?;
    let platform = platform(config, args.platform)?;
    let profile = args.profile.as_str();
    let recipe = config.recipe(platform, profile);
    let Recipe { command, artifact } = recipe
        .map_err(|problem| Failure::usage(problem, "add it there, or name another --profile"))?;
    cx.printer.note(format_args!("building {} {profile}: {command}", platform.name()));
    run(&command, &cx.working_copy)?;
    cx.working_copy.file(&artifact)
}

fn platform(config: &Config, asked: Option<Platform>) -> Result<Platform, Failure> {
    match (asked, config.platforms.as_slice()) {
        (Some(asked), _) => Ok(asked),
        (None, [only]) => Ok(*only),
        (None, _) => Err(Failure::usage(
            format!("{CONFIG} does not name one platform alone"),
            "say --platform ios or --platform android",
        )),
    }
}

/// Runs a build. Its output goes to standard error, because standard output is for the reply.
fn run(command: &str, copy: &WorkingCopy) -> Result<(), Failure> {
    let status = Command::new("sh")
        .args(["-c", command])
        .current_dir(copy.root())
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status();
    let failed = |problem: String| Failure::local(problem, "mend the build, and run it again");
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!("the build ended with {status}"))),
        Err(error) => Err(failed(format!("the build cannot be run: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        login_file::LoginFile,
        printer::{Form, Printer},
        testing::TestService,
    };
    use contract::releases::ReleaseState;
    use serde_json::json;

    const APP: &str = "app_01J9ZQ8F5W7V3T6M2K4N8R0P1S";
    const ARTIFACT: &str = "art_01J9ZQ8F5W7V3T6M2K4N8R0P1S";
    const USER: &str = "usr_01J9ZQ8F5W7V3T6M2K4N8R0P1S";
    const AT: &str = "2026-01-31T12:00:00.000Z";

    #[test]
    fn what_is_built_is_uploaded_verified_released_and_published() {
        let release = |state: &str| {
            json!({
                "id": "rel_01J9ZQ8F5W7V3T6M2K4N8R0P1S", "appId": APP, "version": "1.2.3",
                "channel": "beta", "artifactIds": [ARTIFACT], "state": state, "publications": [],
                "createdBy": USER, "createdAt": AT,
            })
        };
        let artifact = json!({
            "id": ARTIFACT, "appId": APP, "platform": "android", "kind": "apk",
            "fileName": "app.apk", "version": "1.2.3", "trust": "token", "state": "verified",
            "provenance": {"path": "local-publish", "uploadedBy": USER}, "createdAt": AT,
        });
        let service = TestService::start([])
            .answering("finalize", [(201, artifact)])
            .answering("svc_createRelease", [(200, json!({"result": release("draft")}))])
            .answering("svc_publishRelease", [(200, json!({"result": release("published")}))]);
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_string_lossy().into_owned();
        let config: Config = serde_json::from_value(json!({
            "platforms": ["android"],
            "build": {"android": {"production": "printf built > app.apk"}},
            "artifact": {"android": {"production": "app.apk"}},
        }))
        .unwrap();
        let cx = Context {
            printer: &Printer::new(Form::Text, true),
            settings: service.settings(),
            working_copy: WorkingCopy::at(folder.path()),
            login_file: LoginFile::locate(&|_| Some(home.clone())).unwrap(),
        };
        let args = args::PublishArgs {
            file: None,
            app: APP.parse().ok(),
            version: None,
            channel: "beta".parse().unwrap(),
            auto_publish: true,
            platform: None,
            profile: "production".parse().unwrap(),
            attestation: None,
            notes: None,
        };
        let published = make(&cx, Some(&config), &args, &|_| None).unwrap();
        assert_eq!(published.release.state, ReleaseState::Published);
        assert_eq!(published.artifact.id.to_string(), ARTIFACT);
        assert_eq!(service.stored(), b"built");
    }

    #[test]
    fn a_build_runs_in_the_repository_and_its_failure_is_the_commands() {
        let folder = tempfile::tempdir().unwrap();
        let copy = WorkingCopy::at(folder.path());
        run("printf x > app.apk", &copy).unwrap();
        assert_eq!(std::fs::read(folder.path().join("app.apk")).unwrap(), b"x");
        let failure = run("exit 7", &copy).unwrap_err();
        assert!(failure.to_string().contains('7'), "{failure}");
    }

    #[test]
    fn the_platform_is_asked_for_where_there_are_two() {
        let config =
            |platforms: &[Platform]| Config { platforms: platforms.to_vec(), ..Config::default() };
        let both = config(&[Platform::Ios, Platform::Android]);
        assert_eq!(platform(&config(&[Platform::Ios]), None).unwrap(), Platform::Ios);
        assert_eq!(platform(&both, Some(Platform::Android)).unwrap(), Platform::Android);
        assert!(platform(&both, None).is_err());
    }
}
