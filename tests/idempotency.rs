//! A change with a request id happens once.

use crate::support::{
    load::together,
    service::{Answer, Person, Service, eventually, fixture, sha256},
};
use serde_json::{Value, json};

fn once(service: &Service, who: &Person, function: &str, params: Value, id: &str) -> Answer {
    service.try_call(Some(who), function, params, Some(id)).unwrap()
}

fn count(service: &Service, who: &Person, function: &str, params: Value) -> usize {
    service.call(Some(who), function, params).ok()["items"].as_array().unwrap().len()
}

#[test]
fn a_repeated_request_id_gets_the_first_reply_and_does_nothing() {
    let mut service = Service::start();
    let (ada, bob) = (service.register("ada"), service.register("bob"));
    let create = |who: &Person, name: &str, id: &str| {
        once(&service, who, "svc_createProject", json!({"name": name}), id)
    };
    let first = create(&ada, "Shop", "one").ok();
    assert_eq!(create(&ada, "Shop", "one").ok(), first);
    assert_eq!(count(&service, &ada, "svc_getProjects", json!({})), 1);

    // The idempotency key is the caller, the function and the id. The parameters must be the same.
    let other = create(&ada, "Other", "one");
    assert_eq!(other.refusal(), (400, 142), "{}", other.body);
    assert_ne!(create(&bob, "Shop", "one").ok()["id"], first["id"]);
    assert_ne!(create(&ada, "Shop", "two").ok()["id"], first["id"]);
    let same_id = once(&service, &ada, "createOrganization", json!({"name": "Shop"}), "one");
    assert_eq!(same_id.status, 200);
    let spelled = json!({"_ApplicationId": service.application_id, "name": "Shop"});
    assert_eq!(once(&service, &ada, "svc_createProject", spelled, "one").ok(), first);
    let header = |name: &str| {
        let request = service.request(&service.http, "svc_createProject", &json!({"name": "Shop"}));
        let request = request.header("X-Parse-Session-Token", &ada.token).header(name, "one");
        Service::answer(request.send().unwrap()).unwrap().ok()
    };
    assert_eq!(
        (header("X-Parse-Request-Id"), header("Idempotency-Key")),
        (first.clone(), first.clone())
    );

    // Later changes do not change the reply.
    let id = &first["id"];
    service.call(Some(&ada), "svc_updateProject", json!({"projectId": id, "name": "Renamed"})).ok();
    let update = || {
        once(&service, &ada, "svc_updateProject", json!({"projectId": id, "name": "Shop"}), "three")
    };
    let updated = update().ok();
    service.call(Some(&ada), "svc_updateProject", json!({"projectId": id, "name": "Renamed"})).ok();
    assert_eq!(update().ok(), updated);
    let read = service.call(Some(&ada), "svc_getProject", json!({"projectId": id})).ok();
    assert_eq!(read["name"], "Renamed");

    // A reply with a secret is not kept. The service only remembers that the call was done.
    let token = || {
        let params = json!({"name": "ci", "scopes": ["artifact:upload"]});
        once(&service, &ada, "svc_createDeployToken", params, "four")
    };
    assert!(token().ok()["token"].as_str().unwrap().starts_with("svc_dt_"));
    assert_eq!(token().refusal(), (409, 137));
    assert_eq!(count(&service, &ada, "svc_getDeployTokens", json!({})), 1);

    // A refusal is repeated, although the call would succeed later.
    let acme =
        service.call(Some(&ada), "createOrganization", json!({"name": "Acme"})).ok()["id"].clone();
    let inside = service.project_with_app(&ada, Some(&acme)).0;
    let end = || once(&service, &ada, "deleteOrganization", json!({"organizationId": acme}), "end");
    let refused = end();
    assert_eq!(refused.refusal(), (409, 119));
    service.call(Some(&ada), "svc_deleteProject", json!({"projectId": inside})).ok();
    let again = end();
    assert_eq!((again.refusal(), &again.body), ((409, 119), &refused.body));
    let invalid = |id: &str| once(&service, &ada, "svc_createProject", json!({"name": ""}), id);
    assert_eq!(invalid("invalid").refusal(), (400, 142));
    create(&ada, "Valid now", "invalid").ok();
    let (_, app) = service.project_with_app(&ada, None);
    let artifact = service.upload(&ada, &app, "sample.apk", "1.4.2")["id"].clone();
    let release = |version: &str, id: &str| {
        let params = json!({"appId": app, "artifactIds": [artifact], "version": version, "channel": "production"});
        once(&service, &ada, "svc_createRelease", params, id)
    };
    let made = release("1.4.2", "five").ok();
    assert_eq!(release("1.4.2", "six").refusal(), (409, 137));
    let remove =
        || once(&service, &ada, "svc_deleteArtifact", json!({"artifactId": artifact}), "seven");
    let held = remove();
    assert_eq!(held.refusal(), (409, 119), "{}", held.body);
    assert_eq!(remove().body, held.body);
    let deleted = once(&service, &ada, "deleteApp", json!({"appId": app}), "eight");
    let deleted = deleted.ok();
    let repeated = once(&service, &ada, "deleteApp", json!({"appId": app}), "eight");
    assert_eq!(repeated.ok(), deleted, "the app is gone, and its deletion is still answered");

    // Who may not make the call any more gets no reply of an earlier one.
    let invited = json!({"organizationId": acme, "email": bob.email, "role": "admin"});
    let token = service.call(Some(&ada), "inviteMember", invited).ok()["acceptToken"].clone();
    service.call(Some(&bob), "acceptInvitation", json!({"token": token})).ok();
    let rename = || {
        let params = json!({"organizationId": acme, "name": "Renamed by Bob"});
        once(&service, &bob, "updateOrganization", params, "ten")
    };
    assert_eq!(rename().ok(), rename().ok());
    let removed = json!({"organizationId": acme, "userId": bob.id});
    service.call(Some(&ada), "removeMember", removed).ok();
    assert_eq!(rename().refusal(), (404, 101));

    // An id that cannot be kept is refused. An empty id counts as no id.
    assert_eq!(create(&ada, "Long", &"x".repeat(257)).refusal(), (400, 142));
    assert_ne!(create(&ada, "Empty", "").ok()["id"], create(&ada, "Empty", "").ok()["id"]);

    // A 401 is not kept, so the same id succeeds with a valid session.
    let stranger = Person { token: "r:0123456789abcdef0123456789abcdef".into(), ..ada.clone() };
    assert_eq!(create(&stranger, "Late", "nine").refusal(), (401, 119));
    create(&ada, "Late", "nine").ok();

    // Kept replies survive a crash.
    let repeated = [release("1.4.2", "five").ok(), create(&ada, "Shop", "one").ok()];
    assert_eq!(repeated, [made, first.clone()]);
    let before = count(&service, &ada, "svc_getProjects", json!({}));
    service.kill();
    service.boot();
    let again = once(&service, &ada, "svc_createProject", json!({"name": "Shop"}), "one");
    assert_eq!(again.ok(), first);
    assert_eq!(count(&service, &ada, "svc_getProjects", json!({})), before);
    service.stop();
    service.check();
}

#[test]
fn of_twenty_at_once_one_happens_and_all_get_its_reply() {
    let mut service = Service::start();
    let ada = service.register("ada");
    let (project, app) = service.project_with_app(&ada, None);
    let artifact = service.upload(&ada, &app, "sample.apk", "1.4.2")["id"].clone();
    let all_same = |function: &str, params: Value| {
        let answers = together(20, |_| once(&service, &ada, function, params.clone(), "twenty"));
        let replies: Vec<_> = answers.into_iter().map(Answer::ok).collect();
        assert!(replies.iter().all(|reply| *reply == replies[0]), "{function}: {replies:?}");
        replies[0].clone()
    };
    for round in 0..5 {
        let project = json!({"name": format!("Shop {round}")});
        let answers = together(20, |_| {
            once(&service, &ada, "svc_createProject", project.clone(), &format!("round {round}"))
        });
        let ids: std::collections::HashSet<_> =
            answers.into_iter().map(|a| a.ok()["id"].to_string()).collect();
        assert_eq!(ids.len(), 1, "{ids:?}");
    }
    assert_eq!(count(&service, &ada, "svc_getProjects", json!({"limit": 200})), 6);
    all_same(
        "svc_createRelease",
        json!({"appId": app, "artifactIds": [artifact], "version": "1.4.2", "channel": "production"}),
    );
    assert_eq!(count(&service, &ada, "svc_getReleases", json!({"appId": app})), 1);
    all_same("svc_updateProject", json!({"projectId": project, "name": "Renamed"}));
    all_same("deleteApp", json!({"appId": app}));
    all_same("svc_deleteProject", json!({"projectId": project}));

    // One caller gets a reply with a secret, and the others are told that the call was done.
    let token = json!({"name": "ci", "scopes": ["artifact:upload"]});
    let answers =
        together(20, |_| once(&service, &ada, "svc_createDeployToken", token.clone(), "t"));
    let (shown, told): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(shown.len(), 1);
    assert!(told.iter().all(|answer| answer.refusal() == (409, 137)), "{told:?}");
    assert_eq!(count(&service, &ada, "svc_getDeployTokens", json!({})), 1);
    service.stop();
    service.check();
}

#[test]
fn endpoints_take_request_ids_as_functions_do() {
    let service = Service::start();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let post = |path: &str, body: &Value, id: &str| {
        let request = service.http.post(format!("{}/api/v1/artifacts/{path}", service.url));
        let request = request.header("X-Backend-Session-Token", &ada.token).json(body);
        Service::answer(request.header("X-Backend-Request-Id", id).send().unwrap()).unwrap()
    };
    let opening =
        json!({"appId": app, "platform": "android", "fileName": "app.apk", "version": "1.4.2"});
    let opened = post("upload-url", &opening, "one");
    let again = post("upload-url", &opening, "one");
    assert_eq!((again.status, &again.body), (201, &opened.body));
    assert_ne!(post("upload-url", &opening, "two").body["artifactId"], opened.body["artifactId"]);
    let mut other = opening.clone();
    other["version"] = json!("1.4.3");
    assert_eq!(post("upload-url", &other, "one").refusal(), (400, 142));

    let bytes = std::fs::read(fixture("sample.apk")).unwrap();
    let address = opened.body["uploadUrl"].as_str().unwrap();
    assert_eq!(service.http.put(address).body(bytes.clone()).send().unwrap().status(), 200);
    let path = format!("{}/finalize", opened.body["artifactId"].as_str().unwrap());
    let finalize = || post(&path, &json!({"sha256": sha256(&bytes)}), "three");
    let verified = finalize();
    assert_eq!((verified.status, &verified.body["state"]), (201, &json!("verified")));
    eventually("the first reply is given again", || {
        let again = finalize();
        assert_eq!(again.body, verified.body);
        again.status == 201
    });
    let without = service.post(Some(&ada), &path, &json!({"sha256": sha256(&bytes)}));
    assert_eq!((without.status, &without.body), (200, &verified.body));
}
