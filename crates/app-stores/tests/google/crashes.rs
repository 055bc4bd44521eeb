//! Publications whose service dies, whose requests go wrong, and whose edits others end.

use super::world::{Mischief, Place, completed, file_that, hash, key, order, play, share, shared};
use app_stores::{Action, AnyStore, DesiredState, NextStep, Progress};
use futures_util::{StreamExt, future::ready, stream};
use serde_json::{Value, json};
use test_support::google::{self, Google};

/// Each is one change in the store.
const LIFE: usize = 6;
fn life() -> [DesiredState; LIFE] {
    let released = DesiredState::Released(None);
    [share(10), share(50), DesiredState::Halted, share(50), released, DesiredState::Withdrawn]
}
/// How many steps and requests the longest part of a life takes. The request before the last is the
/// commit.
const MOST_STEPS: usize = 7;
const MOST_REQUESTS: usize = 13;
/// How many lives are lived at the same time.
const AT_ONCE: usize = 4;

/// A pattern of the paths of an app.
fn pattern(app: &str) -> String {
    format!("/{}/", app.replace('.', "\\."))
}

/// Lives a whole life in an app of its own, and returns what the store saw of it.
async fn lived(google: &Google, number: usize, mischief: Mischief) -> Value {
    let app = format!("com.example.app{number}");
    let tracks = json!({"production": [completed(41)], "beta": [completed(40)]});
    google.tell(&json!({"do": "playApp", "packageName": app, "tracks": tracks}));
    let key = key(google);
    let client = || Box::new(play(google)) as Box<dyn AnyStore>;
    let path = pattern(&app);
    let place = Place { google, key: &key, client: &client, path };
    let file = file_that(&json!({"packageName": app, "versionCode": 42}), 1000);
    let mut progress = Progress::None;
    let mut steps = Vec::new();
    for wanted in life() {
        let mut order = order(&file, 42, "production", wanted);
        order.app.clone_from(&app);
        steps.push(place.reach(&order, &file, &mut progress, mischief).await);
        if mischief == Mischief::None && steps.len() == 1 {
            let requests = google.state()["requests"].as_array().unwrap().clone();
            let paths = requests.iter().map(|it| it["path"].as_str().unwrap());
            assert_eq!(paths.filter(|path| path.contains(&app)).count(), MOST_REQUESTS);
        }
    }
    if mischief == Mischief::None {
        assert_eq!(steps.iter().max(), Some(&MOST_STEPS), "{steps:?}");
    }
    let seen = google.seen(&app);
    let commits = seen["commits"].as_array().unwrap();
    let codes = commits.iter().map(|commit| {
        assert_eq!(commit["tracks"].as_object().unwrap().len(), 1, "one track changes");
        commit["tracks"]["production"].clone()
    });
    let files: Vec<_> = commits.iter().flat_map(|it| it["uploads"].as_array().unwrap()).collect();
    json!({
        "changes": codes.collect::<Vec<_>>(),
        "committed files": files.iter().map(|it| *it == &json!(hash(&file))).collect::<Vec<_>>(),
        "tracks": seen["tracks"],
        "uploads": seen["uploads"].as_array().unwrap().len(),
    })
}

#[tokio::test]
async fn whatever_breaks_the_store_sees_each_change_once() {
    if !google::is_here("whatever_breaks_the_store_sees_each_change_once") {
        return;
    }
    let google = shared();
    let usual = lived(google, 0, Mischief::None).await;
    assert_eq!(usual["changes"].as_array().unwrap().len(), LIFE);
    assert_eq!(usual["committed files"], json!([true]));
    assert_eq!(usual["uploads"], 1);
    let twice = (0..MOST_STEPS).map(|step| Mischief::Twice(Some(step)));
    let cuts = (0..MOST_REQUESTS)
        .flat_map(|nth| ["cutBefore", "cutAfter"].map(|how| Mischief::Fault(nth, how)));
    let others = [
        Mischief::Twice(None),
        Mischief::Fault(MOST_REQUESTS - 2, "unavailable"),
        Mischief::Fault(MOST_REQUESTS - 2, "limited"),
        Mischief::Fault(MOST_REQUESTS - 2, "conflict"),
    ];
    let kept_edits = twice.chain(cuts).chain(others);
    let ended = (0..MOST_STEPS).zip(["deleted", "expired", "committed"].into_iter().cycle());
    let ended = ended.map(|(step, how)| Mischief::EndedEdit(step, how));
    let one = async |(number, mischief): (usize, Mischief)| {
        let mut seen = lived(google, number + 1, mischief).await;
        // What was uploaded in an edit is lost with it, so it may be sent twice. It is committed once.
        if matches!(mischief, Mischief::EndedEdit(..) | Mischief::Fault(_, "conflict")) {
            seen["uploads"] = 1.into();
        }
        assert_eq!(seen, usual, "{mischief:?}");
    };
    let all = stream::iter(kept_edits.chain(ended).enumerate());
    all.map(one).buffer_unordered(AT_ONCE).for_each(|()| ready(())).await;
    google.check();
}

/// A publication that is withdrawn at any step, by a service that died or did not, reaches nobody,
/// and what the plan said is what was done.
#[tokio::test]
async fn a_publication_can_be_withdrawn_at_any_step() {
    if !google::is_here("a_publication_can_be_withdrawn_at_any_step") {
        return;
    }
    let google = shared();
    let key = key(google);
    let client = || Box::new(play(google)) as Box<dyn AnyStore>;
    let mut was_halted = 0;
    for steps in 0..9 {
        for died in [false, true] {
            let app = format!("com.example.app{steps}{died}");
            let tracks = json!({"production": [completed(41)]});
            google.tell(&json!({"do": "playApp", "packageName": app, "tracks": tracks}));
            let says = json!({"packageName": app, "versionCode": 42});
            let file = file_that(&says, 1000);
            let mut order = order(&file, 42, "production", share(10));
            order.app.clone_from(&app);
            let mut progress = Progress::None;
            for step in 0..steps {
                let advanced = client().advance(&key, &order, &file, &progress).await.unwrap();
                if step + 1 < steps || !died {
                    progress = advanced.progress;
                }
                if advanced.next != NextStep::Now {
                    break;
                }
            }
            let plan = progress.withdrawal();
            order.wanted = DesiredState::Withdrawn;
            let place = Place { google, key: &key, client: &client, path: pattern(&app) };
            place.reach(&order, &file, &mut progress, Mischief::None).await;
            let seen = google.seen(&app);
            let releases = seen["tracks"]["production"].as_array().unwrap();
            assert_eq!(
                releases.iter().find(|it| it["versionCodes"][0] == "41").unwrap(),
                &completed(41)
            );
            let ours = releases.iter().find(|it| it["versionCodes"][0] == "42");
            match ours.map(|it| it["status"].as_str().unwrap()) {
                None => assert_eq!(plan.action, Action::Abandon, "{steps} {died}"),
                Some(status) => {
                    was_halted += 1;
                    assert_eq!(status, "halted", "{steps} {died}");
                    // The plan was made by a service that died while the commit was under way.
                    let in_doubt = died && plan.text.contains("in just this moment");
                    assert!(plan.action == Action::Halt || in_doubt, "{steps} {died}: {plan:?}");
                }
            }
            assert!(!progress.withdrawal().text.is_empty());
        }
    }
    assert!(was_halted >= 3, "{was_halted} had been committed");
    google.check();
}
