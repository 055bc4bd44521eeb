//! `svc runner`: the real program, real git repositories, and a real Android app.

use crate::support::{
    builds::{World, config, open_folder},
    requires,
    service::{SVC, eventually, fixture},
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

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
    world.sign_in();
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
    let folder = open_folder();
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
    cleaner.args(["runner", "--labels", "ios", "--app", world.app.as_str().unwrap()]);
    cleaner.arg("--work-dir").arg(&work);
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
    let folder = open_folder();
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
        let cancel = json!({"buildId": build["id"]});
        let refused = world.service.call(Some(&world.ada), "svc_cancelBuild", cancel);
        assert_eq!(refused.refusal(), (409, 119));
        assert!(refused.body["error"].as_str().unwrap().contains("is failed"), "{}", refused.body);
    }

    // What the repository lacks is known before any runner is asked.
    let trigger = |params: Value| {
        let mut all = json!({"appId": world.app, "platform": "android"});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        world.service.call(Some(&world.ada), "svc_triggerBuild", all)
    };
    let refused = |params: Value, why: &str| {
        let answer = trigger(params);
        assert_eq!(answer.refusal(), (409, 119), "{}", answer.body);
        assert!(answer.body["error"].as_str().unwrap().contains(why), "{}", answer.body);
    };
    refused(json!({"profile": "preview"}), "has no build.android.preview");
    refused(json!({"platform": "ios"}), "has no build.ios.production");
    // No runner has this label, and one has asked for Android.
    let of = |params: Value| trigger(params).ok()["warnings"].clone();
    let warnings = of(json!({"labels": ["no-such-label"]}));
    assert!(warnings[0].as_str().unwrap().contains("android, no-such-label"), "{warnings}");
    assert_eq!(of(json!({})), json!([]));
    // A token of this scope triggers, follows and cancels builds of its app, and does nothing else.
    let params = json!({"name": "chat", "scopes": ["build:trigger"], "appId": world.app});
    let token = world.service.with_token(&world.ada, params);
    let with_token =
        |function: &str, params: Value| world.service.call(Some(&token), function, params);
    let wanted = json!({"appId": world.app, "platform": "android", "labels": ["no-such-label"]});
    let triggered = with_token("svc_triggerBuild", wanted).ok();
    let of_build = json!({"buildId": triggered["id"]});
    assert_eq!(with_token("svc_getBuild", of_build.clone()).ok()["id"], triggered["id"]);
    with_token("svc_getBuildLogs", of_build.clone()).ok();
    assert_eq!(with_token("svc_cancelBuild", of_build).ok()["state"], "cancelled");
    let of_app = json!({"appId": world.app});
    assert_eq!(with_token("svc_getArtifacts", of_app).refusal(), (403, 403));
    // Of another branch, the last check knows nothing.
    world.git.run(&["branch", "side"]);
    for (params, why) in [
        (json!({"ref": "nowhere"}), "no such branch, tag or commit"),
        (json!({"ref": "side", "profile": "preview"}), "has no build.android.preview"),
    ] {
        let failed = world.until(&trigger(params).ok()["id"], "failed", 30);
        assert!(failed["error"].as_str().unwrap().contains(why), "{failed}");
        assert_eq!(failed["attempts"], 0);
    }
    world.git.run(&["rm", "--quiet", ".svc/config.json"]);
    world.git.commit(&[("README.md", "nothing to build".into())]);
    let failed = world.until(&world.trigger()["id"], "failed", 30);
    assert!(failed["error"].as_str().unwrap().contains("has no .svc/config.json"), "{failed}");
    world.call("svc_checkRepository", json!({"appId": world.app}));
    refused(json!({}), "has no .svc/config.json");
    // What was mended since the last check is seen.
    world.git.commit(&[config("true")]);
    trigger(json!({})).ok();

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

/// Neither the environment of the build nor that of any process that it may look at holds the token
/// of the runner. Where the runner is root, the build runs as another user.
#[test]
fn a_build_cannot_read_the_token_of_its_runner() {
    let test = "a_build_cannot_read_the_token_of_its_runner";
    let Some(world) = World::new(test) else { return };
    let folder = open_folder();
    let seen = folder.path().join("seen");
    let command = format!(
        "env > own; cat /proc/[0-9]*/environ > {0} 2>/dev/null; cat /proc/[0-9]*/cmdline >> {0}; \
         echo new rights refused: $(sed -n 's/NoNewPrivs:.//p' /proc/self/status); \
         echo as $(id -un) with $(cut -d= -f1 own | sort | tr '\\n' ' '); \
         echo the token is s3cret-of-the-host; cp {1} app.apk",
        seen.display(),
        fixture("sample.apk").display()
    );
    world.git.commit(&[config(&command)]);
    world.connect();
    let mut runner = world.runner("pine", &["--once", "--pass-env", "SVC_API_URL"]);
    let build = world.trigger();
    world.until(&build["id"], "succeeded", 60);
    assert!(runner.child.wait().unwrap().success(), "{}", runner.log());
    let token = world.token.token.as_bytes();
    let seen = std::fs::read(seen).unwrap();
    assert!(seen.windows(5).any(|part| part == b"PATH="), "it can read its own");
    assert!(!seen.windows(token.len()).any(|part| part == token));
    let log = world.log(&build["id"]);
    let is_root = String::from_utf8(Command::new("id").arg("-u").output().unwrap().stdout);
    if is_root.unwrap().trim() == "0" {
        assert!(log.contains("\nas nobody with "), "{log}");
        assert!(log.contains("\nnew rights refused: 1\n"), "{log}");
    }
    let names =
        log.lines().find_map(|line| line.strip_prefix("as ")?.split_once(" with ")).unwrap().1;
    let known = [
        "ANDROID_HOME",
        "ANDROID_NDK_HOME",
        "ANDROID_SDK_ROOT",
        "CI",
        "DEVELOPER_DIR",
        "GRADLE_OPTS",
        "HOME",
        "JAVA_HOME",
        "LANG",
        "OLDPWD",
        "PATH",
        "PWD",
        "SHLVL",
        "SSL_CERT_FILE",
        "SVC_API_URL",
        "SVC_APP_ID",
        "SVC_BUILD_ID",
        "SVC_COMMIT",
        "SVC_PLATFORM",
        "SVC_PROFILE",
        "SVC_REF",
        "TERM",
        "TMPDIR",
        "TZ",
        "_",
    ];
    for name in names.split_whitespace() {
        assert!(known.contains(&name), "{name} in {names}");
    }
    assert!(names.contains("SVC_API_URL"), "{names}");
    // The command itself names the token of the repository, and no line of the log shows it.
    assert!(log.contains("\nthe token is ••••") && !log.contains("s3cret"), "{log}");
}

#[test]
fn a_runner_says_which_flags_it_lacks() {
    let Some(world) = World::new("a_runner_says_which_flags_it_lacks") else { return };
    let run = |more: &[&str]| {
        let mut command = Command::new(SVC);
        command.args(["runner", "--labels", "android", "--once"]).args(more);
        command.env("SVC_API_URL", &world.service.url).env("SVC_TOKEN", &world.token.token);
        command.env_remove("SVC_APP_ID").current_dir(&world.service.home);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run(&[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("--organization") && said.contains("--app"), "{said}");
    let (code, said) = run(&["--token", &world.token.token]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("SVC_TOKEN"), "{said}");
    let (code, said) = run(&["--user", "no-such-user-of-this-machine"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no-such-user-of-this-machine"), "{said}");
}
