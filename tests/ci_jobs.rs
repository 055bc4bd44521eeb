//! A CI job needs only a deploy token, the address of the service and the id of its app.

use crate::support::{
    load::together,
    service::{Person, Service, fixture, sha256},
};
use serde_json::{Value, json};
use std::process::Output;

/// All scopes of deploy tokens.
const SCOPES: [&str; 2] = ["artifact:upload", "release:create"];

struct Ci {
    service: Service,
    ada: Person,
    app: Value,
    token: Person,
}

impl Ci {
    fn new() -> Ci {
        let service = Service::start();
        let ada = service.register("ada");
        let (_, app) = service.project_with_app(&ada, None);
        let token = service.with_token(&ada, json!({"name": "ci", "scopes": SCOPES, "appId": app}));
        Ci { service, ada, app, token }
    }

    /// Runs a command with the three settings that a CI job has.
    fn run(&self, token: &Person, args: &[&str]) -> Output {
        let settings = [
            ("SVC_TOKEN", token.token.as_str()),
            ("SVC_API_URL", &self.service.url),
            ("SVC_APP_ID", self.app.as_str().unwrap()),
        ];
        self.service.cli_with(&[args, &["--json"]].concat(), &settings, "")
    }

    fn publish(&self, file: &str, more: &[&str]) -> Output {
        let path = fixture(file);
        self.run(&self.token, &[&["publish", path.to_str().unwrap()], more].concat())
    }
}

fn json_of(output: &Output) -> Value {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn the_jobs_of_a_matrix_publish_one_version_with_two_scopes() {
    let ci = Ci::new();
    let files = ["sample.apk", "sample.ipa"];
    let jobs = together(4, |job| ci.publish(files[job % 2], &["--auto-publish"]));
    let published: Vec<_> = jobs.iter().map(json_of).collect();
    let first = &published[0]["release"]["id"];
    for job in &published {
        assert_eq!(&job["release"]["id"], first);
        assert_eq!(
            (&job["artifact"]["version"], &job["release"]["version"]),
            (&json!("1.4.2"), &json!("1.4.2"))
        );
        assert_eq!(job["release"]["state"], "published", "{job}");
    }
    let read = ci.service.call(Some(&ci.ada), "svc_getRelease", json!({"releaseId": first})).ok();
    assert_eq!(read["artifactIds"].as_array().unwrap().len(), 2, "{read}");
    assert_eq!(read["publications"].as_array().unwrap().len(), 2, "{read}");

    // A second run of a job changes nothing.
    assert_eq!(json_of(&ci.publish("sample.apk", &["--auto-publish"]))["release"], read);
    // `svc release create` joins a release in the same way.
    let ids: Vec<_> =
        read["artifactIds"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    let create = |artifact: &str| {
        let args = ["release", "create", "--artifact", artifact, "--channel", "beta"];
        json_of(&ci.run(&ci.token, &args))
    };
    let one = create(ids[0]);
    let both = create(ids[1]);
    assert_eq!((&one["id"], both["artifactIds"].as_array().unwrap().len()), (&both["id"], 2));
    let published = ["release", "publish", one["id"].as_str().unwrap(), "--target", "ota"];
    assert_eq!(json_of(&ci.run(&ci.token, &published))["state"], "published");
}

#[test]
fn a_token_publishes_what_it_created_and_nothing_else() {
    let ci = Ci::new();
    let artifact = ci.service.upload(&ci.ada, &ci.app, "sample.apk", "1.4.2");
    let create = |who: &Person, channel: &str| {
        let params = json!({"appId": ci.app, "artifactIds": [artifact["id"]], "channel": channel});
        ci.service.call(Some(who), "svc_createRelease", params).ok()
    };
    let publish = |who: &Person, release: &Value| {
        let params = json!({"releaseId": release["id"], "targets": ["ota"]});
        ci.service.call(Some(who), "svc_publishRelease", params)
    };
    let token = |scopes: &[&str]| {
        ci.service.with_token(&ci.ada, json!({"name": "ci", "scopes": scopes, "appId": ci.app}))
    };
    let (other, uploading, publishing) =
        (token(&SCOPES), token(&["artifact:upload"]), token(&["release:publish"]));
    let own = create(&ci.token, "own");
    for stranger in [&other, &uploading] {
        let refused = publish(stranger, &own);
        assert_eq!(refused.refusal(), (403, 403));
        assert!(refused.body["error"].as_str().unwrap().contains("release:publish"));
    }
    assert_eq!(publish(&ci.token, &own).ok()["state"], "published");
    let adas = create(&ci.ada, "adas");
    assert_eq!(publish(&ci.token, &adas).refusal(), (403, 403));
    assert_eq!(publish(&publishing, &adas).ok()["state"], "published");
    let back = json!({"releaseId": own["id"]});
    let refused = ci.service.call(Some(&ci.token), "svc_rollbackRelease", back);
    assert_eq!(refused.refusal(), (403, 403), "to publish is not to take back");

    // Finalizing refuses before it verifies anything.
    create(&ci.ada, "taken");
    let bytes = std::fs::read(fixture("sample.ipa")).unwrap();
    let upload = ci.service.send(&ci.token, &ci.app, "sample.ipa", Some("1.4.2"));
    let finalize = |channel: &str| {
        let release = json!({"channel": channel, "publish": ["ota"]});
        let body = json!({"sha256": sha256(&bytes), "createRelease": release});
        ci.service.post(Some(&ci.token), &format!("{upload}/finalize"), &body)
    };
    assert_eq!(finalize("taken").refusal(), (403, 403));
    let state = ci.service.call(Some(&ci.ada), "svc_getArtifact", json!({"artifactId": upload}));
    assert_eq!(state.ok()["state"], "pending");
    assert_eq!(finalize("fresh").status, 201);
}

#[test]
fn no_application_id_is_needed_with_a_token() {
    let ci = Ci::new();
    let call = |function: &str, params: Value| {
        let url = format!("{}/backend/functions/{function}", ci.service.url);
        let request = ci.service.http.post(url).json(&params);
        Service::answer(request.bearer_auth(&ci.token.token).send().unwrap()).unwrap()
    };
    let artifact = ci.service.upload(&ci.token, &ci.app, "sample.apk", "1.4.2");
    let params = json!({"appId": ci.app, "artifactIds": [artifact["id"]], "channel": "beta"});
    let made = call("svc_createRelease", params).ok();
    let publish = json!({"releaseId": made["id"], "targets": ["ota"]});
    assert_eq!(call("svc_publishRelease", publish).ok()["state"], "published");
    assert_eq!(json_of(&ci.run(&ci.token, &["releases"]))["items"][0]["id"], made["id"]);
}

/// Anyone who can open a pull request may change the configuration of the repository.
#[test]
fn a_token_is_not_sent_to_an_address_that_the_repository_names() {
    let ci = Ci::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = format!("http://{}", listener.local_addr().unwrap());
    std::fs::create_dir_all(ci.service.home.join(".svc")).unwrap();
    let config = json!({"apiUrl": elsewhere, "app": ci.app}).to_string();
    std::fs::write(ci.service.home.join(".svc/config.json"), config).unwrap();
    let token = [("SVC_TOKEN", ci.token.token.as_str())];
    let refused = ci.service.cli_with(&["releases"], &token, "");
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains(&elsewhere) && said.contains("SVC_API_URL"), "{said}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody came");
    assert!(ci.run(&ci.token, &["releases"]).status.success(), "the environment names the service");
}

/// The master key is accepted, and its artifacts and releases have no creator.
#[test]
fn what_the_master_key_makes_was_created_by_nobody() {
    let ci = Ci::new();
    let key = ci.service.master_key();
    let http = reqwest::blocking::Client::new();
    let call = |function: &str, params: &Value| {
        let request = ci.service.request(&http, function, params);
        Service::answer(request.header("X-Backend-Master-Key", &key).send().unwrap()).unwrap()
    };
    let artifact = ci.service.upload(&ci.ada, &ci.app, "sample.apk", "1.4.2");
    let params = json!({"appId": ci.app, "artifactIds": [artifact["id"]], "channel": "beta"});
    let made = call("svc_createRelease", &params).ok();
    assert_eq!((&made["createdBy"], made.get("createdBy").is_some()), (&Value::Null, true));
    let publish = json!({"releaseId": made["id"], "targets": ["ota"]});
    assert_eq!(call("svc_publishRelease", &publish).ok()["state"], "published");
    let opening = json!({"appId": ci.app, "platform": "ios", "fileName": "app.ipa"});
    let request = ci.service.http.post(format!("{}/api/v1/artifacts/upload-url", ci.service.url));
    let opened = request.header("X-Backend-Master-Key", &key).json(&opening).send().unwrap();
    assert_eq!(opened.status(), 201);
    let opened: Value = opened.json().unwrap();
    let read = call("svc_getArtifact", &json!({"artifactId": opened["artifactId"]})).ok();
    assert_eq!(read["provenance"]["uploadedBy"], Value::Null);
}

#[test]
fn doctor_names_the_scopes_that_a_token_lacks() {
    let ci = Ci::new();
    for (scopes, expected, succeeds) in [
        (&SCOPES[..], ["info", "info"], true),
        (&["artifact:upload"], ["info", "warning"], true),
        (&["release:create"], ["error", "info"], false),
    ] {
        let params = json!({"name": "ci", "scopes": scopes, "appId": ci.app});
        let token = ci.service.with_token(&ci.ada, params);
        let done = ci.run(&token, &["doctor"]);
        let said: Value = serde_json::from_slice(&done.stdout).unwrap();
        let found = said["findings"].as_array().unwrap().iter();
        let found: Vec<_> =
            found.filter(|f| f["check"] == "scope").map(|f| &f["severity"]).collect();
        assert_eq!(found, expected, "{scopes:?}: {said}");
        assert_eq!(done.status.success(), succeeds, "{scopes:?}: {said}");
    }
}
