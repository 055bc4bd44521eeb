//! Whether the service believes that only its own machine reaches it.

use crate::support::service::Service;
use serde_json::json;

fn builds(service: &Service) -> bool {
    let info = service.call(None, "svc_getServiceInfo", json!({})).ok();
    info["buildsRepositories"].as_bool().unwrap()
}

#[test]
fn a_forwarded_request_says_for_ever_that_others_reach_the_service() {
    let mut service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    assert!(builds(&service), "only this machine reaches it");
    let forwarded = service.http.get(format!("{}/backend/health", service.url));
    forwarded.header("X-Forwarded-For", "203.0.113.7").send().unwrap();
    assert!(!builds(&service));
    service.stop();
    service.boot();
    assert!(!builds(&service), "a restart forgets nothing");
    service.stop();
    service.set("SVC_TRUST_BUILDS", "true");
    service.boot();
    assert!(builds(&service), "the operator says so");
    service.stop();
    service.check();
}

#[test]
fn a_proxy_in_the_settings_says_so_too() {
    let service = Service::start_with(&[("SVC_TRUSTED_PROXIES", "192.0.2.1")]);
    assert!(!builds(&service));
}
