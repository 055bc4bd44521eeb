//! What Apple refuses, and what is refused before Apple hears of it.

use super::scene::{Scene, key, shared};
use app_stores::{
    AnyStore, Progress, PublicationOrder, RemoteError, app_store::AppStore, testflight::Testflight,
};
use contract::{publishing::AppStoreOptions, releases::PublicationState};
use serde_json::json;
use std::time::Duration;
use test_support::apple::{self, Apple, DEVELOPER_KEY_ID, ISSUER_ID, KEY_ID, PERSONAL_KEY_ID};

/// The first refusal that a publication meets, and whether anything was uploaded before.
async fn refused(scene: &Scene<'_>, order: &PublicationOrder) -> (String, bool) {
    let mut progress = Progress::None;
    for _ in 0..100 {
        match scene.step(order, &progress).await {
            Ok(advanced) => progress = advanced.progress,
            Err(RemoteError::Refused(why)) => return (why, !scene.list("uploads").is_empty()),
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("nothing was refused");
}

#[tokio::test]
async fn what_is_in_the_way_is_said_before_anything_is_sent() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = shared();
    let expect = async |scene: &Scene<'_>, order: &PublicationOrder, words: &[&str]| {
        let (why, was_sent) = refused(scene, order).await;
        assert!(!was_sent, "{why}");
        for word in words {
            assert!(why.contains(word), "{word}: {why}");
        }
    };
    let store = |scene: &Scene<'_>| scene.to_app_store(AppStoreOptions::default());

    let scene = Scene::new(apple, "unknown");
    let order = PublicationOrder { app: "com.example.nobody".into(), ..store(&scene) };
    expect(&scene, &order, &["no app com.example.nobody"]).await;

    let scene = Scene::new(apple, "numbers");
    let mut order = store(&scene);
    order.file.version = "1.4.2.1".into();
    expect(&scene, &order, &["1.4.2.1", "CFBundleShortVersionString"]).await;

    let scene = Scene::new(apple, "long");
    let long = Some("x".repeat(4001).parse().unwrap());
    let order = PublicationOrder { default_notes: long, ..store(&scene) };
    expect(&scene, &order, &["4001 characters", "4000"]).await;

    let scene = Scene::new(apple, "not-higher");
    scene.version("2.0", "READY_FOR_DISTRIBUTION", json!({"en-US": {}}));
    expect(&scene, &store(&scene), &["version 2.0 already", "1.4.2 is not higher"]).await;

    let scene = Scene::new(apple, "other-in-review");
    scene.version("1.4.1", "IN_REVIEW", json!({"en-US": {}}));
    expect(&scene, &store(&scene), &["Version 1.4.1", "IN_REVIEW"]).await;

    let scene = Scene::new(apple, "incomplete");
    scene.version("1.4.1", "PREPARE_FOR_SUBMISSION", json!({"de-DE": {"keywords": null}}));
    expect(&scene, &store(&scene), &["de-DE needs keywords"]).await;

    let scene = Scene::new(apple, "no-news");
    let order = PublicationOrder { default_notes: None, ..store(&scene) };
    expect(&scene, &order, &["An update needs release notes", "en-US"]).await;

    let scene = Scene::new(apple, "no-group");
    scene.group("Friends", json!({}));
    let order = scene.to_testflight(&["Freinds"]);
    expect(&scene, &order, &["no group Freinds", "the app has Friends"]).await;

    let scene = Scene::new(apple, "other-build");
    let build = json!({"do": "build", "app": scene.app, "version": "1.4.2", "number": "42"});
    apple.tell(&build);
    expect(&scene, &store(&scene), &["already has build 42 of version 1.4.2", "Raise"]).await;

    let scene = Scene::new(apple, "other-upload");
    let upload = json!({"do": "upload", "app": scene.app, "version": "1.4.2", "number": "42",
        "file": "other.ipa"});
    apple.tell(&upload);
    let (why, _) = refused(&scene, &store(&scene)).await;
    assert!(why.contains("unfinished upload of another file"), "{why}");
    apple.check();
}

#[tokio::test]
async fn apples_refusals_say_what_to_do() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = shared();
    let scene = Scene::new(apple, "lacks");
    scene.settings(json!({"lacks": [
        {"path": "/v1/appDataUsages/", "code": "STATE_ERROR.APP_DATA_USAGES_REQUIRED",
            "detail": "Answers to what data your app collects are needed."},
        {"path": "/v1/appScreenshotSets/", "code": "STATE_ERROR.SCREENSHOT_REQUIRED.APP_IPHONE_65",
            "detail": "App screenshot missing (APP_IPHONE_65)."},
    ]}));
    let order = scene.to_app_store(AppStoreOptions::default());
    let (why, _) = refused(&scene, &order).await;
    for word in ["app privacy", "screenshots", "APP_IPHONE_65"] {
        assert!(why.contains(word), "{word}: {why}");
    }

    // The file itself is refused: the publication has failed for good.
    let scene = Scene::new(apple, "purpose");
    scene.settings(json!({"uploadErrors": [
        {"code": "90683", "description": "Missing purpose string in Info.plist."}]}));
    let failed = scene.run(&scene.to_app_store(AppStoreOptions::default()), Progress::None).await;
    assert_eq!(failed.state, PublicationState::Failed);
    assert!(failed.error.unwrap().ends_with("Missing purpose string in Info.plist (90683)"));
    assert!(failed.log.is_empty() || !failed.log.concat().contains("Apple has taken"));
    let scene = Scene::new(apple, "invalid");
    scene.settings(json!({"processed": "INVALID"}));
    let failed = scene.run(&scene.to_testflight(&[]), Progress::None).await;
    assert_eq!(failed.state, PublicationState::Failed);
    assert!(failed.error.unwrap().contains("INVALID"));
    let scene = Scene::new(apple, "beta-rejected");
    scene.settings(json!({"betaVerdict": "REJECTED"}));
    scene.group("Friends", json!({}));
    let failed = scene.run(&scene.to_testflight(&["Friends"]), Progress::None).await;
    assert_eq!(
        (failed.state, failed.words.as_deref()),
        (PublicationState::Failed, Some("BETA_REJECTED"))
    );
    apple.check();
}

#[tokio::test]
async fn keys_that_do_not_fit_are_told_apart() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = Apple::start();
    let scene = Scene::new(&apple, "keys");
    let app = "com.example.keys";
    let store = AppStore::new(&apple.api).unwrap();
    let testflight = Testflight::new(&format!("{}/", apple.api)).unwrap();
    let secret = &apple.private_key;
    let personal = key(PERSONAL_KEY_ID, None, secret);
    for good in [scene.key(), personal.clone()] {
        let found = store.check_access(&good, app).await.unwrap();
        assert_eq!(found, "The key opens Demo (com.example.keys) and may change its releases.");
    }
    let developer = key(DEVELOPER_KEY_ID, Some(ISSUER_ID), secret);
    assert!(testflight.check_access(&developer, app).await.unwrap().contains("its builds"));

    let no_pem = key("NOPEM00001", Some(ISSUER_ID), "no key");
    let stranger = key("STRANGER01", Some(ISSUER_ID), secret);
    let wrong_issuer = key(PERSONAL_KEY_ID, Some(ISSUER_ID), secret);
    let mut said = Vec::new();
    for (wrong, word) in [
        (developer, "App Manager"),
        (no_pem, "EC P-256"),
        (stranger, "revoked"),
        (wrong_issuer, "issuer"),
    ] {
        let error = store.check_access(&wrong, app).await.unwrap_err();
        assert!(matches!(&error, RemoteError::Refused(why) if why.contains(word)), "{error:?}");
        said.push(format!("{error} {error:?} {wrong:?}"));
    }
    apple.tell(&json!({"do": "role", "keyId": KEY_ID, "isRevoked": true}));
    let revoked = store.check_access(&scene.key(), app).await.unwrap_err();
    assert!(revoked.to_string().ends_with("(NOT_AUTHORIZED)"), "{revoked}");
    apple.tell(&json!({"do": "agreements", "are": false}));
    let agreements = store.check_access(&personal, app).await.unwrap_err().to_string();
    assert!(agreements.contains("https://appstoreconnect.apple.com/business"), "{agreements}");

    said.push(format!("{revoked:?} {agreements} {:?}", scene.key()));
    let line = secret.lines().nth(1).unwrap();
    assert!(said.iter().all(|text| !text.contains(line) && !text.contains("Bearer")), "{said:?}");
    apple.check();
}

#[tokio::test]
async fn a_limit_is_obeyed_and_a_token_is_used_again() {
    if !apple::is_here("app store") {
        return;
    }
    let apple = Apple::start();
    let scene = Scene::new(&apple, "limit");
    apple.tell(&json!({"do": "fail", "how": {"status": 429, "retryAfter": 77}}));
    let order = scene.to_app_store(AppStoreOptions::default());
    let busy = scene.step(&order, &Progress::None).await.unwrap_err();
    assert!(
        matches!(busy, RemoteError::Busy { after, .. } if after == Duration::from_secs(77)),
        "{busy:?}"
    );
    let store = AppStore::new(&apple.api).unwrap();
    for _ in 0..3 {
        store.check_access(&scene.key(), "com.example.limit").await.unwrap();
    }
    assert_eq!(apple.state()["tokens"], json!(1));
    // What gives access to the place of the file is not shown.
    let has_place = |a: &app_stores::Advanced| a.log.concat().contains("Part 1");
    let half = scene.run_until(&order, Progress::None, has_place).await;
    let shown = format!("{half:?}");
    assert!(shown.contains("Part(0+400)") && !shown.contains("signature"), "{shown}");
    assert!(serde_json::to_string(&half.progress).unwrap().contains("signature"));
    apple.check();
}
