//! Releases that users get no longer: replaced, or taken back.

use crate::{
    releases::{Team, live},
    support::load::together,
};
use serde_json::{Value, json};

#[test]
fn a_release_that_users_no_longer_get_takes_nothing_more() {
    let team = Team::new();
    let first = team.create(&team.artifact("sample.apk"), "production").ok();
    team.publish(&first);
    let newer = team.service.upload(&team.ada, &team.app, "sample-1.5.0.apk", "1.5.0");
    let second = team.create(&newer["id"], "production").ok();
    assert_eq!(second["version"], "1.5.0");
    team.publish(&second);
    let ios = team.artifact("sample.ipa");
    let refused = team.join(&first, &ios);
    assert_eq!(refused.refusal(), (409, 119));
    assert!(refused.body["error"].as_str().unwrap().contains("superseded"), "{}", refused.body);
    team.call("svc_rollbackRelease", json!({"releaseId": second["id"]})).ok();
    assert_eq!(live(&team.join(&first, &ios).ok()), 2);
    team.check();
}

/// A first release that is bad is taken back, with none in its place.
#[test]
fn the_only_release_of_a_channel_is_withdrawn() {
    let team = Team::new();
    let first = team.create(&team.artifact("sample.apk"), "production").ok();
    let install = team.publish(&first)["publications"][0]["url"].as_str().unwrap().to_owned();
    let back = |more: Value| {
        let mut params = json!({"releaseId": first["id"]});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        team.call("svc_rollbackRelease", params)
    };
    let none = back(json!({}));
    assert_eq!(none.refusal(), (409, 119));
    assert!(none.body["error"].as_str().unwrap().contains("withdraw"), "{}", none.body);
    assert_eq!(back(json!({"withdraw": true, "toReleaseId": first["id"]})).status, 400);
    let dry = back(json!({"withdraw": true, "dryRun": true})).ok();
    assert_eq!((&dry["state"], &dry["plan"][0]["action"]), (&json!("published"), &json!("close")));
    let files = || reqwest::blocking::get(&install).unwrap().text().unwrap().contains("SHA-256");
    assert!(files());

    let answers = together(16, |_| back(json!({"withdraw": true})));
    let done = answers.iter().filter(|answer| answer.status == 200);
    assert!(done.clone().count() > 0);
    assert!(done.clone().all(|done| done.body["result"]["state"] == "rolledBack"));
    let mut late = answers.iter().filter(|answer| answer.status != 200);
    assert!(late.all(|late| late.refusal() == (409, 119)));
    assert!(!files(), "the install page is closed");
    let latest = json!({"appId": team.app, "channel": "production", "platform": "android"});
    assert_eq!(team.call("svc_getLatestRelease", latest.clone()).status, 404);

    let newer = team.service.upload(&team.ada, &team.app, "sample-1.5.0.apk", "1.5.0");
    team.publish(&team.create(&newer["id"], "production").ok());
    assert_eq!(team.call("svc_getLatestRelease", latest).ok()["release"]["version"], "1.5.0");
    team.check();
}
