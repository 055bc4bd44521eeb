//! Whole lives of publications in Google Play.

use super::world::{App, completed, drive, key, play, share};
use app_stores::{Action, AnyStore, DesiredState, NextStep, Options, Progress, RemoteError};
use contract::releases::PublicationState;
use serde_json::{Value, json};
use std::time::Duration;
use test_support::google::{self, Google};

#[tokio::test]
async fn a_staged_release_is_raised_halted_resumed_completed_and_withdrawn() {
    if !google::is_here("a_staged_release_is_raised_halted_resumed_completed_and_withdrawn") {
        return;
    }
    let app = App::new("staged", &json!({}));
    let google = app.google;
    let (play, key, file) = (play(app.google), key(app.google), app.file(42, 1000));
    let mut progress = Progress::None;
    let table = [
        (share(10), PublicationState::Live, json!(["inProgress", 0.1, 41])),
        (share(50), PublicationState::Live, json!(["inProgress", 0.5, 41])),
        (DesiredState::Halted, PublicationState::Halted, json!(["halted", 0.5, 41])),
        (share(50), PublicationState::Live, json!(["inProgress", 0.5, 41])),
        (DesiredState::Released(None), PublicationState::Live, json!(["completed", null, null])),
        (DesiredState::Withdrawn, PublicationState::Halted, json!(["halted", null, 41])),
    ];
    let commits = table.len();
    for (wanted, state, track) in table {
        let order = app.order(&file, 42, "production", wanted);
        let advanced = drive(&play, &key, &order, &file, &progress).await.unwrap();
        assert_eq!(advanced.state, state, "{wanted:?}");
        progress = advanced.progress;
        assert_eq!(shown(&app), track, "{wanted:?}");
        let is_rollout = matches!(wanted, DesiredState::Released(Some(_)));
        assert_eq!(matches!(advanced.next, NextStep::After(_)), is_rollout, "{wanted:?}");
    }
    let seen = app.seen();
    assert_eq!(seen["commits"].as_array().unwrap().len(), commits);
    assert_eq!(seen["uploads"].as_array().unwrap().len(), 1);
    google.check();
}

/// Status and share of 42 in production, and the version code that is completed beside it.
fn shown(app: &App<'_>) -> Value {
    let releases = app.seen()["tracks"]["production"].as_array().unwrap().clone();
    let ours = releases.iter().find(|it| it["versionCodes"][0] == "42").unwrap();
    let is_other = |it: &&Value| it["status"] == "completed" && it["versionCodes"][0] != "42";
    let other = releases.iter().find(is_other).map(|it| it["versionCodes"][0].as_str().unwrap());
    let other = other.map(|code| code.parse::<u32>().unwrap());
    json!([ours["status"], ours["userFraction"], other])
}

#[tokio::test]
async fn notes_reach_each_language_and_the_default_one() {
    if !google::is_here("notes_reach_each_language_and_the_default_one") {
        return;
    }
    let app = App::new("notes", &json!({"language": "de-DE"}));
    let google = app.google;
    let (play, key, file) = (play(app.google), key(app.google), app.file(42, 1000));
    let mut order = app.order(&file, 42, "beta", DesiredState::Released(None));
    order.default_notes = Some("Neues".parse().unwrap());
    order.notes = [("fr-FR", "Nouveau"), ("en-US", "New")]
        .map(|(language, text)| (language.parse().unwrap(), text.parse().unwrap()))
        .into();
    let Options::GooglePlay(options) = &mut order.options else { unreachable!() };
    options.in_app_update_priority = Some(4);
    let advanced = drive(&play, &key, &order, &file, &Progress::None).await.unwrap();
    assert_eq!((advanced.state, advanced.next), (PublicationState::Live, NextStep::Done));
    assert_eq!(advanced.remote_id.as_deref(), Some("42"));
    assert_eq!(advanced.url.unwrap(), format!("https://play.google.com/apps/testing/{}", app.name));
    let release = &app.seen()["tracks"]["beta"][0];
    assert_eq!(release["inAppUpdatePriority"], 4);
    let text = |language, text| json!({"language": language, "text": text});
    let wanted = [text("de-DE", "Neues"), text("en-US", "New"), text("fr-FR", "Nouveau")];
    assert_eq!(release["releaseNotes"], json!(wanted));
    google.check();
}

#[tokio::test]
async fn a_review_is_followed_and_can_be_cancelled() {
    if !google::is_here("a_review_is_followed_and_can_be_cancelled") {
        return;
    }
    let app = App::new("review", &json!({"review": true}));
    let google = app.google;
    let (play, key) = (play(app.google), key(app.google));
    let first = app.file(42, 1000);
    let mut order42 = app.order(&first, 42, "production", DesiredState::Released(None));
    let reviewed = drive(&play, &key, &order42, &first, &Progress::None).await.unwrap();
    assert_eq!(reviewed.state, PublicationState::InReview);
    assert_eq!(reviewed.words.as_deref(), Some("IN_REVIEW"));
    assert_eq!(reviewed.next, NextStep::After(Duration::from_secs(30)));
    // Another publication waits for the end of the review, and nobody waits for it.
    let second = app.file(43, 1000);
    let order43 = app.order(&second, 43, "beta", DesiredState::Released(None));
    let waits = drive(&play, &key, &order43, &second, &Progress::None).await.unwrap_err();
    assert!(
        matches!(waits, RemoteError::Busy { after, .. } if after.as_secs() == 600),
        "{waits:?}"
    );
    // Nobody has it yet, so halting waits too.
    order42.wanted = DesiredState::Halted;
    let waits = drive(&play, &key, &order42, &first, &reviewed.progress).await.unwrap_err();
    assert!(matches!(&waits, RemoteError::Busy { why, .. } if why.contains("Withdrawing")));
    assert_eq!(reviewed.progress.withdrawal().action, Action::CancelReview);
    order42.wanted = DesiredState::Withdrawn;
    let withdrawn = drive(&play, &key, &order42, &first, &reviewed.progress).await.unwrap();
    assert_eq!((withdrawn.state, withdrawn.next), (PublicationState::Halted, NextStep::Done));
    let seen = app.seen();
    assert_eq!(seen["tracks"]["production"], json!([completed(41)]));
    assert_eq!(seen["reviewsCancelled"], 1);
    // The other one goes on, and its review ends well.
    let reviewed = drive(&play, &key, &order43, &second, &Progress::None).await.unwrap();
    assert_eq!(reviewed.state, PublicationState::InReview);
    google.tell(&json!({"do": "review", "packageName": app.name}));
    let live = drive(&play, &key, &order43, &second, &reviewed.progress).await.unwrap();
    assert_eq!((live.state, live.next), (PublicationState::Live, NextStep::Done));
    assert_eq!(live.log, ["Google Play says: completed."]);
    // A third one is rejected, and then taken back.
    let third = app.file(44, 1000);
    let mut order44 = app.order(&third, 44, "beta", DesiredState::Released(None));
    let reviewed = drive(&play, &key, &order44, &third, &Progress::None).await.unwrap();
    google.tell(&json!({"do": "review", "packageName": app.name, "outcome": "NOT_APPROVED"}));
    let rejected = drive(&play, &key, &order44, &third, &reviewed.progress).await.unwrap();
    assert_eq!((rejected.state, rejected.next), (PublicationState::Failed, NextStep::Done));
    assert!(rejected.error.unwrap().ends_with("NOT_APPROVED"));
    order44.wanted = DesiredState::Withdrawn;
    drive(&play, &key, &order44, &third, &rejected.progress).await.unwrap();
    let seen = app.seen();
    let beta = seen["tracks"]["beta"].as_array().unwrap();
    assert_eq!(beta.len(), 1);
    assert_eq!(beta[0]["versionCodes"], json!(["43"]), "what 44 had taken the place of is back");
    google.check();
}

#[tokio::test]
async fn changes_in_the_console_are_noticed_and_not_fought() {
    if !google::is_here("changes_in_the_console_are_noticed_and_not_fought") {
        return;
    }
    let app = App::new("console", &json!({}));
    let google = app.google;
    let (play, key, file) = (play(app.google), key(app.google), app.file(42, 1000));
    let order = app.order(&file, 42, "production", share(10));
    let mut advanced = drive(&play, &key, &order, &file, &Progress::None).await.unwrap();
    let ours = |status: &str, share: Option<f64>| {
        let mut it = json!({"name": "1.4.2", "versionCodes": ["42"], "status": status});
        it.as_object_mut()
            .unwrap()
            .extend(share.map(|share| ("userFraction".into(), share.into())));
        it
    };
    let table = [
        (
            json!([ours("inProgress", Some(0.25)), completed(41)]),
            "inProgress 25 %",
            PublicationState::Live,
        ),
        (
            json!([ours("halted", Some(0.25)), completed(41)]),
            "halted 25 %",
            PublicationState::Halted,
        ),
    ];
    for (releases, words, state) in table {
        google.tell(&json!({"do": "console", "packageName": app.name, "track": "production", "releases": releases}));
        advanced = drive(&play, &key, &order, &file, &advanced.progress).await.unwrap();
        assert_eq!((advanced.words.as_deref(), advanced.state), (Some(words), state));
    }
    // A later version takes its place.
    google.tell(&json!({"do": "console", "packageName": app.name, "track": "production", "releases": [completed(43)]}));
    advanced = drive(&play, &key, &order, &file, &advanced.progress).await.unwrap();
    assert_eq!((advanced.state, advanced.next), (PublicationState::Live, NextStep::Done));
    assert_eq!(advanced.progress.withdrawal().action, Action::Nothing);
    assert_eq!(app.seen()["commits"].as_array().unwrap().len(), 1);
    google.check();
}

/// A later version is withdrawn, and the earlier one restored.
#[tokio::test]
async fn an_earlier_version_is_served_again() {
    if !google::is_here("an_earlier_version_is_served_again") {
        return;
    }
    let app = App::new("earlier", &json!({}));
    let google = app.google;
    let (play, key) = (play(app.google), key(app.google));
    let (first, second) = (app.file(42, 1000), app.file(43, 1000));
    let mut earlier = app.order(&first, 42, "production", DesiredState::Released(None));
    let mut later = app.order(&second, 43, "production", DesiredState::Released(None));
    let one = drive(&play, &key, &earlier, &first, &Progress::None).await.unwrap();
    let two = drive(&play, &key, &later, &second, &Progress::None).await.unwrap();
    assert_eq!(two.progress.withdrawal().action, Action::Halt);
    later.wanted = DesiredState::Withdrawn;
    drive(&play, &key, &later, &second, &two.progress).await.unwrap();
    assert_eq!(one.progress.restoral().action, Action::Nothing);
    earlier.wanted = DesiredState::Restored;
    let restored = drive(&play, &key, &earlier, &first, &one.progress).await.unwrap();
    assert_eq!(restored.state, PublicationState::Live);
    let seen = app.seen();
    assert_eq!(seen["commits"].as_array().unwrap().len(), 3, "to restore it needed no change");
    let codes = |status: &str| {
        let releases = seen["tracks"]["production"].as_array().unwrap().iter();
        let codes =
            releases.filter(|it| it["status"] == status).map(|it| it["versionCodes"].clone());
        codes.collect::<Vec<_>>()
    };
    assert_eq!(codes("completed"), [json!(["42"])]);
    assert_eq!(codes("halted"), [json!(["43"])]);
    google.check();
}

#[tokio::test]
async fn sixteen_publications_of_one_app_all_end() {
    const TRACKS: u32 = 16;
    if !google::is_here("sixteen_publications_of_one_app_all_end") {
        return;
    }
    let tracks = (0..TRACKS).map(|n| (format!("closed {n}"), json!([completed(100 + n)])));
    let google = Google::start();
    let app =
        App::of(&google, "sixteen", &json!({"tracks": tracks.collect::<serde_json::Map<_, _>>()}));
    let (play, key) = (play(app.google), key(app.google));
    let one = async |n: u32| {
        let file = app.file(200 + n, 1000);
        let order = app.order(&file, 200 + n, &format!("closed {n}"), share(10));
        let mut progress = Progress::None;
        loop {
            match play.advance(&key, &order, &file, &progress).await {
                Ok(advanced) if matches!(advanced.next, NextStep::After(_)) => {
                    return advanced.state;
                }
                Ok(advanced) => progress = advanced.progress,
                Err(RemoteError::Busy { after, .. }) => {
                    assert_eq!(after.as_secs(), 5);
                    tokio::task::yield_now().await;
                }
                Err(error) => panic!("{n}: {error}"),
            }
        }
    };
    let states = futures_util::future::join_all((0..TRACKS).map(one)).await;
    assert_eq!(states, [PublicationState::Live; TRACKS as usize]);
    let (state, seen) = (google.state(), app.seen());
    for n in 0..TRACKS {
        let releases = seen["tracks"][format!("closed {n}")].as_array().unwrap();
        assert_eq!(releases.len(), 2, "{releases:?}");
        assert_eq!(releases[0]["versionCodes"], json!([(200 + n).to_string()]));
        assert_eq!(releases[1], completed(100 + n));
    }
    assert_eq!(seen["commits"].as_array().unwrap().len(), TRACKS as usize);
    assert_eq!(seen["uploads"].as_array().unwrap().len(), TRACKS as usize, "no edit was ended");
    assert_eq!(state["tokens"].as_array().unwrap().len(), 1, "one asks for a token, others wait");
    google.check();
}

/// Nobody knows whether a commit without an answer was done, so the caller is told that, and the
/// track is looked at.
#[tokio::test]
async fn a_commit_without_an_answer_is_decided_by_the_track() {
    if !google::is_here("a_commit_without_an_answer_is_decided_by_the_track") {
        return;
    }
    let app = App::new("commit", &json!({}));
    let google = app.google;
    let (play, key, file) = (play(app.google), key(app.google), app.file(42, 1000));
    let order = app.order(&file, 42, "production", DesiredState::Released(None));
    let commits = format!("/{}/.*:commit", app.name);
    google.tell(&json!({"do": "fail", "path": commits, "how": "cutAfter"}));
    let mut progress = Progress::None;
    let unclear = loop {
        match play.advance(&key, &order, &file, &progress).await {
            Ok(advanced) => progress = advanced.progress,
            Err(error) => break error,
        }
    };
    assert!(matches!(unclear, RemoteError::Unclear(_)), "{unclear:?}");
    let plan = progress.withdrawal();
    assert!(plan.text.contains("in just this moment"), "{plan:?}");
    let live = drive(&play, &key, &order, &file, &progress).await.unwrap();
    assert_eq!(live.state, PublicationState::Live);
    assert_eq!(app.seen()["commits"].as_array().unwrap().len(), 1);
    google.check();
}

/// Google wants somebody to send the changes of some apps for review.
#[tokio::test]
async fn changes_can_wait_in_the_console() {
    if !google::is_here("changes_can_wait_in_the_console") {
        return;
    }
    let app = App::new("manual", &json!({"manual": true}));
    let (play, key, file) = (play(app.google), key(app.google), app.file(42, 1000));
    let mut order = app.order(&file, 42, "production", DesiredState::Released(None));
    let Options::GooglePlay(options) = &mut order.options else { unreachable!() };
    options.changes_not_sent_for_review = true;
    let waits = drive(&play, &key, &order, &file, &Progress::None).await.unwrap();
    assert_eq!(waits.state, PublicationState::Processing);
    assert_eq!(waits.words.as_deref(), Some("NOT_SENT_FOR_REVIEW"));
    assert_eq!(waits.next, NextStep::After(Duration::from_secs(1800)));
    assert_eq!(waits.progress.withdrawal().action, Action::Delete);
    order.wanted = DesiredState::Withdrawn;
    drive(&play, &key, &order, &file, &waits.progress).await.unwrap();
    assert_eq!(app.seen()["tracks"]["production"], json!([completed(41)]));
    app.google.check();
}

/// Google Play stops a completed release only if an earlier one can take its place.
#[tokio::test]
async fn the_first_version_of_a_track_cannot_be_taken_from_all_users() {
    if !google::is_here("the_first_version_of_a_track_cannot_be_taken_from_all_users") {
        return;
    }
    let app = App::new("first", &json!({"tracks": {"production": []}}));
    let (play, key, file) = (play(app.google), key(app.google), app.file(42, 1000));
    let mut order = app.order(&file, 42, "production", DesiredState::Released(None));
    let live = drive(&play, &key, &order, &file, &Progress::None).await.unwrap();
    let plan = live.progress.withdrawal();
    assert_eq!(plan.action, Action::Nothing);
    order.wanted = DesiredState::Withdrawn;
    let still = drive(&play, &key, &order, &file, &live.progress).await.unwrap();
    assert_eq!((still.state, still.next), (PublicationState::Live, NextStep::Done));
    assert_eq!(still.log, [plan.text]);
    order.wanted = DesiredState::Halted;
    let refusal = drive(&play, &key, &order, &file, &still.progress).await.unwrap_err();
    assert!(refusal.to_string().contains("Publish a version with a higher version code"));
    assert_eq!(app.seen()["commits"].as_array().unwrap().len(), 1);
    app.google.check();
}
