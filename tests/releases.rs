//! Several jobs build up a release, in any order and at the same time.

use crate::support::{
    load::together,
    service::{Answer, Person, Service, fixture, sha256},
};
use serde_json::{Value, json};

/// A team with one app, and a deploy token of its CI with both scopes.
pub struct Team {
    pub service: Service,
    pub ada: Person,
    pub app: Value,
    ci: Person,
}

impl Team {
    pub fn new() -> Team {
        let service = Service::start();
        let ada = service.register("ada");
        let (_, app) = service.project_with_app(&ada, None);
        let scopes =
            json!({"name": "ci", "scopes": ["artifact:upload", "release:create"], "appId": app});
        let ci = service.with_token(&ada, scopes);
        Team { service, ada, app, ci }
    }

    pub fn call(&self, function: &str, params: Value) -> Answer {
        self.service.call(Some(&self.ada), function, params)
    }

    /// Uploads a fixture of version 1.4.2 and has it verified. Returns the id of the artifact.
    pub fn artifact(&self, file: &str) -> Value {
        self.service.upload(&self.ada, &self.app, file, "1.4.2")["id"].clone()
    }

    /// Finalizes an upload with `createRelease`.
    fn finalize(&self, who: &Person, id: &str, file: &str, release: &Value) -> Answer {
        let bytes = std::fs::read(fixture(file)).unwrap();
        let body = json!({"sha256": sha256(&bytes), "createRelease": release});
        self.service.post(Some(who), &format!("{id}/finalize"), &body)
    }

    pub fn create(&self, artifact: &Value, channel: &str) -> Answer {
        let params = json!({"appId": self.app, "artifactIds": [artifact], "channel": channel});
        self.call("svc_createRelease", params)
    }

    pub fn join(&self, release: &Value, artifact: &Value) -> Answer {
        let params = json!({"releaseId": release["id"], "addArtifactIds": [artifact]});
        self.call("svc_updateRelease", params)
    }

    pub fn publish(&self, release: &Value) -> Value {
        let params = json!({"releaseId": release["id"], "targets": ["ota"]});
        self.call("svc_publishRelease", params).ok()
    }

    fn releases(&self, filter: Value) -> Vec<Value> {
        let mut params = filter;
        params["appId"] = self.app.clone();
        self.call("svc_getReleases", params).ok()["items"].as_array().unwrap().clone()
    }

    /// The only release of a channel.
    fn only(&self, channel: &str) -> Value {
        let releases = self.releases(json!({"channel": channel}));
        assert_eq!(releases.len(), 1, "{releases:?}");
        releases[0].clone()
    }

    pub fn check(mut self) {
        self.service.stop();
        self.service.check();
    }
}

pub fn live(release: &Value) -> usize {
    let publications = release["publications"].as_array().unwrap();
    publications.iter().filter(|publication| publication["state"] == "live").count()
}

fn holds(release: &Value) -> usize {
    release["artifactIds"].as_array().unwrap().len()
}

#[test]
fn the_jobs_of_two_platforms_make_one_release_at_the_same_time() {
    let team = Team::new();
    let files = ["sample.apk", "sample.ipa"];
    for (channel, publish) in [("drafts", json!([])), ("production", json!(["ota"]))] {
        let uploads = files.map(|file| team.service.send(&team.ada, &team.app, file, None));
        let release = json!({"channel": channel, "publish": publish});
        let answers = together(16, |caller| {
            team.finalize(&team.ci, &uploads[caller % 2], files[caller % 2], &release)
        });
        for answer in &answers {
            assert!([200, 201].contains(&answer.status), "{}", answer.body);
            assert_eq!(answer.body["state"], "verified");
        }
        let made = team.only(channel);
        let published = channel == "production";
        let (state, gone_out) = if published { ("published", 2) } else { ("draft", 0) };
        assert_eq!((holds(&made), live(&made), &made["state"]), (2, gone_out, &json!(state)));
        assert_eq!((&made["version"], &made["createdBy"]), (&json!("1.4.2"), &json!(team.ada.id)));
    }
    team.check();
}

/// Each job has a token of its own, which can publish only what it created.
#[test]
fn the_jobs_of_two_tokens_make_one_release_at_the_same_time() {
    let team = Team::new();
    let scopes =
        json!({"name": "ios", "scopes": ["artifact:upload", "release:create"], "appId": team.app});
    let tokens = [team.ci.clone(), team.service.with_token(&team.ada, scopes)];
    let files = ["sample.apk", "sample.ipa"];
    for channel in ["production", "beta", "nightly"] {
        let uploads = [0, 1].map(|n| team.service.send(&tokens[n], &team.app, files[n], None));
        let release = json!({"channel": channel, "publish": ["ota"]});
        let answers = together(16, |caller| {
            let job = caller % 2;
            team.finalize(&tokens[job], &uploads[job], files[job], &release)
        });
        for answer in &answers {
            assert!([200, 201].contains(&answer.status), "{}", answer.body);
        }
        let made = team.only(channel);
        assert_eq!((holds(&made), live(&made), &made["state"]), (2, 2, &json!("published")));
    }
    // A target that the release is not published to needs the scope, and nothing happens without it.
    let android = team.artifact("sample.apk");
    let draft = team.create(&android, "drafts").ok();
    // If only the file tells its version, it is verified first, and joins nothing.
    for (version, state) in [(Some("1.4.2"), "pending"), (None, "verified")] {
        let upload = team.service.send(&tokens[1], &team.app, "sample.ipa", version);
        let release = json!({"channel": "drafts", "publish": ["ota"]});
        let refused = team.finalize(&tokens[1], &upload, "sample.ipa", &release);
        assert_eq!(refused.refusal(), (403, 403));
        let read = team.call("svc_getArtifact", json!({"artifactId": upload})).ok();
        assert_eq!((&read["state"], &team.only("drafts")), (&json!(state), &draft));
    }
    team.check();
}

/// What a target lacks is said before anything is verified, made or queued.
#[test]
fn a_target_that_cannot_work_is_refused_at_once() {
    let team = Team::new();
    let android = team.artifact("sample.apk");
    let draft = team.create(&android, "store").ok();
    for (target, why) in [("google-play", "googleServiceAccount"), ("app-store", "no artifact")] {
        let params = json!({"releaseId": draft["id"], "targets": [target]});
        let refused = team.call("svc_publishRelease", params);
        assert_eq!(refused.refusal(), (409, 119));
        assert!(refused.body["error"].as_str().unwrap().contains(why), "{}", refused.body);
        let upload = team.service.send(&team.ci, &team.app, "sample-1.5.0.apk", Some("1.5.0"));
        let release = json!({"channel": "ci", "publish": [target]});
        let refused = team.finalize(&team.ci, &upload, "sample-1.5.0.apk", &release);
        assert_eq!(refused.refusal(), (409, 119));
        let read = team.call("svc_getArtifact", json!({"artifactId": upload})).ok();
        assert_eq!(read["state"], "pending");
    }
    assert_eq!(team.only("store"), draft);
    assert_eq!(team.releases(json!({"channel": "ci"})), Vec::<Value>::new());
    let settings = [("SVC_API_URL", team.service.url.as_str()), ("SVC_TOKEN", &team.ada.token)];
    let settings = [&settings[..], &[("SVC_APPLICATION_ID", &*team.service.application_id)]];
    let args = ["release", "publish", draft["id"].as_str().unwrap(), "--target", "google-play"];
    assert_eq!(team.service.cli_with(&args, &settings.concat(), "").status.code(), Some(1));
}

#[test]
fn what_joins_a_published_release_is_published_to_the_same_targets() {
    let team = Team::new();
    let android = team.artifact("sample.apk");
    let made = team.create(&android, "production").ok();
    assert_eq!(team.publish(&made)["state"], "published");
    let upload = team.service.send(&team.ci, &team.app, "sample.ipa", None);
    let release = json!({"channel": "production"});
    let joined = team.finalize(&team.ci, &upload, "sample.ipa", &release);
    assert_eq!(joined.status, 201, "{}", joined.body);
    let now = team.only("production");
    assert_eq!((&now["id"], &now["state"]), (&made["id"], &json!("published")));
    assert_eq!((holds(&now), live(&now)), (2, 2));
    assert_eq!(now["publishedAt"], team.publish(&made)["publishedAt"]);
    for platform in ["ios", "android"] {
        let params = json!({"appId": team.app, "channel": "production", "platform": platform});
        let found = team.service.call(None, "svc_getLatestRelease", params).ok();
        assert_eq!(found["artifact"]["platform"], platform);
    }

    // Finalizing again with the same channel changes nothing. Another channel gets its own release.
    let again = team.finalize(&team.ci, &upload, "sample.ipa", &release);
    assert_eq!((again.status, &again.body), (200, &joined.body));
    assert_eq!(team.only("production"), now);
    let beta = team.finalize(&team.ci, &upload, "sample.ipa", &json!({"channel": "beta"}));
    assert_eq!((beta.status, holds(&team.only("beta"))), (200, 1));
    team.check();
}

#[test]
fn a_second_file_of_a_platform_does_not_join() {
    let team = Team::new();
    let (apk, aab) = (team.artifact("sample.apk"), team.artifact("sample.aab"));
    let made = team.create(&apk, "production").ok();
    assert_eq!(team.create(&aab, "production").refusal(), (409, 137));
    let refused = team.join(&made, &aab);
    assert_eq!(refused.refusal(), (409, 137));
    let error = refused.body["error"].as_str().unwrap();
    assert!(error.contains(apk.as_str().unwrap()) && error.contains("android"), "{error}");
    let release = json!({"channel": "production"});
    let refused = team.finalize(&team.ada, aab.as_str().unwrap(), "sample.aab", &release);
    assert_eq!(refused.refusal(), (409, 137), "{}", refused.body);
    assert!(refused.body["error"].as_str().unwrap().contains("is verified"), "{}", refused.body);
    assert_eq!(team.join(&made, &apk).ok(), made, "an artifact that is held joins no second time");

    let other = team.service.upload(&team.ada, &team.app, "sample-1.5.0.ipa", "1.5.0");
    let refused = team.join(&made, &other["id"]);
    assert_eq!(refused.refusal(), (400, 142), "another version: {}", refused.body);
    let nowhere = json!("art_01J9ZQ8F5W7V3T6M2K4N8R0P1S");
    assert_eq!(team.join(&made, &nowhere).refusal(), (404, 101));

    // A release may be created with two files of one platform.
    let both = json!({"appId": team.app, "artifactIds": [apk, aab], "version": "1.4.2", "channel": "store"});
    assert_eq!(holds(&team.call("svc_createRelease", both).ok()), 2);
    team.check();
}

#[test]
fn of_sixteen_files_of_one_platform_one_joins() {
    let team = Team::new();
    let made = team.create(&team.artifact("sample.ipa"), "production").ok();
    team.publish(&made);
    let files: Vec<_> = ["sample.apk", "sample.aab"].map(|file| team.artifact(file)).into();
    let answers = together(16, |caller| team.join(&made, &files[caller % 2]));
    let joined: Vec<_> = answers
        .into_iter()
        .filter(|answer| {
            answer.status == 200 || {
                assert_eq!(answer.refusal(), (409, 137));
                false
            }
        })
        .collect();
    assert_eq!(joined.len(), 8, "those who add the file that joined are told so");
    let now = team.only("production");
    assert_eq!((holds(&now), live(&now), &now["state"]), (2, 2, &json!("published")));
    team.check();
}

#[test]
fn drafts_and_failed_releases_are_deleted_and_free_what_they_held() {
    let team = Team::new();
    let android = team.artifact("sample.apk");
    let made = team.create(&android, "production").ok();
    let notes = json!({"releaseId": made["id"], "notes": "Faster."});
    assert_eq!(team.call("svc_updateRelease", notes).ok()["notes"], "Faster.");
    let notes = json!({"releaseId": made["id"], "notes": null});
    assert_eq!(team.call("svc_updateRelease", notes).ok()["notes"], Value::Null);
    assert_eq!(team.call("svc_updateRelease", json!({"releaseId": made["id"]})).ok(), made);

    let delete =
        |release: &Value| team.call("svc_deleteRelease", json!({"releaseId": release["id"]}));
    let deletions = together(16, |_| delete(&made));
    let done = deletions.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(done, 1);
    assert!(
        deletions.iter().all(|answer| match answer.status {
            200 => answer.body["result"]["deleted"] == made["id"],
            _ => answer.refusal() == (404, 101),
        }),
        "{deletions:?}"
    );
    let again = team.create(&android, "production").ok();
    assert_ne!(again["id"], made["id"]);
    team.publish(&again);
    let refused = delete(&again);
    assert_eq!(refused.refusal(), (409, 119));
    assert!(refused.body["error"].as_str().unwrap().contains("published"), "{}", refused.body);

    let states = |state: &str| team.releases(json!({"state": state})).len();
    let draft = team.create(&android, "beta").ok();
    assert_eq!((states("draft"), states("published"), states("failed")), (1, 1, 0));
    delete(&draft).ok();
    assert_eq!(states("draft"), 0);
    let verified = json!({"appId": team.app, "state": "verified"});
    let page = team.call("svc_getArtifacts", verified).ok();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    let pending = json!({"appId": team.app, "state": "pending"});
    assert_eq!(team.call("svc_getArtifacts", pending).ok()["items"], json!([]));

    // A deleted release is created again when CI asks for it.
    let release = json!({"channel": "nightly"});
    let id = android.as_str().unwrap();
    for _ in 0..2 {
        assert_eq!(team.finalize(&team.ci, id, "sample.apk", &release).status, 200);
        delete(&team.only("nightly")).ok();
    }
    let answers = together(16, |caller| match caller % 2 {
        0 => Some(team.finalize(&team.ci, id, "sample.apk", &release)),
        _ => {
            team.releases(json!({"channel": "nightly"})).iter().for_each(|made| {
                delete(made);
            });
            None
        }
    });
    for answer in answers.into_iter().flatten() {
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    team.check();
}

#[test]
fn an_app_has_releases_in_a_hundred_channels_and_a_hundred_drafts() {
    let team = Team::new();
    let old = team.artifact("sample.apk");
    let new = team.service.upload(&team.ada, &team.app, "sample-1.5.0.apk", "1.5.0")["id"].clone();
    let refused = |answer: Answer, words: &str| {
        assert_eq!(answer.refusal(), (409, 119));
        let why = answer.body["error"].as_str().unwrap();
        assert!(why.contains(words), "{why}");
    };
    for n in 0..90 {
        team.create(&old, &format!("channel-{n}")).ok();
    }
    let answers = together(16, |caller| team.create(&old, &format!("channel.{caller}")));
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 10, "{answers:?}");
    refused(team.create(&old, "another"), "100 drafts");
    let drafts: Vec<_> = team.releases(json!({"limit": 200}));
    team.publish(&drafts[0]);
    refused(team.create(&new, "another"), "in 100 channels");
    let release = json!({"channel": "another"});
    let brought = team.finalize(&team.ci, old.as_str().unwrap(), "sample.apk", &release);
    refused(brought, "in 100 channels");
    let channel = |n: usize| drafts[n]["channel"].as_str().unwrap();
    team.create(&new, channel(0)).ok();
    refused(team.create(&new, channel(1)), "100 drafts");
    team.call("svc_deleteRelease", json!({"releaseId": drafts[1]["id"]})).ok();
    team.create(&new, "another").ok();
    team.check();
}

/// Only members see what artifacts say about people, machines and builds.
#[test]
fn the_latest_release_says_nothing_of_who_where_and_how() {
    let team = Team::new();
    let bytes = std::fs::read(fixture("sample.apk")).unwrap();
    let opening = json!({
        "appId": team.app, "platform": "android", "fileName": "app.apk", "profile": "internal-profile",
        "provenance": {"path": "external-ci", "repository": "acme/secret", "commit": "c0ffee",
            "ref": "internal-branch", "runUrl": "https://ci.example.com/runs/7"},
    });
    let opened = team.service.post(Some(&team.ci), "upload-url", &opening).body;
    let put = team.service.http.put(opened["uploadUrl"].as_str().unwrap()).body(bytes).send();
    assert_eq!(put.unwrap().status(), 200);
    let release = json!({"channel": "production", "notes": "Faster.", "publish": ["ota"]});
    let id = opened["artifactId"].as_str().unwrap();
    assert_eq!(team.finalize(&team.ci, id, "sample.apk", &release).status, 201);

    let params = json!({"appId": team.app, "channel": "production", "platform": "android"});
    let found = team.service.call(None, "svc_getLatestRelease", params).ok();
    let (release, artifact) = (&found["release"], &found["artifact"]);
    assert_eq!((&release["version"], &release["notes"]), (&json!("1.4.2"), &json!("Faster.")));
    assert_eq!(
        (&artifact["platform"], &artifact["buildNumber"]),
        (&json!("android"), &json!("42"))
    );
    assert!(artifact["size"].is_u64() && artifact["sha256"].is_string());
    assert!(found["downloadUrl"].is_string() && found["installUrl"].is_string());
    let text = found.to_string();
    let private = [
        "usr_",
        "tok_",
        "pub_",
        "acme",
        "c0ffee",
        "internal",
        "ci.example.com",
        "external-ci",
        "provenance",
        "trust",
        "signer",
        "createdBy",
    ];
    for private in private {
        assert!(!text.contains(private), "{private}: {text}");
    }
}
