//! Publications whose every step is thrown away once, and whose every request fails once: nothing
//! happens twice.

use super::scene::{Scene, wanting};
use app_stores::{Advanced, DesiredState, NextStep, Progress, PublicationOrder, RemoteError};
use contract::{
    publishing::{AppStoreOptions, AppStoreRelease, Percent},
    releases::PublicationState,
};
use serde_json::{Value, json};
use test_support::apple::{self, Apple};

/// Performs steps until `is_there`. Each successful step is thrown away once, as by a crash before its
/// progress was kept, and done again by a new client.
async fn crash_to(
    scene: &mut Scene<'_>,
    order: &PublicationOrder,
    progress: Progress,
    is_there: impl Fn(&Advanced) -> bool,
) -> Advanced {
    let mut progress = progress;
    let mut was_thrown_away = false;
    for _ in 0..600 {
        match scene.step(order, &progress).await {
            Ok(_) if !was_thrown_away => {
                scene.crash();
                was_thrown_away = true;
            }
            Ok(advanced) if is_there(&advanced) => return advanced,
            Ok(advanced) => (progress, was_thrown_away) = (advanced.progress, false),
            Err(RemoteError::Busy { .. } | RemoteError::Unclear(_)) => {}
            Err(refused) => panic!("{refused} after {progress:?}"),
        }
    }
    panic!("it does not end: {progress:?}");
}

fn is_done(advanced: &Advanced) -> bool {
    advanced.next == NextStep::Done
}

const FAULTS: [&str; 4] = ["cutAfter", "cutBefore", "500", "429"];

fn fail_each(apple: &Apple, how: &str) {
    let how = match how.parse::<u16>() {
        Ok(status) => json!({"status": status, "retryAfter": 1}),
        Err(_) => json!(how),
    };
    apple.tell(&json!({"do": "fail", "each": true, "how": how}));
}

fn one_upload(scene: &Scene<'_>) {
    assert_eq!(scene.list("uploads").len(), 1);
    let upload = scene.list("uploads")[0]["id"].clone();
    let state = scene.apple.state();
    let files = state["files"].as_array().unwrap().iter();
    assert_eq!(files.filter(|file| file["upload"] == upload).count(), 1);
}

#[tokio::test]
async fn a_version_is_released_once_whatever_fails() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = Apple::start();
    for how in FAULTS {
        fail_each(&apple, how);
        let mut scene = Scene::new(&apple, &format!("released-{how}"));
        let by_hand = AppStoreOptions {
            release: Some(AppStoreRelease::Manual),
            phased: true,
            ..AppStoreOptions::default()
        };
        let order = scene.to_app_store(by_hand);
        let waits = |a: &Advanced| a.words.as_deref() == Some("PENDING_DEVELOPER_RELEASE");
        let waiting = crash_to(&mut scene, &order, Progress::None, waits).await;
        let some = wanting(&order, DesiredState::Released(Percent::of_hundredths(1000)));
        let is_live = |a: &Advanced| a.state == PublicationState::Live;
        let live = crash_to(&mut scene, &some, waiting.progress, is_live).await;
        let halted = wanting(&order, DesiredState::Halted);
        let halted = crash_to(&mut scene, &halted, live.progress, is_done).await;
        let all = wanting(&order, DesiredState::Released(Some(Percent::ALL)));
        crash_to(&mut scene, &all, halted.progress, is_done).await;
        apple.tell(&json!({"do": "heal"}));

        one_upload(&scene);
        let version = scene.published();
        assert_eq!(
            (&version["attachments"], &version["releases"]),
            (&json!(1), &json!(1)),
            "{how}"
        );
        assert_eq!(version["phased"]["history"], json!(["PAUSED", "COMPLETE"]), "{how}");
        let submissions = scene.list("submissions");
        let sent: Vec<_> = submissions.iter().map(|one| &one["sent"]).collect();
        assert_eq!(sent, [&json!(1)], "{how}");
    }
    apple.check();
}

#[tokio::test]
async fn a_version_leaves_the_review_once_whatever_fails() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = Apple::start();
    for how in FAULTS {
        fail_each(&apple, how);
        let mut scene = Scene::new(&apple, &format!("cancelled-{how}"));
        scene.settings(json!({"isReviewing": false}));
        let order = scene.to_app_store(AppStoreOptions::default());
        let waits = |a: &Advanced| a.words.as_deref() == Some("WAITING_FOR_REVIEW");
        let waiting = crash_to(&mut scene, &order, Progress::None, waits).await;
        let withdrawn = wanting(&order, DesiredState::Withdrawn);
        let end = crash_to(&mut scene, &withdrawn, waiting.progress, is_done).await;
        apple.tell(&json!({"do": "heal"}));
        assert_eq!(end.state, PublicationState::Halted);
        assert_eq!(scene.published()["state"], "DEVELOPER_REJECTED");
        let submissions = scene.list("submissions");
        let cancelled: Vec<_> = submissions.iter().map(|one| &one["cancellations"]).collect();
        assert_eq!(cancelled, [&json!(1)], "{how}");
    }
    apple.check();
}

#[tokio::test]
async fn testers_get_and_lose_a_build_once_whatever_fails() {
    if !apple::is_here("testflight") {
        return;
    }
    let apple = Apple::start();
    for how in FAULTS {
        fail_each(&apple, how);
        let mut scene = Scene::new(&apple, &format!("tested-{how}"));
        scene.group("Team", json!({"isInternal": true}));
        scene.group("Friends", json!({}));
        let order = scene.to_testflight(&["Team", "Friends"]);
        let live = crash_to(&mut scene, &order, Progress::None, is_done).await;
        assert_eq!(live.state, PublicationState::Live);
        let withdrawn = wanting(&order, DesiredState::Withdrawn);
        crash_to(&mut scene, &withdrawn, live.progress, is_done).await;
        apple.tell(&json!({"do": "heal"}));

        one_upload(&scene);
        let build: Value = scene.build();
        let notes = build["notes"].as_array().unwrap().len();
        assert_eq!(
            (&build["reviews"], &build["offers"], notes),
            (&json!(1), &json!(2), 1),
            "{how}"
        );
        assert_eq!(build["expirations"], json!(1), "{how}");
    }
    apple.check();
}

#[tokio::test]
async fn a_place_for_the_file_that_expires_is_replaced() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = Apple::start();
    let mut scene = Scene::new(&apple, "expiring");
    scene.group("Team", json!({"isInternal": true}));
    scene.settings(json!({"expiringPlaces": 2}));
    let order = scene.to_testflight(&["Team"]);
    let live = crash_to(&mut scene, &order, Progress::None, is_done).await;
    assert_eq!((live.state, scene.list("uploads").len()), (PublicationState::Live, 1));
    // Apple may tell only once how it wants the parts.
    let scene = Scene::new(&apple, "once");
    scene.group("Team", json!({"isInternal": true}));
    scene.settings(json!({"repeatsOperations": false}));
    let live = scene.run(&scene.to_testflight(&["Team"]), Progress::None).await;
    assert_eq!((live.state, scene.list("uploads").len()), (PublicationState::Live, 1));
    apple.check();
}
