//! Publications from their beginning to their end.

use super::scene::{Scene, shared, wanting};
use app_stores::{DesiredState, NextStep, Options, Progress, PublicationOrder, RemoteError};
use contract::{
    publishing::{AppStoreOptions, AppStoreRelease, Percent},
    releases::PublicationState,
};
use serde_json::{Value, json};
use test_support::apple;

const ALL: DesiredState = DesiredState::Released(Some(Percent::ALL));

fn share(percent: u16) -> DesiredState {
    DesiredState::Released(Percent::of_hundredths(percent * 100))
}

fn refusal(error: Result<app_stores::Advanced, RemoteError>) -> String {
    match error {
        Err(RemoteError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_version_is_uploaded_reviewed_and_released() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = shared();
    let scene = Scene::without_version(apple, "plain");
    let texts = json!({"en-US": {"whatsNew": "First."}, "de-DE": {}, "fr-FR": {}});
    scene.version("1.0", "READY_FOR_DISTRIBUTION", texts);
    let mut order = scene.to_app_store(AppStoreOptions::default());
    order.notes.insert("de-DE".parse().unwrap(), "Besser.".parse().unwrap());
    order.notes.insert("it".parse().unwrap(), "Meglio.".parse().unwrap());
    let end = scene.run(&order, Progress::None).await;
    assert_eq!(
        (end.state, end.words.as_deref()),
        (PublicationState::Live, Some("READY_FOR_DISTRIBUTION"))
    );
    let version = scene.published();
    assert_eq!(end.remote_id.as_deref(), version["id"].as_str());
    assert_eq!(end.url.unwrap(), format!("https://apps.apple.com/app/id{}", scene.app));
    assert_eq!((&version["build"], &version["phased"]), (&scene.build()["id"], &Value::Null));
    let notes: Vec<_> = version["localizations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["locale"].as_str().unwrap(), one["whatsNew"].as_str().unwrap()))
        .collect();
    assert_eq!(notes, [("de-DE", "Besser."), ("en-US", "Better."), ("fr-FR", "Better.")]);
    assert_eq!(scene.build()["sha256"], json!(order.file.sha256));
    assert_eq!(scene.list("versions")[0]["state"], "REPLACED_WITH_NEW_VERSION");
    // The publication that was replaced is asked to be restored, and nothing happens.
    let restored = scene.run(&wanting(&order, DesiredState::Restored), end.progress).await;
    assert_eq!(restored.state, PublicationState::Live);
    apple.check();
}

#[tokio::test]
async fn a_release_in_phases_is_paused_resumed_and_completed() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = shared();
    let scene = Scene::new(apple, "phases");
    let order = scene.to_app_store(AppStoreOptions::default());
    let begun = wanting(&order, share(10));
    let live = scene.run_to(&begun, PublicationState::Live, "ACTIVE, day 1 of 7").await;
    assert!(matches!(live.next, NextStep::After(_)));
    let other = refusal(scene.step(&wanting(&order, share(20)), &live.progress).await);
    assert!(other.contains("1, 2, 5, 10, 20, 50 and 100 %"), "{other}");
    apple.tell(&json!({"do": "day", "app": scene.app}));
    let halted = scene.run(&wanting(&order, DesiredState::Halted), live.progress).await;
    assert_eq!(halted.state, PublicationState::Halted);
    assert!(halted.words.unwrap().ends_with("PAUSED, day 2 of 7"));
    let is_active = |advanced: &app_stores::Advanced| {
        advanced.words.as_deref().unwrap_or_default().contains("ACTIVE")
    };
    let resumed = scene.run_until(&begun, halted.progress, is_active).await;
    assert_eq!(resumed.state, PublicationState::Live);
    let all = scene.run(&wanting(&order, ALL), resumed.progress).await;
    assert_eq!(all.state, PublicationState::Live);
    assert_eq!(scene.published()["phased"]["history"], json!(["PAUSED", "ACTIVE", "COMPLETE"]));
    let late = refusal(scene.step(&wanting(&order, DesiredState::Halted), &all.progress).await);
    assert!(late.contains("remove the app from sale"), "{late}");

    // Without anybody's doing, it completes after seven days.
    let scene = Scene::new(apple, "ladder");
    let order = scene.to_app_store(AppStoreOptions { phased: true, ..Default::default() });
    let live = scene.run_to(&order, PublicationState::Live, "ACTIVE").await;
    for _ in 0..7 {
        apple.tell(&json!({"do": "day", "app": scene.app}));
    }
    let end = scene.run(&order, live.progress).await;
    assert!(end.words.unwrap().contains("COMPLETE"));
    apple.check();
}

#[tokio::test]
async fn a_version_that_is_released_by_hand_waits_for_it() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = shared();
    let scene = Scene::new(apple, "by-hand");
    let by_hand = AppStoreOptions { release: Some(AppStoreRelease::Manual), ..Default::default() };
    let order = scene.to_app_store(by_hand);
    let waits = scene.run_to(&order, PublicationState::InReview, "PENDING_DEVELOPER_RELEASE").await;
    let same = scene.step(&order, &waits.progress).await.unwrap();
    assert_eq!(
        (same.state, scene.published()["releases"].as_u64()),
        (PublicationState::InReview, Some(0))
    );
    let end = scene.run(&wanting(&order, ALL), waits.progress).await;
    assert_eq!(
        (end.state, scene.published()["releases"].as_u64()),
        (PublicationState::Live, Some(1))
    );

    // One that is to be released at a time is not released before it.
    let scene = Scene::new(apple, "scheduled");
    let time = "2030-01-31T11:30:00.000Z".parse().unwrap();
    let release = Some(AppStoreRelease::NotBefore(time));
    let order = scene.to_app_store(AppStoreOptions { release, ..Default::default() });
    scene.run_to(&order, PublicationState::InReview, "PENDING_DEVELOPER_RELEASE").await;
    let version = scene.published();
    assert_eq!(
        (&version["releaseType"], &version["earliest"]),
        (&json!("SCHEDULED"), &json!("2030-01-31T12:00:00Z"))
    );
    apple.check();
}

#[tokio::test]
async fn a_halt_in_review_keeps_the_version_unreleased_until_it_goes_on() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = shared();
    let scene = Scene::new(apple, "held");
    let order = scene.to_app_store(AppStoreOptions::default());
    scene.settings(json!({"isReviewing": false}));
    let review = scene.run_to(&order, PublicationState::InReview, "WAITING_FOR_REVIEW").await;
    let halted = scene.run(&wanting(&order, DesiredState::Halted), review.progress).await;
    assert_eq!(
        (halted.state, &scene.published()["releaseType"]),
        (PublicationState::Halted, &json!("MANUAL"))
    );
    scene.settings(json!({"isReviewing": true}));
    let still = |advanced: &app_stores::Advanced| {
        advanced.words.as_deref() == Some("PENDING_DEVELOPER_RELEASE")
    };
    let mut progress = halted.progress;
    for _ in 0..3 {
        let halted = scene.step(&wanting(&order, DesiredState::Halted), &progress).await.unwrap();
        assert_eq!(halted.state, PublicationState::Halted);
        if still(&halted) {
            break;
        }
        progress = halted.progress;
    }
    assert_eq!(scene.published()["state"], "PENDING_DEVELOPER_RELEASE");
    let end = scene.run(&order, progress).await;
    assert_eq!(end.state, PublicationState::Live);
    apple.check();
}

#[tokio::test]
async fn a_rejected_version_is_taken_over_by_the_next_publication() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = shared();
    let scene = Scene::new(apple, "rejected");
    scene.settings(json!({"verdict": "REJECTED"}));
    let order = scene.to_app_store(AppStoreOptions::default());
    let failed = scene.run(&order, Progress::None).await;
    assert_eq!(failed.state, PublicationState::Failed);
    assert!(failed.error.unwrap().contains("App Review"));
    scene.settings(json!({"verdict": "APPROVED"}));
    // The same file, which is not uploaded again.
    let end = scene.run(&order, Progress::None).await;
    assert_eq!(end.state, PublicationState::Live);
    assert_eq!(scene.list("uploads").len(), 1);
    let states: Vec<_> = scene.list("submissions").iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, ["COMPLETE", "COMPLETE"]);
    apple.check();
}

#[tokio::test]
async fn a_first_version_has_no_release_notes() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = shared();
    let scene = Scene::without_version(apple, "first");
    scene.version("1.0", "PREPARE_FOR_SUBMISSION", json!({"en-US": {}}));
    let order = scene.to_app_store(AppStoreOptions::default());
    let end = scene.run(&order, Progress::None).await;
    assert_eq!(end.state, PublicationState::Live);
    assert_eq!(scene.published()["localizations"][0]["whatsNew"], Value::Null);
    let phased = wanting(&scene.to_app_store(AppStoreOptions::default()), share(10));
    let scene = Scene::without_version(apple, "first-in-phases");
    let order = PublicationOrder { app: "com.example.first-in-phases".into(), ..phased };
    let begun = scene.step(&order, &Progress::None).await.unwrap();
    assert!(refusal(scene.step(&order, &begun.progress).await).contains("Only an update"));
    apple.check();
}

#[tokio::test]
async fn testers_get_a_build_and_lose_it() {
    if !apple::is_here("testflight") {
        return;
    }
    let apple = shared();
    let scene = Scene::new(apple, "testers");
    scene.group("Team", json!({"isInternal": true}));
    let link = "https://testflight.apple.com/join/abc";
    scene.group("Friends", json!({"publicLink": link}));
    let order = scene.to_testflight(&["Team", "Friends"]);
    let review = scene.run_to(&order, PublicationState::InReview, "BETA_REVIEW").await;
    let live = scene.run(&order, review.progress).await;
    assert_eq!(
        (live.state, live.words.as_deref()),
        (PublicationState::Live, Some("IN_BETA_TESTING"))
    );
    assert_eq!(
        (live.url.as_deref(), live.remote_id.as_deref()),
        (Some(link), scene.build()["id"].as_str())
    );
    assert_eq!(scene.build()["groups"].as_array().unwrap().len(), 2);
    assert_eq!(scene.build()["notes"][0]["whatsNew"], "Better.");

    // A group lost the build, and gets it again.
    let id = scene.build()["id"].clone();
    apple.tell(&json!({"do": "change", "list": "builds", "id": id, "to": {"groups": []}}));
    let restored = scene.run(&wanting(&order, DesiredState::Restored), live.progress.clone()).await;
    assert_eq!(restored.state, PublicationState::Live);
    assert_eq!(scene.build()["groups"].as_array().unwrap().len(), 2);

    for impossible in [DesiredState::Halted, share(10)] {
        let why = refusal(scene.step(&wanting(&order, impossible), &live.progress).await);
        assert!(why.contains("TestFlight has no"), "{why}");
    }
    let withdrawn =
        scene.run(&wanting(&order, DesiredState::Withdrawn), live.progress.clone()).await;
    assert_eq!(
        (withdrawn.state, &scene.build()["expired"]),
        (PublicationState::Halted, &json!(true))
    );
    // Nobody noted that the build had expired.
    let restored = scene.run(&wanting(&order, DesiredState::Restored), live.progress).await;
    assert_eq!(restored.state, PublicationState::Halted);
    assert!(restored.log.concat().contains("expired"), "{:?}", restored.log);
    apple.check();
}

#[tokio::test]
async fn internal_testers_need_no_review() {
    if !apple::is_here("testflight") {
        return;
    }
    let apple = shared();
    let scene = Scene::new(apple, "internal");
    scene.settings(json!({"saysEncryption": null}));
    scene.group("Everything", json!({"isInternal": true, "hasAccessToAllBuilds": true}));
    let mut order = scene.to_testflight(&[]);
    let mut progress = Progress::None;
    let why = loop {
        match scene.step(&order, &progress).await {
            Ok(advanced) => progress = advanced.progress,
            Err(RemoteError::Refused(why)) => break why,
            Err(other) => panic!("{other:?}"),
        }
    };
    assert!(
        why.contains("usesNonExemptEncryption") && why.ends_with("MISSING_EXPORT_COMPLIANCE."),
        "{why}"
    );
    if let Options::Testflight(options) = &mut order.options {
        options.uses_non_exempt_encryption = Some(false);
    }
    let live = scene.run(&order, progress).await;
    assert_eq!(live.state, PublicationState::Live);
    assert_eq!(
        (&scene.build()["review"], &scene.build()["usesNonExemptEncryption"]),
        (&Value::Null, &json!(false))
    );
    apple.check();
}

#[tokio::test]
async fn both_stores_use_one_upload_of_the_same_file() {
    if !apple::is_here("app store and testflight") {
        return;
    }
    let apple = shared();
    let scene = Scene::new(apple, "both");
    scene.group("Friends", json!({}));
    let orders =
        [scene.to_app_store(AppStoreOptions::default()), scene.to_testflight(&["Friends"])];
    let mut progress = [Progress::None, Progress::None];
    let mut are_done = [false, false];
    for _ in 0..100 {
        for at in 0..2 {
            if !are_done[at] {
                let advanced = scene.step(&orders[at], &progress[at]).await.unwrap();
                progress[at] = advanced.progress;
                are_done[at] = advanced.next == NextStep::Done;
            }
        }
    }
    assert_eq!(are_done, [true, true]);
    assert_eq!(
        (scene.list("uploads").len(), scene.published()["state"].as_str()),
        (1, Some("READY_FOR_DISTRIBUTION"))
    );
    assert_eq!(scene.build()["groups"].as_array().unwrap().len(), 1);

    // The first one is given up in the middle, and the second one finishes its upload.
    let scene = Scene::new(apple, "taken-over");
    scene.group("Friends", json!({}));
    let uploads = scene.to_app_store(AppStoreOptions::default());
    let is_half = |advanced: &app_stores::Advanced| advanced.log.concat().contains("Part 1 of 3");
    let half = scene.run_until(&uploads, Progress::None, is_half).await;
    let given_up = scene.run(&wanting(&uploads, DesiredState::Withdrawn), half.progress).await;
    assert_eq!(given_up.state, PublicationState::Halted);
    let live = scene.run(&scene.to_testflight(&["Friends"]), Progress::None).await;
    assert_eq!((live.state, scene.list("uploads").len()), (PublicationState::Live, 1));

    // The first one is slow, and goes on when the second one has lost its patience.
    let scene = Scene::new(apple, "slow");
    scene.group("Friends", json!({}));
    let (slow, other) =
        (scene.to_app_store(AppStoreOptions::default()), scene.to_testflight(&["Friends"]));
    let half = scene.run_until(&slow, Progress::None, is_half).await;
    let impatient = scene.run_until(&other, Progress::None, is_half).await;
    let end = scene.run(&slow, half.progress).await;
    assert_eq!(end.state, PublicationState::Live);
    let end = scene.run(&other, impatient.progress).await;
    assert_eq!((end.state, scene.list("uploads").len()), (PublicationState::Live, 1));
    apple.check();
}
