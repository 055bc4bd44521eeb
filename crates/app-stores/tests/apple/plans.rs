//! The plan of a withdrawal against what it does, at every step of a publication.

use super::scene::{Scene, shared, wanting};
use app_stores::{Action, DesiredState, NextStep, Progress, PublicationOrder};
use contract::publishing::{AppStoreOptions, AppStoreRelease};
use contract::releases::PublicationState;
use serde_json::{Value, json};
use test_support::apple::{self, Apple};

/// What happened to the publication in App Store Connect between two looks.
fn deed(scene: &Scene<'_>, before: &Value, after: &Value) -> Action {
    let of = |state: &Value, list: &str| -> Vec<Value> {
        let all = state[list].as_array().unwrap().iter();
        all.filter(|one| one["app"] == json!(scene.app)).cloned().collect()
    };
    let sum = |state: &Value, list: &str, pointer: &str| -> u64 {
        of(state, list).iter().filter_map(|one| one.pointer(pointer)?.as_u64()).sum()
    };
    let grew = |list: &str, pointer: &str| sum(after, list, pointer) > sum(before, list, pointer);
    let items = |state: &Value| -> usize {
        let submissions = of(state, "submissions");
        submissions.iter().map(|one| one["items"].as_array().unwrap().len()).sum()
    };
    let version = |state: &Value| {
        let versions = of(state, "versions");
        versions.into_iter().find(|one| one["version"] == "1.4.2").unwrap_or_default()
    };
    if grew("builds", "/expirations") {
        Action::Expire
    } else if grew("submissions", "/cancellations") || items(after) < items(before) {
        Action::CancelReview
    } else if version(after)["phased"]["state"] == "PAUSED"
        && version(before)["phased"]["state"] != "PAUSED"
    {
        Action::Pause
    } else if version(after)["state"] == "PENDING_DEVELOPER_RELEASE" {
        Action::Halt
    } else {
        Action::Nothing
    }
}

/// Takes a publication `steps` far. `None`: it was done before.
async fn after_steps(
    scene: &Scene<'_>,
    order: &PublicationOrder,
    steps: usize,
) -> Option<Progress> {
    let mut progress = Progress::None;
    for _ in 0..steps {
        let advanced = scene.step(order, &progress).await.unwrap();
        progress = advanced.progress;
        if advanced.next == NextStep::Done {
            return None;
        }
    }
    Some(progress)
}

/// Withdraws a publication after each of its steps. Returns the actions, without repetitions.
async fn withdrawn_everywhere(
    apple: &Apple,
    name: &str,
    order: impl Fn(&Scene<'_>) -> PublicationOrder,
) -> Vec<Action> {
    let mut actions = Vec::new();
    for steps in 0..60 {
        let scene = Scene::new(apple, &format!("{name}-{steps}"));
        scene.settings(json!({"isReviewing": true}));
        scene.group("Friends", json!({}));
        let order = order(&scene);
        let Some(progress) = after_steps(&scene, &order, steps).await else { return actions };
        let plan = progress.withdrawal();
        // Nothing moves by itself meanwhile.
        scene.settings(json!({"isReviewing": false}));
        let before = apple.state();
        let end = scene.run(&wanting(&order, DesiredState::Withdrawn), progress).await;
        let state = match plan.action {
            Action::Nothing => PublicationState::Live,
            _ => PublicationState::Halted,
        };
        assert_eq!(end.state, state, "after {steps} steps: {end:?}");
        let deed = deed(&scene, &before, &apple.state());
        let planned = match plan.action {
            // Both leave Apple as it is.
            Action::Abandon => Action::Nothing,
            action => action,
        };
        // Before the submission is sent, it is taken apart without a review.
        let is_early =
            plan.text.starts_with("If Apple has the submission") && deed == Action::Nothing;
        assert!(
            planned == deed || is_early,
            "after {steps} steps: {plan:?}, and {deed:?} happened"
        );
        let again = end.progress.withdrawal();
        assert_eq!(again.action, Action::Nothing, "{again:?}");
        if actions.last() != Some(&plan.action) {
            actions.push(plan.action);
        }
    }
    panic!("the publication does not end");
}

#[tokio::test]
async fn withdrawing_from_the_app_store_does_what_the_plan_says() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = shared();
    let actions =
        withdrawn_everywhere(apple, "at-once", |scene| scene.to_app_store(Default::default()))
            .await;
    assert_eq!(actions, [Action::Abandon, Action::CancelReview, Action::Nothing]);
    let by_hand = AppStoreOptions { release: Some(AppStoreRelease::Manual), ..Default::default() };
    let scene = Scene::new(apple, "approved");
    scene.settings(json!({"isReviewing": true}));
    let waits = |a: &app_stores::Advanced| a.words.as_deref() == Some("PENDING_DEVELOPER_RELEASE");
    let order = scene.to_app_store(by_hand);
    let approved = scene.run_until(&order, Progress::None, waits).await;
    assert_eq!(approved.progress.withdrawal().action, Action::Halt);
    let end = scene.run(&wanting(&order, DesiredState::Withdrawn), approved.progress).await;
    assert_eq!(
        (end.state, &scene.published()["state"]),
        (PublicationState::Halted, &json!("PENDING_DEVELOPER_RELEASE"))
    );
    // It was released to everybody, or in phases.
    for (name, phased, action) in [("all", false, Action::Nothing), ("some", true, Action::Pause)] {
        let scene = Scene::new(apple, name);
        let order = scene.to_app_store(AppStoreOptions { phased, ..Default::default() });
        let live = scene.run_to(&order, PublicationState::Live, "READY_FOR_DISTRIBUTION").await;
        let before = apple.state();
        assert_eq!(live.progress.withdrawal().action, action);
        scene.run(&wanting(&order, DesiredState::Withdrawn), live.progress).await;
        assert_eq!(deed(&scene, &before, &apple.state()), action);
    }
    apple.check();
}

#[tokio::test]
async fn withdrawing_from_testflight_does_what_the_plan_says() {
    if !apple::is_here("testflight") {
        return;
    }
    let apple = shared();
    let actions =
        withdrawn_everywhere(apple, "tested", |scene| scene.to_testflight(&["Friends"])).await;
    assert_eq!(actions, [Action::Abandon, Action::Expire]);
    apple.check();
}
