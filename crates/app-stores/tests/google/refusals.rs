//! What Google, or a check before anything is sent, refuses: each refusal says what to do.

use super::world::{App, completed, drive, file_that, key, order, play, share, shared};
use app_stores::{
    AnyStore, DesiredState, Options, Pem, Progress, PublicationOrder, RemoteError, StoreKey,
};
use contract::{artifacts::ArtifactKind, publishing::GooglePlayOptions};
use serde_json::{Value, json};
use test_support::google::{self, CLIENT_EMAIL, Google, PRIVATE_KEY_ID, private_key};

/// Stands for the package name of each case.
const APP: &str = "the app";

/// What is not usual: the app, the file, the order.
struct Case {
    name: &'static str,
    app: Value,
    file: Value,
    order: fn(&mut PublicationOrder),
    /// Parts of the refusal.
    says: &'static [&'static str],
    /// Whether bytes were sent.
    sends: bool,
}

impl Default for Case {
    fn default() -> Self {
        let file = json!({"packageName": APP, "versionCode": 42});
        Case { name: "", app: json!({}), file, order: |_| {}, says: &[], sends: false }
    }
}

fn options(order: &mut PublicationOrder) -> &mut GooglePlayOptions {
    let Options::GooglePlay(options) = &mut order.options else { unreachable!() };
    options
}

fn cases() -> Vec<Case> {
    let long = |order: &mut PublicationOrder| {
        order.notes = [("de-DE".parse().unwrap(), "ä".repeat(501).parse().unwrap())].into();
    };
    vec![
        Case {
            name: "notes",
            order: long,
            says: &["de-DE", "501 characters", "takes 500"],
            ..Case::default()
        },
        Case {
            name: "kind",
            order: |order| order.file.kind = ArtifactKind::Ipa,
            says: &[".aab"],
            ..Case::default()
        },
        Case {
            name: "track",
            order: |order| options(order).track = Some("qa".parse().unwrap()),
            says: &["no track \"qa\"", "production"],
            ..Case::default()
        },
        Case {
            name: "used code",
            app: json!({"tracks": {"production": [completed(41)], "beta": [completed(42)]}}),
            says: &["Version code 42 was used already by other bytes", "higher"],
            ..Case::default()
        },
        Case {
            name: "lower code",
            app: json!({"tracks": {"production": [completed(43)]}}),
            says: &["already gives version code 43", "higher"],
            ..Case::default()
        },
        Case {
            name: "first staged",
            app: json!({"tracks": {"production": []}}),
            order: |order| order.wanted = share(10),
            says: &["the first of its track", "without `rollout`"],
            ..Case::default()
        },
        Case {
            name: "permission",
            app: json!({"members": ["somebody@else.example"]}),
            says: &["permissions", "The caller does not have permission (403 forbidden)"],
            ..Case::default()
        },
        Case {
            name: "unknown app",
            order: |order| order.app = "com.example.unknown".into(),
            says: &["first version by hand", "(404 applicationNotFound)"],
            ..Case::default()
        },
        Case {
            name: "draft app",
            app: json!({"draft": true, "tracks": {"production": []}}),
            says: &["option `draft`", "(400 rolloutNotPermittedOnDraftApp)"],
            sends: true,
            ..Case::default()
        },
        Case {
            name: "manual review",
            app: json!({"manual": true}),
            says: &["with the option `changesNotSentForReview`", "set the query parameter"],
            sends: true,
            ..Case::default()
        },
        Case {
            name: "automatic review",
            order: |order| options(order).changes_not_sent_for_review = true,
            says: &["Leave the option `changesNotSentForReview` out", "must not be set"],
            sends: true,
            ..Case::default()
        },
        Case {
            name: "other package",
            file: json!({"packageName": "com.example.other", "versionCode": 42}),
            says: &["one of another app", "(403 apkPackageNameInvalid)"],
            sends: true,
            ..Case::default()
        },
        Case {
            name: "unsigned",
            file: json!({"packageName": APP, "versionCode": 42, "signed": false}),
            says: &["Sign it for release", "(403 apkNotSigned)"],
            sends: true,
            ..Case::default()
        },
        Case {
            name: "other bytes",
            order: |order| order.file.sha256 = "0".repeat(64).parse().unwrap(),
            says: &["Nothing was published", "0000"],
            sends: true,
            ..Case::default()
        },
        Case {
            name: "other code",
            file: json!({"packageName": APP, "versionCode": 77}),
            says: &["version code 77", "Nothing was published"],
            sends: true,
            ..Case::default()
        },
    ]
}

#[tokio::test]
async fn each_refusal_says_what_to_do() {
    if !google::is_here("each_refusal_says_what_to_do") {
        return;
    }
    let google = shared();
    let (play, key) = (play(google), key(google));
    for case in cases() {
        // The app is new for each: the fake adds what it is told.
        let app = format!("com.example.refused.{}", case.name.replace(' ', "_"));
        let named =
            |text: &Value| text.to_string().replace(&format!("\"{APP}\""), &format!("\"{app}\""));
        let mut like: Value = serde_json::from_str(&named(&case.app)).unwrap();
        let tracks = json!({"production": [completed(41)], "beta": [completed(40)]});
        let given = like.as_object_mut().unwrap();
        given.entry("tracks").or_insert(tracks);
        given.extend([("do".into(), "playApp".into()), ("packageName".into(), app.clone().into())]);
        google.tell(&like);
        let file = file_that(&serde_json::from_str(&named(&case.file)).unwrap(), 1000);
        let mut order = order(&file, 42, "production", DesiredState::Released(None));
        order.app.clone_from(&app);
        (case.order)(&mut order);
        let refusal = drive(&play, &key, &order, &file, &Progress::None).await.unwrap_err();
        let RemoteError::Refused(why) = &refusal else { panic!("{}: {refusal:?}", case.name) };
        println!("{}: {why}", case.name);
        for part in case.says {
            assert!(why.contains(part), "{}: {why}", case.name);
        }
        let state = google.state();
        assert_eq!(
            google.seen(&order.app)["commits"].as_array().map_or(0, Vec::len),
            0,
            "{}",
            case.name
        );
        let requests = state["requests"].as_array().unwrap().iter();
        let part = format!("/{app}/");
        let is_upload = |it: &Value| {
            let path = it["path"].as_str().unwrap();
            path.starts_with("/upload/") && path.contains(&part)
        };
        assert_eq!(requests.clone().any(is_upload), case.sends, "{}", case.name);
    }
    google.check();
}

/// What may be refused once a version is released.
#[tokio::test]
async fn a_share_is_never_lowered() {
    if !google::is_here("a_share_is_never_lowered") {
        return;
    }
    let app = App::new("lowered", &json!({}));
    let (play, key, file) = (play(app.google), key(app.google), app.file(42, 1000));
    let mut order = app.order(&file, 42, "production", share(50));
    let staged = drive(&play, &key, &order, &file, &Progress::None).await.unwrap();
    order.wanted = share(10);
    let refusal = drive(&play, &key, &order, &file, &staged.progress).await.unwrap_err();
    assert!(refusal.to_string().contains("never lowers the share to 10 %"), "{refusal}");
    // The caller may change its mind.
    order.wanted = DesiredState::Released(None);
    let full = drive(&play, &key, &order, &file, &staged.progress).await.unwrap();
    order.wanted = share(50);
    let refusal = drive(&play, &key, &order, &file, &full.progress).await.unwrap_err();
    assert!(refusal.to_string().contains("All users get the version already"), "{refusal}");
    app.google.check();
}

/// Google keeps drafts until somebody rolls them out, and a draft can be taken back.
#[tokio::test]
async fn an_app_that_was_never_published_gets_a_draft() {
    if !google::is_here("an_app_that_was_never_published_gets_a_draft") {
        return;
    }
    let app = App::new("draft", &json!({"draft": true, "tracks": {"internal": []}}));
    let (play, key, file) = (play(app.google), key(app.google), app.file(42, 1000));
    let mut order = app.order(&file, 42, "internal", DesiredState::Released(None));
    options(&mut order).draft = true;
    let draft = drive(&play, &key, &order, &file, &Progress::None).await.unwrap();
    let shown = app.seen()["tracks"]["internal"].clone();
    assert_eq!(shown, json!([{"name": "1.4.2", "versionCodes": ["42"], "status": "draft"}]));
    assert_eq!(draft.words.as_deref(), Some("draft"));
    order.wanted = DesiredState::Withdrawn;
    drive(&play, &key, &order, &file, &draft.progress).await.unwrap();
    assert_eq!(app.seen()["tracks"]["internal"], json!([]));
    app.google.check();
}

#[tokio::test]
async fn keys_open_apps_and_stay_secret() {
    if !google::is_here("keys_open_apps_and_stay_secret") {
        return;
    }
    let google = Google::start();
    let app = App::of(&google, "keys", &json!({}));
    let (play, good) = (play(&google), key(&google));
    let said = play.check_access(&good, &app.name).await.unwrap();
    assert_eq!(
        said,
        format!(
            "The service account {CLIENT_EMAIL} opens {} in Google Play, with the tracks \
             beta, production.",
            app.name
        )
    );
    assert_eq!(app.seen()["commits"], json!([]));
    // A token that Google took back is replaced, once.
    google.tell(&json!({"do": "revoke"}));
    play.check_access(&good, &app.name).await.unwrap();
    // A key that is another's, one that is none, and one that was disabled.
    let with = |pem: String| match key(&google) {
        StoreKey::Google(mut account) => {
            account.private_key = Pem(pem);
            StoreKey::Google(account)
        }
        StoreKey::Apple(_) => unreachable!(),
    };
    let (stranger, broken) = (private_key(), google.private_key.replace("KEY", "KEE"));
    let mut refusals = Vec::new();
    for pem in [&stranger, &broken] {
        refusals.push(play.check_access(&with(pem.clone()), &app.name).await.unwrap_err());
    }
    google.tell(&json!({"do": "account", "privateKeyId": PRIVATE_KEY_ID, "disabled": true}));
    google.tell(&json!({"do": "revoke"}));
    refusals.push(play.check_access(&good, &app.name).await.unwrap_err());
    let said = refusals.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(
        said[0].contains("Create a new key") && said[0].contains("invalid_grant"),
        "{}",
        said[0]
    );
    assert!(said[1].contains("cannot sign"), "{}", said[1]);
    assert!(said[2].contains("deleted or disabled"), "{}", said[2]);
    let told = format!("{refusals:?} {good:?} {:?}", with(stranger.clone()));
    for pem in [&google.private_key, &stranger, &broken] {
        let secret = pem.lines().nth(1).unwrap();
        assert!(!told.contains(secret) && !said.concat().contains(secret));
    }
    assert!(!told.contains("ya29"));
}

/// While a publication has an edit, a check of the key does not end it.
#[tokio::test]
async fn a_check_of_the_key_ends_no_edit() {
    if !google::is_here("a_check_of_the_key_ends_no_edit") {
        return;
    }
    let app = App::new("checked", &json!({}));
    let (play, key, file) = (play(app.google), key(app.google), app.file(42, 1000));
    let order = app.order(&file, 42, "production", DesiredState::Released(None));
    let opened = play.advance(&key, &order, &file, &Progress::None).await.unwrap();
    let busy = play.check_access(&key, &app.name).await.unwrap_err();
    assert!(matches!(busy, RemoteError::Busy { .. }), "{busy:?}");
    drive(&play, &key, &order, &file, &opened.progress).await.unwrap();
    play.check_access(&key, &app.name).await.unwrap();
    app.google.check();
}
