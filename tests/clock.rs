//! A clock that jumps deletes nothing, until an operator confirms it.

use crate::support::service::{Service, eventually};
use serde_json::{Value, json};

const YEAR: &str = "31536000";

fn restart(service: &mut Service, ahead: &str) {
    service.stop();
    service.set("SVC_CLOCK_AHEAD", ahead);
    service.boot();
}

fn clock(service: &Service) -> Value {
    let ready = service.http.get(format!("{}/readyz", service.url)).send().unwrap();
    ready.json::<Value>().unwrap()["checks"]["clock"].clone()
}

fn sweeps(service: &Service) -> usize {
    service.log().matches("a sweep of expired records ended").count()
}

#[test]
fn a_clock_a_year_ahead_deletes_nothing_until_it_is_confirmed() {
    let mut service = Service::start_with(&[("SVC_LOG", "info,actors=debug")]);
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let upload = service.send(&ada, &app, "sample.apk", Some("1.4.2"));
    let upload = json!({"artifactId": upload});
    assert_eq!(clock(&service)["ok"], true);

    let before = sweeps(&service);
    restart(&mut service, YEAR);
    let jumped = clock(&service);
    assert_eq!(jumped["ok"], false);
    let seconds = jumped["jumpedSeconds"].as_i64().unwrap();
    assert!((31_535_990..31_536_600).contains(&seconds), "{seconds}");
    eventually("there was a sweep", || sweeps(&service) > before);
    let metrics = service.http.get(format!("{}/metrics", service.url)).send().unwrap();
    assert!(metrics.text().unwrap().contains("\nsvc_clock_jumped 1\n"));

    restart(&mut service, "0");
    assert_eq!(clock(&service)["ok"], true, "it was set right");
    let seen = service.call(Some(&ada), "svc_getArtifact", upload.clone());
    assert_eq!(seen.ok()["state"], "pending", "the session and the upload are there");

    restart(&mut service, YEAR);
    let admin = service.administrator();
    let attention = || {
        let overview = service.call(Some(&admin), "svc_admin_getOverview", json!({})).ok();
        let attention = overview["attention"].as_array().unwrap().clone();
        attention.iter().any(|entry| entry["reason"] == "clockJumped")
    };
    assert!(attention());
    let refused = service.call(None, "svc_admin_confirmClock", json!({}));
    assert_eq!(refused.status, 401);
    let confirmed = service.call(Some(&admin), "svc_admin_confirmClock", json!({})).ok();
    assert_eq!(confirmed["ok"], true);
    assert!(!attention() && clock(&service)["ok"] == true);
    let ada = service.sign_in(&ada, "correct horse");
    eventually("what has expired goes", || {
        service.call(Some(&ada), "svc_getArtifact", upload.clone()).ok()["state"] == "expired"
    });
    service.stop();
    service.check();
}
