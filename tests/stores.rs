//! Releases that go to all targets.

use crate::support::{
    apple::KEY_ID,
    service::{LONGEST, Service},
    stores::{ANDROID, APP, IOS, STORES, Stores},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Instant};

const TARGETS: &str = "app-store,google-play,testflight,firebase-app-distribution,ota";

/// The command that publishes a release to all targets.
fn publish<'a>(release: &'a Value, more: &[&'a str]) -> Vec<&'a str> {
    let command = ["release", "publish", release.as_str().unwrap(), "--target", TARGETS];
    let groups = ["--group", "friends", "--firebase-app", ANDROID, "--firebase-app", IOS];
    [&command[..], &groups, more].concat()
}

fn codes(release: &Value) -> (&str, &str) {
    (release["versionCodes"][0].as_str().unwrap(), release["status"].as_str().unwrap())
}

#[test]
fn a_release_goes_to_every_target_is_rolled_out_and_rolled_back_as_the_plan_says() {
    let Some(stores) = Stores::new("stores") else { return };
    stores.store_keys();
    let first = stores.release("1.4.2", 42, "");
    stores.reply(&publish(&first, &["--notes", "Better."]));
    stores.reaches(&first, "live");
    assert_eq!(stores.get(&first)["state"], "published");

    let second = stores.release("1.5.0", 43, "-1.5.0");
    stores.reply(&publish(&second, &["--rollout", "10", "--notes", "Faster."]));
    stores.reaches(&second, "live");
    let track = stores.track();
    assert_eq!(codes(&track[0]), ("43", "inProgress"), "{track}");
    assert_eq!(track[0]["userFraction"], 0.1);
    assert_eq!(codes(&track[1]), ("42", "completed"), "the present version stays: {track}");

    let id = second.as_str().unwrap();
    stores.reply(&["release", "rollout", id, "25", "--target", "google-play"]);
    assert_eq!(stores.track()[0]["userFraction"], 0.25);
    let halted = stores.reply(&["release", "rollout", id, "halt"]);
    let state = |release: &Value, target: &str| {
        let all = release["publications"].as_array().unwrap();
        all.iter().find(|p| p["target"] == target).unwrap()["state"].clone()
    };
    assert_eq!(state(&halted, "google-play"), "halted", "{halted}");
    assert_eq!(state(&halted, "app-store"), "halted", "{halted}");
    assert_eq!(codes(&stores.track()[0]), ("43", "halted"));
    let phase = || {
        let versions = stores.at_apple("versions");
        let version = versions.iter().find(|version| version["version"] == "1.5.0").unwrap();
        version["phased"]["state"].clone()
    };
    assert_eq!(phase(), "PAUSED");
    let resumed = stores.reply(&["release", "rollout", id, "resume"]);
    assert_eq!(state(&resumed, "google-play"), "live", "{resumed}");
    assert_eq!((phase(), codes(&stores.track()[0])), (json!("ACTIVE"), ("43", "inProgress")));
    assert_eq!(stores.track()[0]["userFraction"], 0.25, "with the share that it had");

    let before = (stores.google.seen(APP), stores.at_apple("builds"));
    let plan = stores.reply(&["release", "rollback", id, "--dry-run"])["plan"].clone();
    let after = (stores.google.seen(APP), stores.at_apple("builds"));
    assert_eq!(before.0["commits"], after.0["commits"], "a plan changes nothing");
    assert_eq!(before.1, after.1, "a plan changes nothing");
    assert_eq!(stores.get(&second)["state"], "published");

    let rollback = stores.reply(&["release", "rollback", id]);
    assert_eq!(rollback["plan"], plan, "what was shown is what is done");
    assert_eq!((&rollback["id"], &rollback["state"]), (&first, &json!("published")));
    let actions: Vec<_> = plan
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            let is_first = step["releaseId"] == first;
            (is_first, step["target"].as_str().unwrap(), step["action"].as_str().unwrap())
        })
        .collect();
    let seen = seen_after(&stores, &first, &second);
    assert_eq!(actions, seen, "the plan and the deed: {plan}");
    let taken_back = stores.get(&second);
    assert_eq!(taken_back["state"], "rolledBack");
    for target in STORES {
        for publication in stores.publications(&second, target) {
            assert_eq!(publication["state"], "halted", "{publication}");
            assert_eq!(publication["error"], Value::Null, "{publication}");
        }
    }
    the_keys_open_their_stores(&stores);
    stores.check();
}

/// Each key opens its store, until its role is taken away; and its uses are in the audit log.
fn the_keys_open_their_stores(stores: &Stores) {
    let keys = stores.reply(&["credential", "list"])["items"].clone();
    assert_eq!(keys.as_array().unwrap().len(), 3);
    for key in keys.as_array().unwrap() {
        let checked = stores.reply(&["credential", "check", key["id"].as_str().unwrap()]);
        assert_eq!(checked["check"]["ok"], true, "{checked}");
    }
    stores.apple.tell(&json!({"do": "role", "keyId": KEY_ID, "role": "DEVELOPER"}));
    let apple = keys.as_array().unwrap().iter().find(|key| key["kind"] == "appStoreConnectKey");
    let refused = stores.svc(&["credential", "check", apple.unwrap()["id"].as_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let administrator = stores.service.administrator();
    for key in keys.as_array().unwrap() {
        let params = json!({"function": "useCredential", "resource": key["id"]});
        let uses = stores.service.call(Some(&administrator), "svc_admin_getAuditLog", params).ok();
        let count = uses["items"].as_array().unwrap().len();
        assert!(count >= 2, "one use for each publication: {uses}");
    }
}

/// What the stores did in a rollback, in the order of the plan.
fn seen_after<'a>(stores: &Stores, first: &Value, second: &Value) -> Vec<(bool, &'a str, &'a str)> {
    let mut seen = Vec::new();
    let publications = |release: &Value| {
        let release = stores.get(release);
        release["publications"].as_array().unwrap().clone()
    };
    for publication in publications(second).iter().filter(|p| p["target"] == "ota") {
        assert_eq!(publication["state"], "halted");
        seen.push((false, "ota", "pointBack"));
    }
    for publication in publications(second).iter().filter(|p| p["target"] != "ota") {
        let action = match publication["target"].as_str().unwrap() {
            "google-play" => {
                assert_eq!(codes(&stores.track()[0]), ("43", "halted"));
                ("google-play", "halt")
            }
            "app-store" => {
                let versions = stores.at_apple("versions");
                let version = versions.iter().find(|v| v["version"] == "1.5.0").unwrap();
                assert_eq!(version["phased"]["state"], "PAUSED");
                ("app-store", "pause")
            }
            "testflight" => {
                let builds = stores.at_apple("builds");
                let build = builds.iter().find(|build| build["number"] == "43").unwrap();
                assert_eq!(build["expired"], true, "{build}");
                ("testflight", "expire")
            }
            _ => {
                let deleted = [ANDROID, IOS].map(|id| stores.google.seen(id)["deleted"].clone());
                assert!(deleted.iter().all(|d| d.as_array().unwrap().len() == 1), "{deleted:?}");
                ("firebase-app-distribution", "delete")
            }
        };
        seen.push((false, action.0, action.1));
    }
    for publication in publications(first) {
        match publication["target"].as_str().unwrap() {
            "testflight" => {
                let builds = stores.at_apple("builds");
                let build = builds.iter().find(|build| build["number"] == "42").unwrap();
                assert_eq!(
                    (&build["expired"], build["groups"].as_array().unwrap().len()),
                    (&json!(false), 1)
                );
                seen.push((true, "testflight", "redistribute"));
            }
            "firebase-app-distribution" => {
                seen.push((true, "firebase-app-distribution", "redistribute"));
            }
            _ => {}
        }
    }
    for id in [ANDROID, IOS] {
        let distributed = stores.google.seen(id)["distributions"].clone();
        assert_eq!(
            distributed.as_array().unwrap().len(),
            3,
            "the first, the second, and the first again"
        );
    }
    seen
}

/// What each publication of a release is doing, as `target: state`.
fn situations(stores: &Stores, release: &Value) -> Vec<String> {
    let release = stores.get(release);
    let publications = release["publications"].as_array().unwrap().iter();
    let is_store = |p: &&Value| p["target"] != "ota";
    let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    publications
        .filter(is_store)
        .map(|p| {
            format!(
                "{}: {} {}",
                name(&p["target"]),
                name(&p["state"]),
                p["log"].as_array().unwrap().len()
            )
        })
        .collect()
}

#[test]
fn a_service_that_is_killed_in_every_state_publishes_everything_once() {
    let Some(stores) = Stores::new("stores killed") else { return };
    is_published_once(stores, |service| {
        service.kill();
        service.boot();
    });
}

/// Publishes a release of two platforms to all stores, and does this in every state of its publications. Each store
/// gets everything once.
pub fn is_published_once(mut stores: Stores, mut interrupt: impl FnMut(&mut Service)) {
    stores.store_keys();
    let release = stores.release("1.4.2", 42, "");
    stores.reply(&publish(&release, &["--notes", "Better.", "--rollout", "10"]));
    let (mut seen, mut kills) = (BTreeSet::new(), 0);
    let begun = Instant::now();
    loop {
        let now = situations(&stores, &release);
        let is_new = now.iter().filter(|situation| seen.insert((*situation).clone())).count() > 0;
        if now.iter().all(|situation| situation.contains(": live ")) {
            break;
        }
        let is_failed = now.iter().any(|situation| situation.contains(": failed "));
        assert!(!is_failed, "{}", stores.get(&release)["publications"]);
        assert!(begun.elapsed() < LONGEST, "{now:?} after {kills} interruptions");
        if is_new {
            interrupt(&mut stores.service);
            kills += 1;
        } else {
            // Uninterrupted, the service waits for Apple as long as it would for the real one.
            stores.call("svc_checkRelease", json!({"releaseId": release}));
        }
    }
    // How many of these situations one look finds new together depends on how long a start takes.
    assert!(kills >= 5 && seen.len() >= 15, "{kills} interruptions: {seen:?}");
    let play = stores.google.seen(APP);
    assert_eq!(play["commits"].as_array().unwrap().len(), 1, "{play}");
    assert_eq!(codes(&stores.track()[0]), ("42", "inProgress"));
    for id in [ANDROID, IOS] {
        assert_eq!(stores.google.seen(id)["releases"].as_array().unwrap().len(), 1);
    }
    let of_ours = |list: &str, field: &str, value: &str| {
        let all = stores.at_apple(list);
        all.iter().filter(|one| one[field] == value).count()
    };
    assert_eq!(of_ours("uploads", "number", "42"), 1, "{:?}", stores.at_apple("uploads"));
    assert_eq!(of_ours("builds", "number", "42"), 1);
    assert_eq!(of_ours("versions", "version", "1.4.2"), 1);
    assert_eq!(stores.at_apple("submissions").len(), 1);
    // The wishes of people survive too.
    let id = release.as_str().unwrap().to_owned();
    stores.reply(&["release", "rollout", &id, "halt"]);
    interrupt(&mut stores.service);
    for target in ["google-play", "app-store"] {
        let now = stores.publications(&release, target);
        assert_eq!(now[0]["state"], "halted", "{now:?}");
    }
    assert_eq!(codes(&stores.track()[0]), ("42", "halted"));
    stores.check();
}

#[test]
fn what_is_missing_is_said_before_anything_is_sent() {
    let Some(stores) = Stores::new("stores that lack something") else { return };
    let release = stores.release("1.4.2", 42, "");
    let id = release.as_str().unwrap();
    let text = |output: &std::process::Output| {
        String::from_utf8([&output.stdout[..], &output.stderr[..]].concat()).unwrap()
    };
    // Without the id of the app in Firebase, the call is refused, and nothing begins.
    stores.store_keys();
    let target = "firebase-app-distribution";
    let refused = stores.svc(&["release", "publish", id, "--target", target]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    assert!(text(&refused).contains("AppId is required"), "{}", text(&refused));
    assert_eq!(stores.get(&release)["state"], "draft");
    // Without its key, a target is refused with what to do, and nothing begins.
    for key in
        stores.call("svc_getCredentials", json!({"appId": stores.app}))["items"].as_array().unwrap()
    {
        stores.call("svc_deleteCredential", json!({"credentialId": key["id"]}));
    }
    let publish = ["release", "publish", id, "--target", "google-play,app-store"];
    let refused = stores.svc(&publish);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    assert!(text(&refused).contains("svc credential set "), "{}", text(&refused));
    assert_eq!(stores.get(&release)["state"], "draft");
    assert_eq!(stores.google.state()["requests"], json!([]), "Google was asked nothing");
    stores.store_keys();
    // An update needs release notes: Apple is asked, and gets nothing.
    stores.svc(&publish);
    stores.reaches_in(&release, "app-store", "failed");
    let why = stores.publications(&release, "app-store")[0]["error"].clone();
    assert!(why.as_str().unwrap().contains("An update needs release notes"), "{why}");
    assert_eq!(stores.at_apple("uploads"), Vec::<Value>::new());
    stores.svc(&[&publish[..], &["--notes", "Better."]].concat());
    stores.reaches(&release, "live");
    // A share is not taken back, a full release is not halted, and ota has no rollout.
    for (to, word) in [("5", "all users"), ("halt", "rollback")] {
        let refused = stores.svc(&["release", "rollout", id, to, "--target", "google-play"]);
        assert_eq!(refused.status.code(), Some(1), "{to}");
        assert!(text(&refused).contains(word), "{}", text(&refused));
    }
    stores.check();
}
