//! Whole lives of publications in Google Play.

use crate::{
    google::{self, Google},
    world::{APP, completed, drive, file, key, order, play, share},
};
use app_stores::{Next, Progress, Wanted};
use contract::releases::PublicationState;
use serde_json::{Value, json};

#[tokio::test]
async fn a_staged_release_is_raised_halted_resumed_completed_and_withdrawn() {
    if !google::is_here("a_staged_release_is_raised_halted_resumed_completed_and_withdrawn") {
        return;
    }
    let google = Google::start();
    google.tell(&json!({"do": "playApp", "packageName": APP,
        "tracks": {"production": [completed(41)], "beta": []}}));
    let (play, key, file) = (play(&google), key(&google), file(42, 1000));
    let mut progress = Progress::None;
    let table = [
        (share(10), PublicationState::Live, json!(["inProgress", 0.1, 41])),
        (share(50), PublicationState::Live, json!(["inProgress", 0.5, 41])),
        (Wanted::Halted, PublicationState::Halted, json!(["halted", 0.5, 41])),
        (share(50), PublicationState::Live, json!(["inProgress", 0.5, 41])),
        (Wanted::Released(None), PublicationState::Live, json!(["completed", null, null])),
        (Wanted::Withdrawn, PublicationState::Halted, json!(["halted", null, 41])),
    ];
    let commits = table.len();
    for (wanted, state, track) in table {
        let order = order(&file, 42, "production", wanted);
        let advanced = drive(&play, &key, &order, &file, &progress).await.unwrap();
        println!("{wanted:?}: {:?} {:?}", advanced.words, advanced.log);
        assert_eq!(advanced.state, state, "{wanted:?}");
        progress = advanced.progress;
        assert_eq!(shown(&google), track, "{wanted:?}");
        let is_rollout = matches!(wanted, Wanted::Released(Some(_)));
        assert_eq!(matches!(advanced.next, Next::After(_)), is_rollout, "{wanted:?}");
    }
    let app = &google.state()["play"][APP];
    assert_eq!(app["commits"].as_array().unwrap().len(), commits);
    assert_eq!(app["uploads"].as_array().unwrap().len(), 1);
    google.check();
}

/// Status and share of 42 in production, and the version code that is completed beside it.
fn shown(google: &Google) -> Value {
    let state = google.state();
    let releases = state["play"][APP]["tracks"]["production"].as_array().unwrap().clone();
    let ours = releases.iter().find(|it| it["versionCodes"][0] == "42").unwrap();
    let is_other = |it: &&Value| it["status"] == "completed" && it["versionCodes"][0] != "42";
    let other = releases.iter().find(is_other).map(|it| it["versionCodes"][0].as_str().unwrap());
    let other = other.map(|code| code.parse::<u32>().unwrap());
    json!([ours["status"], ours["userFraction"], other])
}
