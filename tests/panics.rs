//! A panic affects only one call.

use crate::support::service::Service;
use serde_json::json;

#[test]
fn a_panic_costs_one_call_and_nothing_else() {
    let service = Service::start();
    let (ada, admin) = (service.register_free("ada"), service.administrator());
    let project = service.call(Some(&ada), "svc_createProject", json!({"name": "Shop"})).ok();
    let id = &project["id"];
    for place in ["serve", "owner"] {
        let answer = service.call(
            Some(&ada),
            "svc_test_panic",
            json!({"projectId": id, "place": place, "message": "a secret"}),
        );
        assert_eq!(answer.refusal(), (424, 141), "{place}: {}", answer.body);
        let error = answer.body["error"].as_str().unwrap();
        let request_id = answer.headers["x-request-id"].to_str().unwrap();
        assert!(error.contains(request_id) && !error.contains("a secret"), "{error}");
        assert_eq!(answer.headers["x-ratelimit-limit"], "60", "what is lost is not unlimited");
        assert_eq!(
            service.call(Some(&ada), "svc_getProject", json!({"projectId": id})).ok()["name"],
            "Shop"
        );
        let renamed = service
            .call(Some(&ada), "svc_updateProject", json!({"projectId": id, "name": place}))
            .ok();
        assert_eq!(renamed["name"], place);
        service
            .call(Some(&ada), "svc_updateProject", json!({"projectId": id, "name": "Shop"}))
            .ok();
    }
    let actors = service.call(Some(&admin), "svc_admin_getActors", json!({"query": id})).ok();
    let owner = &actors["items"][0];
    assert_eq!(
        (&owner["restarts"], &owner["lastPanic"]["message"]),
        (&json!(1), &json!("a secret"))
    );
}

#[test]
fn a_resource_that_keeps_failing_is_parked_until_an_operator_restarts_it() {
    let service = Service::start();
    let (ada, admin) = (service.register("ada"), service.administrator());
    let project = service.call(Some(&ada), "svc_createProject", json!({"name": "Shop"})).ok();
    let id = &project["id"];
    let actor = || {
        service.call(Some(&admin), "svc_admin_getActors", json!({"query": id})).ok()["items"][0]
            .clone()
    };
    let mut panics = 0;
    while actor()["state"] != "gaveUp" {
        panics += 1;
        assert!(panics < 30, "restarts are not bounded: {}", actor());
        let answer = service.call(
            Some(&ada),
            "svc_test_panic",
            json!({"projectId": id, "place": "owner", "message": "again"}),
        );
        assert_eq!(answer.refusal().1, 141);
    }
    let parked =
        service.call(Some(&ada), "svc_updateProject", json!({"projectId": id, "name": "Other"}));
    assert_eq!(parked.refusal(), (503, 100));
    assert!(parked.headers.contains_key("retry-after"));
    assert_eq!(
        service
            .http
            .get(format!("{}/readyz", service.url))
            .send()
            .unwrap()
            .json::<serde_json::Value>()
            .unwrap()["status"],
        "degraded"
    );
    // Other resources and reads are not affected.
    assert_eq!(
        service.call(Some(&ada), "svc_getProject", json!({"projectId": id})).ok()["name"],
        "Shop"
    );
    service.call(Some(&ada), "svc_createProject", json!({"name": "Another"})).ok();

    let restarted =
        service.call(Some(&admin), "svc_admin_restartActor", json!({"actorId": id})).ok();
    assert_eq!(restarted["state"], "running");
    assert_eq!(
        service
            .call(Some(&ada), "svc_updateProject", json!({"projectId": id, "name": "Other"}))
            .ok()["name"],
        "Other"
    );
}
