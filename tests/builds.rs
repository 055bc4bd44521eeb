//! Builds on runners: the real program, real git repositories, and a real Android app.

use crate::support::{
    git::Git,
    load::together,
    requires,
    service::{Person, SVC, Service, eventually, fixture},
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A configuration whose build runs this command and makes `app.apk`.
fn config(command: &str) -> (&'static str, String) {
    let config = json!({
        "platforms": ["android"],
        "build": {"android": {"production": command}},
        "artifact": {"android": {"production": "app.apk"}},
    });
    (".svc/config.json", config.to_string())
}

struct World {
    git: Git,
    service: Service,
    ada: Person,
    app: Value,
    /// A token of a runner.
    token: Person,
}

impl World {
    /// `None` where a program that the test needs is missing.
    fn new(test: &str) -> Option<World> {
        World::with(test, &[])
    }

    fn with(test: &str, settings: &[(&str, &str)]) -> Option<World> {
        if !requires::programs(test, &["git", "python3"]) {
            return None;
        }
        let git = Git::serve();
        let private = [("SVC_GIT_PRIVATE_HOSTS", git.host.as_str())];
        let service = Service::start_with(&[&private[..], settings].concat());
        let ada = service.register("ada");
        let (_, app) = service.project_with_app(&ada, None);
        let scopes = ["build:run", "artifact:upload"];
        let token = service.with_token(&ada, json!({"name": "runner", "scopes": scopes}));
        Some(World { git, service, ada, app, token })
    }

    fn call(&self, function: &str, params: Value) -> Value {
        self.service.call(Some(&self.ada), function, params).ok()
    }

    fn connect(&self) {
        let token = "s3cret-of-the-host";
        self.git.set("token", token);
        let params =
            json!({"appId": self.app, "url": self.git.url, "branch": "main", "token": token});
        let connected = self.call("svc_connectRepository", params);
        assert_eq!(connected["error"], Value::Null, "{connected}");
    }

    fn trigger(&self) -> Value {
        self.call("svc_triggerBuild", json!({"appId": self.app, "platform": "android"}))
    }

    fn build(&self, id: &Value) -> Value {
        self.call("svc_getBuild", json!({"buildId": id}))
    }

    /// Waits until a build is in this state.
    fn until(&self, id: &Value, state: &str, within: u64) -> Value {
        let begun = Instant::now();
        loop {
            let build = self.build(id);
            if build["state"] == state {
                return build;
            }
            let late = begun.elapsed() > Duration::from_secs(within);
            assert!(!late, "not {state}: {build}\n{}", self.log(id));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn log(&self, id: &Value) -> String {
        let page = self.call("svc_getBuildLogs", json!({"buildId": id}));
        let lines = page["lines"].as_array().unwrap().iter();
        lines.map(|line| format!("{}\n", line["text"].as_str().unwrap())).collect()
    }

    fn runner(&self, name: &str, more: &[&str]) -> Runner {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(SVC);
        command.args(["runner", "--labels", "linux,android", "--name", name, "--work-dir"]);
        command.arg(folder.path().join("work")).args(more).current_dir(folder.path());
        command.env("SVC_TOKEN", &self.token.token).env("SVC_API_URL", &self.service.url);
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = command.stdin(Stdio::null()).stderr(log).spawn().unwrap();
        Runner { child, folder }
    }
}

struct Runner {
    child: Child,
    folder: tempfile::TempDir,
}

impl Runner {
    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// The folders of builds.
    fn work(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path().join("work"));
        entries.unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("{}", self.log());
        }
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let (entry, to) = (entry.unwrap().path(), to.to_owned());
        let to = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            std::fs::create_dir_all(&to).unwrap();
            copy(&entry, &to);
        } else {
            std::fs::copy(&entry, &to).unwrap();
        }
    }
}

#[test]
fn a_real_app_is_built_verified_and_released() {
    let test = "a_real_app_is_built_verified_and_released";
    if !requires::programs(test, &["aapt2", "apksigner", "zipalign", "smali", "zip"]) {
        return;
    }
    let Some(world) = World::new(test) else { return };
    copy(&fixture("android-app"), &world.git.work());
    let key = "throwaway.p12";
    std::fs::copy(fixture(key), world.git.work().join(key)).unwrap();
    let commit = world.git.commit(&[]);
    world.connect();

    let mut runner = world.runner("pine", &["--once"]);
    let app = world.app.as_str().unwrap();
    let cli = |args: &[&str]| {
        let settings = [
            ("SVC_TOKEN", world.ada.token.as_str()),
            ("SVC_API_URL", world.service.url.as_str()),
            ("SVC_APP_ID", app),
            ("SVC_APPLICATION_ID", &world.service.application_id),
        ];
        world.service.cli_json(args, &settings[1..])
    };
    sign_in(&world);
    let build = cli(&["build", "trigger", "--platform", "android", "--follow"]);
    assert_eq!((&build["state"], &build["commit"]), (&json!("succeeded"), &json!(commit)));
    assert_eq!((&build["runner"], &build["attempts"]), (&json!("pine"), &json!(1)), "{build}");
    assert!(runner.child.wait().unwrap().success(), "{}", runner.log());
    assert_eq!(runner.work(), Vec::<PathBuf>::new(), "the folder of the build is removed");

    // The log is complete, and shows no secret.
    let logs = world.service.cli_with(
        &["builds", "logs", build["id"].as_str().unwrap()],
        &[("SVC_API_URL", &world.service.url)],
        "",
    );
    let logs = String::from_utf8(logs.stdout).unwrap();
    assert!(
        logs.contains("The runner pine got the build.\n") && logs.contains("\nbuilt 1.4.2\n"),
        "{logs}"
    );
    assert!(!logs.contains("s3cret"), "{logs}");

    // The service knows where the artifact comes from, whatever its uploader says.
    let artifact = world.call("svc_getArtifact", json!({"artifactId": build["artifactId"]}));
    assert_eq!((&artifact["state"], &artifact["version"]), (&json!("verified"), &json!("1.4.2")));
    let provenance = &artifact["provenance"];
    let known = json!({
        "path": "cli-trigger", "repository": world.git.url, "commit": commit, "ref": "main",
        "profile": "production", "buildId": build["id"], "claimed": false,
    });
    for (field, value) in known.as_object().unwrap() {
        assert_eq!(&provenance[field], value, "{field}: {artifact}");
    }

    let artifact = build["artifactId"].as_str().unwrap();
    let release = cli(&["release", "create", "--artifact", artifact]);
    let published =
        cli(&["release", "publish", release["id"].as_str().unwrap(), "--target", "ota"]);
    let page = published["publications"][0]["url"].as_str().unwrap();
    assert_eq!(world.service.http.get(page).send().unwrap().status(), 200);
    assert_eq!(cli(&["open"]), json!({"url": page}));
    let listed = cli(&["builds"]);
    assert_eq!(listed["items"], json!([build]));
}

/// Signs the command line in as Ada.
fn sign_in(world: &World) {
    let args = ["login", "--email", &world.ada.email, "--password-stdin"];
    let settings = [
        ("SVC_API_URL", world.service.url.as_str()),
        ("SVC_APPLICATION_ID", &world.service.application_id),
    ];
    let done = world.service.cli_with(&args, &settings, "correct horse");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The command of a build that says that it runs, and goes on when the file `go` is there.
fn waiting(folder: &Path) -> String {
    let sample = fixture("sample.apk");
    format!(
        "echo $$ > {0}/pid-$SVC_BUILD_ID; echo waiting; \
         while [ ! -e {0}/go ]; do sleep 0.1; done; cp {1} app.apk",
        folder.display(),
        sample.display()
    )
}

/// The process of a build that [`waiting`] began.
fn pid(folder: &Path, build: &Value) -> u32 {
    let file = folder.join(format!("pid-{}", build["id"].as_str().unwrap()));
    std::fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

#[test]
fn builds_survive_killed_runners_and_a_killed_service() {
    let Some(mut world) = World::new("builds_survive_killed_runners_and_a_killed_service") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    world.git.commit(&[config(&waiting(folder.path()))]);
    world.connect();
    let names = ["ash", "oak"];
    let mut runners = names.map(|name| world.runner(name, &[]));
    let builds = names.map(|_| world.trigger());
    for build in &builds {
        world.until(&build["id"], "running", 30);
    }
    let of = |name: &str| {
        let has = |build: &&Value| world.build(&build["id"])["runner"] == name;
        builds.iter().find(has).unwrap().clone()
    };
    let (lost, kept) = (of("ash"), of("oak"));
    let queued = world.trigger();

    // The service and one of the runners are gone at once; the build of the runner goes with it.
    let process = pid(folder.path(), &lost);
    assert!(is_alive(process));
    world.service.kill();
    runners[0].kill();
    eventually("the build of a killed runner ends", || !is_alive(process));
    world.service.boot();
    let after = world.build(&kept["id"]);
    assert_eq!((&after["state"], &after["attempts"]), (&json!("running"), &json!(1)), "{after}");

    // The other one goes on as if nothing had happened, and nothing of its log is lost.
    std::fs::write(folder.path().join("go"), "").unwrap();
    let made = world.until(&kept["id"], "succeeded", 60);
    assert_eq!((&made["runner"], &made["attempts"]), (&json!("oak"), &json!(1)), "{made}");
    assert_eq!(world.log(&kept["id"]).matches("waiting\n").count(), 1);
    world.until(&queued["id"], "succeeded", 60);

    // The lost build is tried once more.
    let made = world.until(&lost["id"], "succeeded", 180);
    assert_eq!((&made["runner"], &made["attempts"]), (&json!("oak"), &json!(2)), "{made}");
    let log = world.log(&lost["id"]);
    assert!(log.contains("The runner ash fell silent.\n"), "{log}");

    // A runner that starts in the same folder removes what the killed one left.
    assert_eq!(runners[0].work().len(), 1);
    let work = runners[0].folder.path().join("work");
    let mut cleaner = Command::new(SVC);
    cleaner.args(["runner", "--labels", "ios", "--work-dir"]).arg(&work);
    cleaner.env("SVC_TOKEN", &world.token.token).env("SVC_API_URL", &world.service.url);
    let mut cleaner = cleaner.stderr(Stdio::null()).spawn().unwrap();
    eventually("the folder is removed", || runners[0].work().is_empty());
    cleaner.kill().unwrap();
    cleaner.wait().unwrap();
    world.service.stop();
    world.service.check();
}

#[test]
fn a_build_that_is_cancelled_or_impossible_ends_with_its_reason() {
    let test = "a_build_that_is_cancelled_or_impossible_ends_with_its_reason";
    let Some(world) = World::new(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    world.git.commit(&[config(&waiting(folder.path()))]);
    world.connect();
    let _runner = world.runner("pine", &[]);
    let build = world.trigger();
    world.until(&build["id"], "running", 30);
    let process = pid(folder.path(), &build);
    world.call("svc_cancelBuild", json!({"buildId": build["id"]}));
    assert_eq!(world.build(&build["id"])["state"], "cancelled");
    eventually("its process ends", || !is_alive(process));
    let again =
        world.service.call(Some(&world.ada), "svc_cancelBuild", json!({"buildId": build["id"]}));
    assert_eq!(again.ok()["state"], "cancelled");

    // Each reason is in the record of the build.
    let with = |command: &str| world.git.commit(&[config(command)]);
    let outside = fixture("sample.apk");
    for (command, why) in [
        ("echo no; exit 7", "the command ended with exit status: 7"),
        ("true", "the command made no app.apk"),
        (
            &*format!("ln -s {} app.apk", outside.display()),
            "app.apk is a link out of the repository",
        ),
        ("mkfifo app.apk", "app.apk is not a file"),
        ("head -c 400000 /dev/zero; exit 9", "exit status: 9"),
        ("echo no app > app.apk", "is not"),
    ] {
        with(command);
        let build = world.trigger();
        let failed = world.until(&build["id"], "failed", 30);
        assert!(failed["error"].as_str().unwrap().contains(why), "{failed}");
        assert!(world.log(&build["id"]).contains("The build failed: "), "{failed}");
    }

    // What the repository lacks is known before any runner is asked.
    for (params, why) in [
        (json!({"profile": "preview"}), "has no build.android.preview"),
        (json!({"ref": "nowhere"}), "no such branch, tag or commit"),
    ] {
        let mut all = json!({"appId": world.app, "platform": "android"});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        let build = world.call("svc_triggerBuild", all);
        let failed = world.until(&build["id"], "failed", 30);
        assert!(failed["error"].as_str().unwrap().contains(why), "{failed}");
        assert_eq!(failed["attempts"], 0);
    }
    world.git.run(&["rm", "--quiet", ".svc/config.json"]);
    world.git.commit(&[("README.md", "nothing to build".into())]);
    let failed = world.until(&world.trigger()["id"], "failed", 30);
    assert!(failed["error"].as_str().unwrap().contains("has no .svc/config.json"), "{failed}");

    let params = json!({"appId": world.app, "platform": "ios"});
    world.call("updateApp", json!({"appId": world.app, "platforms": ["android"]}));
    let refused = world.service.call(Some(&world.ada), "svc_triggerBuild", params);
    assert_eq!(refused.refusal(), (400, 142));
    world.call("svc_disconnectRepository", json!({"appId": world.app}));
    let params = json!({"appId": world.app, "platform": "android"});
    let refused = world.service.call(Some(&world.ada), "svc_triggerBuild", params);
    assert_eq!(refused.refusal(), (404, 101));
}

#[test]
fn a_build_that_takes_too_long_ends() {
    let limit = [("SVC_BUILD_LIMIT", "3")];
    let Some(world) = World::with("a_build_that_takes_too_long_ends", &limit) else { return };
    world.git.commit(&[config("sleep 600")]);
    world.connect();
    let _runner = world.runner("pine", &[]);
    let build = world.until(&world.trigger()["id"], "timedOut", 60);
    assert_eq!(build["error"], "it did not end within 3 s", "{build}");
    // The runner works on.
    world.git.commit(&[config("false")]);
    world.until(&world.trigger()["id"], "failed", 30);
}

/// Whoever runs builds gets the token of the repository.
#[test]
fn only_those_who_lead_an_organization_run_its_builds() {
    let Some(world) = World::new("only_those_who_lead_an_organization_run_its_builds") else {
        return;
    };
    let bob = world.service.register("bob");
    let organization = world.call("createOrganization", json!({"name": "Acme"}))["id"].clone();
    let invited = json!({"organizationId": organization, "email": bob.email, "role": "client"});
    let token = world.call("inviteMember", invited)["acceptToken"].clone();
    world.service.call(Some(&bob), "acceptInvitation", json!({"token": token})).ok();
    let (project, app) = world.service.project_with_app(&world.ada, Some(&organization));
    world.call("svc_updateProject", json!({"projectId": project, "memberIds": [bob.id]}));
    let commit = world.git.commit(&[config("make")]);
    let params = json!({"appId": app, "url": world.git.url, "branch": "main", "token": "s3cret"});
    world.call("svc_connectRepository", params);
    let build = world.call("svc_triggerBuild", json!({"appId": app, "platform": "android"}));
    eventually("the repository was read", || world.build(&build["id"])["commit"] == json!(commit));

    // A member may trigger builds and read them, and may not run them.
    let read = world.service.call(Some(&bob), "svc_getBuild", json!({"buildId": build["id"]}));
    assert_eq!(read.ok()["state"], "queued");
    assert_eq!(claim(&world, &bob, &key(1), &["android"]), Value::Null);
    let role = |role: &str| json!({"organizationId": organization, "userId": bob.id, "role": role});
    world.call("updateMember", role("admin"));
    assert_eq!(claim(&world, &bob, &key(1), &["android"])["token"], "s3cret");
    // What the runner has is not repeated to somebody who may no longer have it.
    world.call("updateMember", role("client"));
    let params = json!({"runner": key(1), "name": "bob", "labels": ["android"]});
    let refused = world.service.call(Some(&bob), "svc_claimBuild", params);
    assert_eq!(refused.refusal(), (404, 101));
}

/// What a runner says without the program `svc runner`.
fn claim(world: &World, who: &Person, key: &str, labels: &[&str]) -> Value {
    let params = json!({"runner": key, "name": key, "labels": labels});
    world.service.call(Some(who), "svc_claimBuild", params).ok()["job"].clone()
}

fn key(number: usize) -> String {
    format!("key-of-the-runner-{number:04}")
}

#[test]
fn only_the_runner_of_a_build_reports_uploads_and_ends_it() {
    let Some(world) = World::new("only_the_runner_of_a_build_reports_uploads_and_ends_it") else {
        return;
    };
    let commit = world.git.commit(&[config("make")]);
    world.connect();
    let build = world.call(
        "svc_triggerMobileWorkflow",
        json!({"appId": world.app, "platform": "android", "labels": ["ndk"]}),
    );
    let id = &build["id"];
    eventually("the repository was read", || world.build(id)["commit"] == json!(commit));

    // Who does not reach the app gets nothing, and neither does a runner without the labels.
    let eve = world.service.register("eve");
    let scopes = json!(["build:run", "artifact:upload"]);
    let (_, other) = world.service.project_with_app(&world.ada, None);
    let bound = json!({"name": "bound", "scopes": scopes, "appId": other});
    let bound = world.service.with_token(&world.ada, bound);
    let eves = world.service.with_token(&eve, json!({"name": "eve", "scopes": scopes}));
    let all = ["android", "ndk"];
    let nothing = together(3, |n| match n {
        0 => claim(&world, &eves, &key(0), &all),
        1 => claim(&world, &bound, &key(1), &all),
        _ => claim(&world, &world.token, &key(2), &["android"]),
    });
    assert_eq!(nothing, [Value::Null, Value::Null, Value::Null]);
    let only_uploads = json!({"name": "ci", "scopes": ["artifact:upload"]});
    let only_uploads = world.service.with_token(&world.ada, only_uploads);
    let params = json!({"runner": key(3), "name": "ci", "labels": all});
    let refused = world.service.call(Some(&only_uploads), "svc_claimBuild", params);
    assert_eq!(refused.status, 403, "{}", refused.body);
    let params = json!({"runner": key(3), "name": "ci", "labels": ["linux"]});
    let refused = world.service.call(Some(&world.token), "svc_claimBuild", params);
    assert_eq!(refused.refusal(), (400, 142));

    // Sixteen runners ask at once: one gets the build, and gets it again if the reply was lost.
    let claims = together(16, |n| match n {
        // The others would wait for another build.
        0..4 => claim(&world, &world.token, &key(10 + n), &all),
        _ => claim(&world, &world.token, &key(10), &all),
    });
    let got: Vec<_> = claims.iter().filter(|job| !job.is_null()).collect();
    assert!(!got.is_empty() && got.iter().all(|job| job["buildId"] == *id), "{claims:?}");
    let holder = (0..4).find(|n| claims[*n] != Value::Null).map_or(10, |n| 10 + n);
    let order = claim(&world, &world.token, &key(holder), &all);
    assert_eq!((&order["token"], &order["commit"]), (&json!("s3cret-of-the-host"), &json!(commit)));
    assert_eq!((&order["command"], &order["artifact"]), (&json!("make"), &json!("app.apk")));

    let report = |number: usize, from: u32, lines: Value| {
        let params = json!({"buildId": id, "runner": key(number), "from": from, "lines": lines});
        world.service.call(Some(&world.token), "svc_reportBuild", params)
    };
    let open = |number: usize, platform: &str, file: &str| {
        let named = json!({"buildId": id, "runner": key(number)});
        let body = json!({"appId": world.app, "platform": platform, "fileName": file, "build": named,
            "provenance": {"path": "manual-upload", "commit": "f00"}});
        world.service.post(Some(&world.token), "upload-url", &body)
    };
    let finish = |number: usize, more: Value| {
        let mut params = json!({"buildId": id, "runner": key(number)});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.service.call(Some(&world.token), "svc_finishBuild", params)
    };
    let stranger = 99;
    assert_eq!(report(stranger, 0, json!(["mine"])).refusal(), (409, 119));
    assert_eq!(open(stranger, "android", "app.apk").refusal(), (409, 119));
    assert_eq!(finish(stranger, json!({"error": "mine"})).refusal(), (409, 119));

    assert_eq!(
        report(holder, 0, json!(["one", "two"])).ok(),
        json!({"state": "running", "lines": 2})
    );
    assert_eq!(report(holder, 0, json!(["one", "two", "three"])).ok()["lines"], 3);
    assert_eq!(report(holder, 7, json!(["eight"])).refusal(), (409, 119));
    assert_eq!(report(holder, 3, json!(vec!["x"; 1_001])).refusal(), (400, 142));
    assert!(world.log(id).ends_with("one\ntwo\nthree\n"), "{}", world.log(id));

    // An artifact of something else, and one that is not verified, are none of the build.
    assert_eq!(open(holder, "ios", "app.ipa").refusal(), (400, 142));
    let foreign = world.service.upload(&world.ada, &world.app, "sample.apk", "1.4.2");
    assert_eq!(finish(holder, json!({"artifactId": foreign["id"]})).refusal(), (409, 119));
    let opened = open(holder, "android", "app.apk");
    assert_eq!(opened.status, 201, "{}", opened.body);
    let artifact = opened.body["artifactId"].clone();
    assert_eq!(finish(holder, json!({"artifactId": artifact})).refusal(), (409, 119));
    assert_eq!(finish(holder, json!({})).refusal(), (400, 142));
    let bytes = std::fs::read(fixture("sample.apk")).unwrap();
    let sha256 = crate::support::service::sha256(&bytes);
    world.service.http.put(opened.body["uploadUrl"].as_str().unwrap()).body(bytes).send().unwrap();
    let address = format!("{}/finalize", artifact.as_str().unwrap());
    let verified = world.service.post(Some(&world.token), &address, &json!({"sha256": sha256}));
    assert_eq!(verified.status, 201, "{}", verified.body);
    assert_eq!(verified.body["provenance"]["commit"], json!(commit));

    let ended = together(16, |_| finish(holder, json!({"artifactId": artifact})));
    for build in ended {
        assert_eq!(build.ok()["state"], "succeeded");
    }
    assert_eq!(report(holder, 3, json!(["late"])).ok()["state"], "succeeded");
    assert_eq!(finish(holder, json!({"error": "late"})).refusal(), (409, 119));
    assert!(!world.log(id).contains("late"));
}

#[test]
fn a_hundred_runners_execute_each_of_a_thousand_builds_once() {
    let Some(world) = World::new("a_hundred_runners_execute_each_of_a_thousand_builds_once") else {
        return;
    };
    world.git.commit(&[config("make")]);
    // An app has at most a hundred builds under way.
    let apps: Vec<_> = (0..10)
        .map(|_| {
            let (_, app) = world.service.project_with_app(&world.ada, None);
            let params = json!({"appId": app, "url": world.git.url, "branch": "main"});
            world.call("svc_connectRepository", params);
            app
        })
        .collect();
    let trigger = |app: &Value| {
        let params = json!({"appId": app, "platform": "android"});
        world.service.call(Some(&world.ada), "svc_triggerBuild", params)
    };
    together(10, |n| (0..100).for_each(|_| drop(trigger(&apps[n]).ok())));
    assert_eq!(trigger(&apps[0]).refusal(), (409, 119));

    let begun = Instant::now();
    let executed = together(100, |n| {
        let mut executed = Vec::new();
        loop {
            let order = claim(&world, &world.token, &key(n), &["android"]);
            let Some(id) = order["buildId"].as_str() else { return executed };
            let params = json!({"buildId": id, "runner": key(n), "from": 0, "lines": ["a line"]});
            let report = world.service.call(Some(&world.token), "svc_reportBuild", params);
            assert_eq!(report.ok()["state"], "running");
            let params = json!({"buildId": id, "runner": key(n), "error": "as the test wants it"});
            world.service.call(Some(&world.token), "svc_finishBuild", params).ok();
            executed.push(id.to_owned());
        }
    });
    let mut executed = executed.concat();
    println!("{} builds in {:?}", executed.len(), begun.elapsed());
    executed.sort();
    executed.dedup();
    assert_eq!(executed.len(), 1_000);
    for app in &apps {
        let failed = json!({"appId": app, "state": "failed", "limit": 200});
        let builds = world.call("svc_getBuilds", failed)["items"].clone();
        let once = |build: &&Value| build["attempts"] == 1;
        assert_eq!(builds.as_array().unwrap().iter().filter(once).count(), 100);
    }
}
