//! Repositories of apps: connected, classified by their real files, and checked again.

use crate::support::{
    git::Git,
    load::together,
    requires,
    service::{Person, Service, eventually, holds},
};
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::{
    io::Write,
    process::{Command, Stdio},
};

const CONFIG: &str = include_str!("../data/fixtures/managed/.svc/config.json");
const WORKFLOW: &str = include_str!("../data/fixtures/managed/.github/workflows/svc-build.yml");

fn managed() -> [(&'static str, String); 3] {
    let package = ("package.json", "{}".to_owned());
    let config = (".svc/config.json", CONFIG.to_owned());
    [package, config, (".github/workflows/svc-build.yml", WORKFLOW.to_owned())]
}

struct World {
    // Ends first, while what it talks to is there.
    service: Service,
    git: Git,
    ada: Person,
    app: Value,
}

impl World {
    /// `None` where a program that the test needs is missing.
    fn new(test: &str) -> Option<World> {
        if !requires::programs(test, &["git", "openssl", "python3"]) {
            return None;
        }
        let git = Git::serve();
        let service = Service::start_with(&[("SVC_GIT_PRIVATE_HOSTS", &git.host)]);
        let ada = service.register("ada");
        let (_, app) = service.project_with_app(&ada, None);
        Some(World { git, service, ada, app })
    }

    fn call(&self, function: &str, params: Value) -> Value {
        let mut all = json!({"appId": self.app});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        self.service.call(Some(&self.ada), function, all).ok()
    }

    fn connect(&self, params: Value) -> Value {
        let mut all = json!({"url": self.git.url});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        self.call("svc_connectRepository", all)
    }

    fn check(&self) -> Value {
        self.call("svc_checkRepository", json!({}))
    }
}

/// `id:line` of the findings.
fn found(repository: &Value) -> Vec<String> {
    let findings = repository["findings"].as_array().unwrap().iter();
    findings.map(|f| format!("{}:{}", f["check"].as_str().unwrap(), f["line"])).collect()
}

#[test]
fn a_repository_is_classified_by_what_is_in_it_now() {
    let Some(world) = World::new("a_repository_is_classified_by_what_is_in_it_now") else { return };
    let first = world.git.commit(&[("README.md", "an app".into())]);
    let connected = world.connect(json!({}));
    assert_eq!(connected["mode"], "artifact-only", "{connected}");
    assert_eq!((&connected["commit"], &connected["branch"]), (&json!(first), &json!("main")));
    assert_eq!((&connected["host"], &connected["checking"]), (&json!("git"), &json!(false)));
    assert_eq!(
        found(&connected),
        ["package-missing:null", "config-missing:null", "workflow-missing:null"]
    );
    let app = world.call("getApp", json!({}));
    assert_eq!(app["repository"], connected);

    world.git.commit(&managed());
    let before = world.git.sent();
    let checked = world.check();
    assert_eq!((&checked["mode"], found(&checked)), (&json!("managed"), vec![]));
    let of_new = world.git.sent() - before;
    // A commit that was read before is not fetched again.
    let again = world.check();
    assert_eq!((&again["commit"], &again["mode"]), (&checked["commit"], &json!("managed")));
    let of_known = world.git.sent() - before - of_new;
    assert!(of_known * 2 < of_new, "{of_known} bytes for a known commit, {of_new} for a new one");

    // A repository stays managed, and says what is wrong in which line.
    let broken = CONFIG.replace("build/app.aab", "../app.aab");
    let commit = world.git.commit(&[(".svc/config.json", broken)]);
    let checked = world.check();
    assert_eq!((&checked["mode"], &checked["commit"]), (&json!("managed"), &json!(commit)));
    assert_eq!(found(&checked), ["config-artifact-path:13"]);
    // What a finding quotes of a file is short.
    let long = CONFIG.replace("build/app.aab", &format!("../{}.aab", "x".repeat(100_000)));
    world.git.commit(&[(".svc/config.json", long)]);
    assert!(world.check().to_string().len() < 4_000);
    assert_eq!(checked["detected"][1]["problem"], checked["findings"][0]["problem"]);

    // What is no regular file is there and cannot be read.
    std::fs::create_dir(world.git.work().join("away")).unwrap();
    world.git.run(&["mv", "package.json", "away/package.json"]);
    std::os::unix::fs::symlink("away/package.json", world.git.work().join("package.json")).unwrap();
    world.git.commit(&[(".svc/config.json", CONFIG.into())]);
    assert_eq!(found(&world.check()), ["file-readable:null"]);

    // A force push, and another default branch.
    world.git.run(&["reset", "--quiet", "--hard", &first]);
    assert_eq!(world.check()["commit"], json!(first));
    world.git.run(&["checkout", "--quiet", "-b", "develop"]);
    let commit = world.git.commit(&managed());
    let checked = world.check();
    assert_eq!((&checked["branch"], &checked["commit"]), (&json!("develop"), &json!(commit)));
    let connected = world.connect(json!({"branch": "main"}));
    assert_eq!(
        (&connected["branch"], &connected["mode"]),
        (&json!("main"), &json!("artifact-only"))
    );

    let gone = world.call("svc_disconnectRepository", json!({}));
    assert_eq!(gone["deleted"], world.app);
    for function in ["svc_getRepository", "svc_checkRepository", "svc_disconnectRepository"] {
        let refused = world.service.call(Some(&world.ada), function, json!({"appId": world.app}));
        assert_eq!(refused.refusal(), (404, 101));
    }
    assert_eq!(world.call("getApp", json!({}))["repository"], Value::Null);
}

#[test]
fn a_repository_that_cannot_be_read_says_why_and_keeps_its_last_check() {
    let Some(world) =
        World::new("a_repository_that_cannot_be_read_says_why_and_keeps_its_last_check")
    else {
        return;
    };
    let why = |repository: &Value| repository["error"].as_str().unwrap().to_owned();
    let empty = world.connect(json!({}));
    assert!(why(&empty).contains("empty"), "{empty}");
    assert_eq!(empty["mode"], "unclassified");

    let commit = world.git.commit(&managed());
    assert_eq!(world.check()["error"], Value::Null);
    world.git.set("token", "another");
    let kept = world.check();
    assert!(why(&kept).contains("token"), "{kept}");
    assert_eq!((&kept["mode"], &kept["commit"]), (&json!("managed"), &json!(commit)));
    world.git.unset("token");

    let none = world.connect(json!({"branch": "none"}));
    assert!(why(&none).contains("no such branch"), "{none}");
    let inside = world.connect(json!({"url": "http://127.0.0.1:1/app.git"}));
    assert!(why(&inside).contains("use https"), "{inside}");
    let inside = world.connect(json!({"url": "https://127.0.0.1:1/app.git"}));
    assert!(why(&inside).contains("SVC_GIT_PRIVATE_HOSTS"), "{inside}");
    let dotted = world.connect(json!({"url": "https://git.example.com./app.git"}));
    assert!(why(&dotted).contains("final dot"), "{dotted}");
    for url in ["file:///etc", "https://ada:secret@git.example.com/app.git", "--upload-pack=x"] {
        let params = json!({"appId": world.app, "url": url});
        let refused = world.service.call(Some(&world.ada), "svc_connectRepository", params);
        assert_eq!(refused.refusal(), (400, 142));
    }
}

#[test]
fn a_private_repository_is_read_with_its_token_and_nobody_sees_it() {
    let Some(world) = World::new("a_private_repository_is_read_with_its_token_and_nobody_sees_it")
    else {
        return;
    };
    world.git.commit(&managed());
    world.git.set("token", "svc-s3cret-t0ken");
    let refused = world.connect(json!({}));
    assert!(refused["error"].as_str().unwrap().contains("connect it with a token"), "{refused}");
    let refused = world.connect(json!({"token": "wrong"}));
    assert!(refused["error"].as_str().unwrap().contains("does not accept the token"), "{refused}");

    let Service { url, application_id, .. } = &world.service;
    let login = ["login", "--api-url", url, "--application-id", application_id];
    let login = [&login[..], &["--email", &world.ada.email, "--password-stdin"]].concat();
    let signed_in = world.service.cli_with(&login, &[], "correct horse");
    assert!(signed_in.status.success(), "{signed_in:?}");
    let connect = |input: &str| {
        let app = world.app.as_str().unwrap();
        let args = ["repo", "connect", &world.git.url, "--app", app, "--token-stdin", "--json"];
        world.service.cli_with(&args, &[], input)
    };
    let connected = connect("svc-s3cret-t0ken\n");
    assert!(connected.status.success(), "{connected:?}");
    let connected: Value = serde_json::from_slice(&connected.stdout).unwrap();
    assert_eq!((&connected["mode"], &connected["hasToken"]), (&json!("managed"), &json!(true)));
    assert_eq!(connect("two words").status.code(), Some(2));

    assert_eq!(world.check()["error"], Value::Null);
    let shown = world.call("svc_getRepository", json!({})).to_string();
    let known = [shown, world.service.log()].concat();
    let data = world.service.data();
    assert!(holds(&data, world.ada.email.as_bytes()), "the search finds what lies in a file");
    // The token, and the header that carries it.
    for secret in ["s3cret", &BASE64.encode(b"x-token-auth:svc-s3cret-t0ken")] {
        assert!(!known.contains(secret), "{known}");
        assert!(!holds(&data, secret.as_bytes()), "the token lies in a file");
    }

    // A redirection does not take the token to another server.
    let other = Git::serve();
    other.commit(&managed());
    world.git.set("elsewhere", &format!("http://{}", other.host));
    let refused = world.check();
    assert!(refused["error"].as_str().unwrap().contains("redirects"), "{refused}");
    assert_eq!(other.sent(), 0);
    world.git.unset("elsewhere");

    // Another connection forgets the token.
    let forgotten = world.connect(json!({}));
    assert!(forgotten["error"].is_string() && forgotten["hasToken"] == false, "{forgotten}");
}

#[test]
fn only_a_little_of_a_large_repository_is_fetched() {
    let Some(world) = World::new("only_a_little_of_a_large_repository_is_fetched") else { return };
    let mut noise = vec![0; 16 << 20];
    fastrand::fill(&mut noise);
    std::fs::write(world.git.work().join("film.bin"), noise).unwrap();
    for n in 0..20 {
        world.git.commit(&[("history.txt", n.to_string())]);
    }
    world.git.commit(&managed());
    assert_eq!(world.connect(json!({}))["mode"], "managed");
    assert!(world.git.sent() < 100_000, "{} bytes were fetched", world.git.sent());
}

#[test]
fn many_callers_connect_and_check_one_repository() {
    let Some(mut world) = World::new("many_callers_connect_and_check_one_repository") else {
        return;
    };
    world.git.commit(&managed());
    let connected = together(16, |_| world.connect(json!({})));
    let checked = together(16, |_| world.check());
    for repository in connected.iter().chain(&checked) {
        assert_eq!(repository["error"], Value::Null, "{repository}");
    }
    assert_eq!(world.call("svc_getRepository", json!({}))["mode"], "managed");
    // Some disconnect while others connect: each call is answered, and the end is one of the two.
    let answers = together(16, |caller| {
        let params = json!({"appId": world.app, "url": world.git.url});
        match caller % 2 {
            0 => world.service.call(Some(&world.ada), "svc_connectRepository", params),
            _ => {
                let params = json!({"appId": world.app});
                world.service.call(Some(&world.ada), "svc_disconnectRepository", params)
            }
        }
    });
    for answer in &answers {
        assert!(matches!(answer.status, 200 | 404), "{}", answer.body);
    }
    world.service.stop();
    world.service.check();
}

#[test]
fn a_signed_push_begins_a_check() {
    let Some(world) = World::new("a_signed_push_begins_a_check") else { return };
    world.git.commit(&[("README.md", "an app".into())]);
    world.connect(json!({}));
    let webhook = world.call("svc_getRepositoryWebhook", json!({}));
    let secret = webhook["secret"].as_str().unwrap();
    let send = |header: &str, value: &str, body: &str| {
        let request = world.service.http.post(webhook["url"].as_str().unwrap());
        let request = request.header(header, value).header("Content-Type", "application/json");
        let answer = Service::answer(request.body(body.to_owned()).send().unwrap()).unwrap();
        (answer.status, answer.body)
    };
    let push = |branch: &str| json!({"ref": format!("refs/heads/{branch}")}).to_string();
    let main = push("main");
    let signed = |body: &str| send("X-Hub-Signature-256", &signature(secret, body), body);

    let commit = world.git.commit(&managed());
    assert_eq!(signed(&main), (202, json!({"checking": true})));
    eventually("the push is checked", || {
        world.call("svc_getRepository", json!({}))["commit"] == json!(commit)
    });
    assert_eq!(send("X-Gitlab-Token", secret, &main), (202, json!({"checking": true})));
    assert_eq!(signed(&push("other")), (202, json!({"checking": false})));
    assert_eq!(signed(r#"{"zen": "Design for failure."}"#), (202, json!({"checking": false})));

    let wrong = signature("another secret", &main);
    for (header, value, body) in [
        ("X-Hub-Signature-256", wrong.as_str(), main.as_str()),
        ("X-Hub-Signature-256", &signature(secret, &main), &push("next")),
        ("X-Hub-Signature-256", "sha256=", &main),
        ("X-Hub-Signature-256", "sha1=00", &main),
        ("X-Gitlab-Token", "another secret", &main),
        ("X-Other", "", &main),
    ] {
        let (status, answer) = send(header, value, body);
        assert_eq!((status, &answer["code"]), (401, &json!(119)), "{header}: {value}: {answer}");
    }
    assert_eq!(signed("no JSON").0, 400);
    let nowhere = format!("{}/api/v1/repositories/no-app/push", world.service.url);
    let refused =
        Service::answer(world.service.http.post(nowhere).body(main.clone()).send().unwrap());
    assert_eq!(refused.unwrap().refusal(), (404, 101));

    // A push during a check is checked after it.
    world.git.set("slow", "");
    std::thread::scope(|threads| {
        threads.spawn(|| world.check());
        eventually("the check runs", || {
            world.call("svc_getRepository", json!({}))["checking"] == true
        });
        let commit = world.git.commit(&[("late.txt", "late".into())]);
        assert_eq!(signed(&main).0, 202);
        world.git.unset("slow");
        eventually("the late push is checked", || {
            let repository = world.call("svc_getRepository", json!({}));
            repository["commit"] == json!(commit) && repository["checking"] == false
        });
    });

    // Another connection of the same repository has another secret.
    world.call("svc_disconnectRepository", json!({}));
    world.connect(json!({}));
    assert_ne!(world.call("svc_getRepositoryWebhook", json!({}))["secret"], secret);
    assert_eq!(signed(&main).0, 401);
}

/// The signature of a body, as another implementation makes it.
fn signature(secret: &str, body: &str) -> String {
    let mut openssl = Command::new("openssl");
    openssl.args(["dgst", "-sha256", "-hmac", secret]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut openssl = openssl.spawn().unwrap();
    openssl.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let printed = String::from_utf8(openssl.wait_with_output().unwrap().stdout).unwrap();
    format!("sha256={}", printed.trim().rsplit_once(' ').unwrap().1)
}

#[test]
fn a_check_goes_on_after_a_crash() {
    let Some(mut world) = World::new("a_check_goes_on_after_a_crash") else { return };
    world.git.commit(&managed());
    world.git.set("slow", "");
    std::thread::scope(|threads| {
        let params = json!({"appId": world.app, "url": world.git.url});
        let (service, ada) = (&world.service, &world.ada);
        threads.spawn(move || service.try_call(Some(ada), "svc_connectRepository", params, None));
        eventually("the check runs", || {
            let params = json!({"appId": world.app});
            let read = world.service.call(Some(&world.ada), "svc_getRepository", params);
            read.status == 200 && read.body["result"]["checking"] == true
        });
        world.service.signal("KILL");
    });
    world.service.kill();
    world.git.unset("slow");
    world.service.boot();
    eventually("the check is done", || {
        let repository = world.call("svc_getRepository", json!({}));
        repository["mode"] == "managed" && repository["checking"] == false
    });
    assert_eq!(std::fs::read_dir(world.service.data().join("repositories")).unwrap().count(), 0);
}
