//! Files on their way to Google Play: lost answers, and bytes that are there already.

use super::world::{App, drive, hash, key, play, share};
use app_stores::{AnyStore, DesiredState, NextStep, Progress, RemoteError};
use contract::{artifacts::ArtifactKind, releases::PublicationState};
use serde_json::json;
use test_support::google::{self, Google};

#[tokio::test]
async fn a_large_file_arrives_in_spite_of_lost_chunks() {
    if !google::is_here("a_large_file_arrives_in_spite_of_lost_chunks") {
        return;
    }
    let google = Google::start();
    let app = App::of(&google, "large", &json!({}));
    let (play, key, file) = (play(app.google), key(app.google), app.file(42, (20 << 20) + 7));
    google.tell(&json!({"do": "losing", "chunks": 1}));
    // The answer to the second chunk is lost, and later the whole session.
    google.tell(&json!({"do": "fail", "path": "upload_id", "skip": 3, "how": "cutAfter"}));
    let order = app.order(&file, 42, "production", DesiredState::Released(None));
    let mut progress = Progress::None;
    let mut steps = 0;
    loop {
        steps += 1;
        if steps == 6 {
            google.tell(&json!({"do": "endUploads"}));
        }
        match play.advance(&key, &order, &file, &progress).await {
            Ok(advanced) if advanced.next == NextStep::Done => break,
            Ok(advanced) => progress = advanced.progress,
            Err(RemoteError::Busy { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let seen = app.seen();
    let uploads = seen["uploads"].as_array().unwrap();
    assert_eq!(uploads.len(), 1);
    assert_eq!(uploads[0]["sha256"], hash(&file));
    google.check();
}

/// A broken version is halted at once, even while another one is being sent.
#[tokio::test]
async fn a_halt_waits_for_no_upload() {
    if !google::is_here("a_halt_waits_for_no_upload") {
        return;
    }
    let app = App::new("halt", &json!({}));
    let google = app.google;
    let (play, key) = (play(app.google), key(app.google));
    let (broken, other) = (app.file(42, 1000), app.file(43, 9 << 20));
    let mut order42 = app.order(&broken, 42, "production", share(10));
    let order43 = app.order(&other, 43, "beta", DesiredState::Released(None));
    let rolled = drive(&play, &key, &order42, &broken, &Progress::None).await.unwrap();
    let mut progress = Progress::None;
    for _ in 0..4 {
        progress = play.advance(&key, &order43, &other, &progress).await.unwrap().progress;
    }
    order42.wanted = share(20);
    let waits = drive(&play, &key, &order42, &broken, &rolled.progress).await.unwrap_err();
    assert!(matches!(waits, RemoteError::Busy { after, .. } if after.as_secs() == 5), "{waits:?}");
    order42.wanted = DesiredState::Halted;
    let halted = drive(&play, &key, &order42, &broken, &rolled.progress).await.unwrap();
    assert_eq!(halted.state, PublicationState::Halted);
    let live = drive(&play, &key, &order43, &other, &progress).await.unwrap();
    assert_eq!(live.state, PublicationState::Live);
    let tracks = &app.seen()["tracks"];
    assert_eq!(tracks["production"][0]["status"], "halted");
    assert_eq!(tracks["beta"][0]["versionCodes"], json!(["43"]));
    google.check();
}

#[tokio::test]
async fn bytes_that_google_has_are_not_sent_again() {
    if !google::is_here("bytes_that_google_has_are_not_sent_again") {
        return;
    }
    let app = App::new("again", &json!({}));
    let (play, key, file) = (play(app.google), key(app.google), app.file(42, 1000));
    for (track, times) in [("beta", "sent"), ("production", "not sent again")] {
        let mut order = app.order(&file, 42, track, DesiredState::Released(None));
        order.file.kind = ArtifactKind::Apk;
        let log = drive(&play, &key, &order, &file, &Progress::None).await.unwrap().log;
        let is_told = log.iter().any(|line| line.contains("they are not sent again"));
        assert_eq!(is_told, times == "not sent again", "{log:?}");
    }
    let seen = app.seen();
    assert_eq!(seen["uploads"].as_array().unwrap().len(), 1);
    assert_eq!(seen["uploads"][0]["kind"], "apks");
    assert_eq!(seen["commits"].as_array().unwrap().len(), 2);
    app.google.check();
}
