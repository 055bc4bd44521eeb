//! Publications in Firebase App Distribution.

use super::world::{File, Mischief, Place, drive, file_that, firebase, hash, key, order, shared};
use app_stores::{
    Action, AnyStore, DesiredState, FirebaseApp, NextStep, Options, Progress, PublicationOrder,
    RemoteError,
};
use contract::{artifacts::ArtifactKind, publishing::Percent, releases::PublicationState};
use futures_util::{StreamExt, future::ready, stream};
use serde_json::{Value, json};
use std::time::Duration;
use test_support::google::{self, CLIENT_EMAIL, Google};

/// The id of an app in a project of its own.
fn app_id(number: usize) -> String {
    format!("1:{}:android:abc123", 1_000 + number)
}

/// An order for an app with two groups, of which one gets the release, and a tester.
fn ordered(app: &str, file: &File, wanted: DesiredState) -> PublicationOrder {
    let options = json!({"appId": app, "groups": ["qa"], "testers": ["ada@example.com"]});
    let options = serde_json::from_value::<FirebaseApp>(options).unwrap();
    let mut order = order(file, 42, "internal", wanted);
    order.options = Options::Firebase(options);
    order.file.kind = ArtifactKind::Apk;
    order.file.name = "my app+1.apk".into();
    order.default_notes = Some("Neues".parse().unwrap());
    order
}

fn with_app(google: &Google, app: &str, like: &Value) {
    let mut command = json!({"do": "firebaseApp", "id": app, "groups": ["qa", "friends"]});
    command.as_object_mut().unwrap().extend(like.as_object().unwrap().clone());
    google.tell(&command);
}

#[tokio::test]
async fn a_release_reaches_its_testers_and_is_given_again_and_deleted() {
    if !google::is_here("a_release_reaches_its_testers_and_is_given_again_and_deleted") {
        return;
    }
    let google = shared();
    let app = app_id(900);
    with_app(google, &app, &json!({}));
    // It arrives in several pieces, and takes a while.
    let (store, key, file) = (firebase(google), key(google), file_that(&json!({}), (3 << 20) + 1));
    let mut order = ordered(&app, &file, DesiredState::Released(None));
    order.file.kind = ArtifactKind::Aab;
    assert!(app_stores::StoreClient::step_within(&store, &order.file) > Duration::from_secs(130));
    assert_eq!(
        store.check_access(&key, &app).await.unwrap(),
        format!("The service account {CLIENT_EMAIL} opens {app} in Firebase App Distribution.")
    );
    let processing = drive(&store, &key, &order, &file, &Progress::None).await.unwrap();
    assert_eq!(processing.state, PublicationState::Processing);
    assert_eq!(processing.next, NextStep::After(Duration::from_secs(4)));
    assert_eq!(processing.progress.withdrawal().action, Action::Delete);
    let live = drive(&store, &key, &order, &file, &processing.progress).await.unwrap();
    assert_eq!((live.state, live.next), (PublicationState::Live, NextStep::Done));
    assert!(live.url.unwrap().starts_with("https://appdistribution.firebase.google.com/"));
    let seen = google.seen(&app);
    let release = &seen["releases"][0];
    assert_eq!(live.remote_id.unwrap(), release["name"]);
    assert_eq!(seen["uploads"], json!([{"sha256": hash(&file), "fileName": "my app+1.apk"}]));
    assert_eq!(release["releaseNotes"]["text"], "Neues");
    assert_eq!(
        (&release["groups"], &release["testers"]),
        (&json!(["qa"]), &json!(["ada@example.com"]))
    );
    assert_eq!(live.progress.restoral().action, Action::Redistribute);
    order.wanted = DesiredState::Restored;
    let restored = drive(&store, &key, &order, &file, &live.progress).await.unwrap();
    assert_eq!(restored.state, PublicationState::Live);
    assert_eq!(google.seen(&app)["distributions"].as_array().unwrap().len(), 2);
    assert_eq!(restored.progress.withdrawal().action, Action::Delete);
    order.wanted = DesiredState::Withdrawn;
    let withdrawn = drive(&store, &key, &order, &file, &restored.progress).await.unwrap();
    assert_eq!((withdrawn.state, withdrawn.next), (PublicationState::Halted, NextStep::Done));
    assert_eq!(google.seen(&app)["releases"], json!([]));
    assert_eq!(withdrawn.progress.restoral().action, Action::Nothing);
    google.check();
}

/// Lives from the upload to the deletion, and returns what the store saw of it.
async fn lived(google: &Google, number: usize, mischief: Mischief) -> Value {
    let app = app_id(number);
    with_app(google, &app, &json!({}));
    let (key, file) = (key(google), file_that(&json!({}), 1000));
    let client = || Box::new(firebase(google)) as Box<dyn AnyStore>;
    let path = format!("/projects/{}/", 1_000 + number);
    let place = Place { google, key: &key, client: &client, path };
    let mut progress = Progress::None;
    for wanted in [DesiredState::Released(None), DesiredState::Restored] {
        let order = ordered(&app, &file, wanted);
        place.reach(&order, &file, &mut progress, mischief).await;
    }
    let seen = google.seen(&app);
    let order = ordered(&app, &file, DesiredState::Withdrawn);
    place.reach(&order, &file, &mut progress, mischief).await;
    let after = google.seen(&app);
    let releases = seen["releases"].as_array().unwrap().iter();
    let releases =
        releases.map(|it| json!([it["sha256"], it["releaseNotes"], it["groups"], it["testers"]]));
    json!({
        "releases": releases.collect::<Vec<_>>(),
        "deleted": after["deleted"].as_array().unwrap().len(),
        "left": after["releases"],
    })
}

/// The same bytes twice make one release, and the same testers twice are the same testers.
#[tokio::test]
async fn whatever_breaks_there_is_one_release_for_its_testers() {
    if !google::is_here("whatever_breaks_there_is_one_release_for_its_testers") {
        return;
    }
    let google = shared();
    let usual = lived(google, 0, Mischief::None).await;
    assert_eq!(usual["releases"].as_array().unwrap().len(), 1);
    assert_eq!(usual["left"], json!([]));
    let twice = (0..7).map(|step| Mischief::Twice(Some(step)));
    let faults =
        (0..8).flat_map(|nth| ["cutBefore", "cutAfter"].map(|how| Mischief::Fault(nth, how)));
    let all = twice.chain([Mischief::Twice(None), Mischief::Fault(3, "limited")]).chain(faults);
    let one = async |(number, mischief)| {
        assert_eq!(lived(google, number + 1, mischief).await, usual, "{mischief:?}");
    };
    let all = stream::iter(all.enumerate()).map(one);
    all.buffer_unordered(4).for_each(|()| ready(())).await;
    google.check();
}

#[tokio::test]
async fn each_refusal_of_firebase_says_what_to_do() {
    if !google::is_here("each_refusal_of_firebase_says_what_to_do") {
        return;
    }
    let google = shared();
    let (store, key) = (firebase(google), key(google));
    let file = file_that(&json!({}), 1000);
    let half = DesiredState::Released(Percent::of_hundredths(5_000));
    let with = |options: Value| {
        move |order: &mut PublicationOrder| {
            let Options::Firebase(now) = &order.options else { unreachable!() };
            let mut all = serde_json::to_value(now).unwrap();
            all.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
            order.options = Options::Firebase(serde_json::from_value(all).unwrap());
        }
    };
    let aab = |order: &mut PublicationOrder| order.file.kind = ArtifactKind::Aab;
    type Change = Box<dyn Fn(&mut PublicationOrder)>;
    let table: Vec<(Value, Change, &[&str], usize)> = vec![
        (json!({}), Box::new(move |it| it.wanted = half), &["no staged rollout"], 0),
        (json!({}), Box::new(|it| it.wanted = DesiredState::Halted), &["cannot halt"], 0),
        (
            json!({}),
            Box::new(with(json!({"appId": "1:1:android:ff"}))),
            &["does not know the app", "404"],
            0,
        ),
        (
            json!({}),
            Box::new(with(json!({"groups": ["nobody"]}))),
            &["alias nobody", "qa, friends"],
            0,
        ),
        (
            json!({"aab": "PLAY_ACCOUNT_NOT_LINKED"}),
            Box::new(aab),
            &["Link the Firebase project", "NOT_LINKED"],
            0,
        ),
        (json!({"members": []}), Box::new(|_| {}), &["Firebase App Distribution Admin", "403"], 0),
    ];
    for (number, (like, change, says, uploads)) in table.into_iter().enumerate() {
        let app = app_id(500 + number);
        with_app(google, &app, &like);
        let mut order = ordered(&app, &file, DesiredState::Released(None));
        change(&mut order);
        let refusal = drive(&store, &key, &order, &file, &Progress::None).await.unwrap_err();
        let RemoteError::Refused(why) = &refusal else { panic!("{refusal:?}") };
        assert!(says.iter().all(|part| why.contains(part)), "{why}");
        let sent = google.seen(&app)["uploads"].as_array().unwrap().len();
        assert_eq!(sent, uploads, "{why}");
    }
    // A group that is deleted after the check, and a file that Firebase cannot read.
    let app = app_id(600);
    with_app(google, &app, &json!({}));
    let order = ordered(&app, &file, DesiredState::Released(None));
    let sent = drive(&store, &key, &order, &file, &Progress::None).await.unwrap();
    with_app(google, &app, &json!({"groups": []}));
    let refusal = drive(&store, &key, &order, &file, &sent.progress).await.unwrap_err();
    assert!(refusal.to_string().contains("Correct the option `groups`"), "{refusal}");
    let app = app_id(601);
    with_app(google, &app, &json!({"broken": "The APK package is malformed."}));
    let order = ordered(&app, &file, DesiredState::Released(None));
    let sent = drive(&store, &key, &order, &file, &Progress::None).await.unwrap();
    let failed = drive(&store, &key, &order, &file, &sent.progress).await.unwrap();
    assert_eq!((failed.state, failed.next), (PublicationState::Failed, NextStep::Done));
    assert!(failed.error.unwrap().ends_with("The APK package is malformed."));
    google.check();
}
