//! Host names of users: proven by a record, served by their app, also over TLS.

use crate::{
    certificates::with_authority,
    instances::backend,
    support::{engine::engine, service::eventually},
};
use reqwest::header::HOST;
use serde_json::{Value, json};

const NAME: &str = "shop.example.test";

#[test]
fn a_domain_leads_to_the_app_that_proved_it_last() {
    let test = "a_domain_leads_to_the_app_that_proved_it_last";
    let Some(engine) = engine(test) else { return };
    let mut service = engine.service(&[]);
    let Some(authority) = with_authority(test, &mut service) else { return };
    service.stop();
    service.set("SVC_NAME_SERVER", &authority.name_server());
    service.set("SVC_INSTANCE_DOMAIN", "apps.example.test");
    service.boot();
    let (ada, _, instance) = backend(&service);
    let bob = service.register("bob");
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let status = |path: &str| {
        let request = service.http.get(format!("{}{path}", service.url)).header(HOST, NAME);
        let client = reqwest::blocking::Client::builder();
        let client = client.redirect(reqwest::redirect::Policy::none()).build().unwrap();
        client.execute(request.build().unwrap()).unwrap().status().as_u16()
    };
    let write = |domain: &Value| {
        let host = format!("{}.", domain["recordName"].as_str().unwrap());
        authority.tell_names("clear-txt", &json!({"host": host}));
        authority.tell_names("set-txt", &json!({"host": host, "value": domain["recordText"]}));
    };

    let app = json!({"appId": instance["appId"], "hostName": NAME});
    let domain = call("svc_addDomain", app.clone()).ok();
    assert_eq!((&domain["state"], &domain["service"]), (&json!("pending"), &json!("server")));
    assert_eq!(call("svc_addDomain", app.clone()).refusal(), (409, 137));
    for ours in ["api.example.test", "apps.example.test", "a.apps.example.test", "*.example.test"] {
        let refused = call("svc_addDomain", json!({"appId": app["appId"], "hostName": ours}));
        assert_eq!(refused.refusal(), (400, 142), "{ours}");
    }
    let id = json!({"domainId": domain["id"]});
    let looked = call("svc_verifyDomain", id.clone()).ok();
    assert_eq!(looked["state"], "pending");
    assert!(looked["error"].as_str().unwrap().contains("no TXT record"), "{looked}");
    assert_eq!(status("/parse/health"), 404, "nobody has the name yet");
    assert_eq!(authority.get(NAME, "/parse/health", &[]).status.code(), Some(35));

    write(&domain);
    let proven = call("svc_verifyDomain", id.clone()).ok();
    assert_eq!((&proven["state"], &proven["error"]), (&json!("verified"), &Value::Null));
    assert_eq!(status("/parse/health"), 307, "it is asked over TLS");
    let answer = authority.get(NAME, "/parse/health", &[]);
    assert!(String::from_utf8_lossy(&answer.stdout).contains("ok"), "{answer:?}");

    // A proxy that asks for it gets a certificate, too.
    let ask = |name: &str| {
        let url = format!("{}/certificates/ask?domain={name}", service.url);
        service.http.get(url).send().unwrap().status().as_u16()
    };
    assert_eq!((ask(NAME), ask("www.example.test")), (200, 404));
    let shown = call("svc_verifyDomain", id.clone()).ok();
    assert_eq!(
        (&shown["state"], &shown["certificateState"]),
        (&json!("verified"), &json!("valid"))
    );

    // Another person adds the same name. It changes nothing until they prove it.
    let (_, other) = service.project_with_app(&bob, None);
    let theirs = json!({"appId": other, "hostName": NAME.to_uppercase()});
    let theirs = service.call(Some(&bob), "svc_addDomain", theirs).ok();
    let verify = || {
        let params = json!({"domainId": theirs["id"]});
        service.call(Some(&bob), "svc_verifyDomain", params).ok()["state"].clone()
    };
    assert_eq!(verify(), "pending");
    assert_eq!(call("svc_removeDomain", json!({"domainId": theirs["id"]})).refusal().1, 101);
    let get = |path| String::from_utf8(authority.get(NAME, path, &[]).stdout).unwrap();
    assert!(get("/parse/health").contains("ok"));
    write(&theirs);
    assert_eq!(verify(), "verified");
    let mine = call("svc_getDomains", json!({"appId": app["appId"]})).ok()["items"][0].clone();
    assert_eq!(mine["state"], "taken", "{mine}");
    // Their app has no instance.
    assert!(get("/parse/health").contains("instance"), "{}", get("/parse/health"));

    // The record of before proves nothing any more: it may just be one that nobody removed.
    write(&domain);
    assert_eq!(call("svc_verifyDomain", id.clone()).ok()["state"], "pending");
    assert_ne!(mine["recordText"], domain["recordText"]);
    // With the new one it comes back, and survives a kill.
    write(&mine);
    assert_eq!(call("svc_verifyDomain", id).ok()["state"], "verified");
    service.kill();
    service.boot();
    let ada = service.sign_in(&ada, "correct horse");
    eventually("the instance answers again", || {
        let answer = authority.get(NAME, "/parse/health", &[]);
        String::from_utf8_lossy(&answer.stdout).contains("ok")
    });
    service.call(Some(&ada), "svc_removeDomain", json!({"domainId": domain["id"]})).ok();
    let left = authority.get(NAME, "/healthz", &["--write-out", " %{http_code}"]);
    assert!(String::from_utf8_lossy(&left.stdout).ends_with(" 404"), "{left:?}");
}
