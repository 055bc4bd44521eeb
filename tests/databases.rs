//! Services whose store is in a PostgreSQL database.

use crate::support::service::{Person, Service, eventually, fixture};
use serde_json::{Value, json};
use std::process::Output;
use test_support::postgres::{self, Server};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn project(service: &Service, ada: &Person, name: &str) -> Value {
    service.call(Some(ada), "svc_createProject", json!({"name": name})).ok()
}

/// A service starts on an empty database, keeps what it acknowledged through a kill, moves to a folder and
/// back, and is the only one that uses its database.
#[test]
fn a_service_keeps_its_store_in_a_database() {
    let Some(address) = postgres::new_store("a_service_keeps_its_store_in_a_database") else {
        return;
    };
    let mut service = Service::start_with(&[("SVC_STORE", &address)]);
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let artifact = service.upload(&ada, &app, "sample.apk", "1.4.2");
    assert!(!service.data().join("store").exists());
    assert!(!service.log().contains(&address), "an address may have a password");

    let shop = project(&service, &ada, "Shop");
    service.kill();
    service.boot();
    let read = |service: &Service| {
        service.call(Some(&ada), "svc_getProject", json!({"projectId": shop["id"]})).ok()
    };
    assert_eq!(read(&service), shop, "it was acknowledged before the kill");
    let found = json!({"artifactId": artifact["id"]});
    assert_eq!(service.call(Some(&ada), "svc_getArtifact", found).ok()["id"], artifact["id"]);

    // Neither another service nor a command uses the store meanwhile.
    let second = Service::unstarted(&[("SVC_STORE", &address)]);
    copy_keys(&service, &second);
    let refused = second.command(&[]).output().unwrap();
    assert!(!refused.status.success());
    assert!(second.log().contains("in use by another svc, which is node"), "{}", second.log());
    let refused = service.admin(&["check"]);
    assert!(!refused.status.success() && said(&refused).contains("in use"), "{}", said(&refused));

    // From the database into a folder, and into another database.
    service.stop();
    service.check();
    let backup = service.admin(&["backup", "b.gz"]);
    assert!(backup.status.success(), "{}", said(&backup));
    let full = service.admin(&["restore", "b.gz"]);
    assert!(said(&full).contains("the store is not empty"), "{}", said(&full));
    for to in [None, postgres::new_store("move")] {
        service.unset("SVC_STORE");
        if let Some(address) = &to {
            service.set("SVC_STORE", address);
            let hidden = service.command(&[]).output().unwrap();
            assert!(!hidden.status.success());
            assert!(service.log().contains("the database is empty"), "{}", service.last_words());
            std::fs::rename(service.data().join("store"), service.home.join("store")).unwrap();
        }
        let restored = service.admin(&["restore", "b.gz"]);
        assert!(restored.status.success(), "{}", said(&restored));
        service.boot();
        assert_eq!(read(&service), shop);
        service.stop();
        service.check();
    }
}

/// The keys of one service for another, as an operator of several machines copies them.
fn copy_keys(from: &Service, to: &Service) {
    let folder = to.data().join("secrets");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(from.data().join("secrets/keys.json"), folder.join("keys.json")).unwrap();
}

/// While the database is away, callers are told so, released files are still there, and nothing that was
/// acknowledged is lost. It goes on by itself when the database is back.
#[test]
fn a_service_outlives_its_database() {
    if postgres::shared("a_service_outlives_its_database").is_none() {
        return;
    }
    let mut database = Server::start();
    let mut service = Service::start_with(&[("SVC_STORE", &database.address("svc"))]);
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let artifact = service.upload(&ada, &app, "sample.apk", "1.4.2");
    let link = service.call(
        Some(&ada),
        "svc_getArtifactDownloadUrl",
        json!({"artifactId": artifact["id"]}),
    );
    let link = link.ok()["url"].as_str().unwrap().to_owned();

    database.kill();
    let answer = service.call(Some(&ada), "svc_createProject", json!({"name": "Shop"}));
    assert_eq!((answer.status, answer.body["code"].clone()), (503, json!(100)), "{}", answer.body);
    assert!(answer.body["error"].as_str().unwrap().contains("the database"), "{}", answer.body);
    assert_eq!(service.http.get(format!("{}/readyz", service.url)).send().unwrap().status(), 503);
    let bytes = service.http.get(&link).send().unwrap();
    assert_eq!(bytes.status(), 200, "a signed address is served from the copy");
    assert_eq!(bytes.bytes().unwrap(), std::fs::read(fixture("sample.apk")).unwrap());

    database.start_again();
    eventually("the service goes on", || service.is_ready());
    let shop = project(&service, &ada, "Shop");
    let read = service.call(Some(&ada), "svc_getProject", json!({"projectId": shop["id"]}));
    assert_eq!(read.ok(), shop);
    service.stop();
    service.check();
}

/// A service that the database has given up starts itself again, in the same process, with a new copy.
#[test]
fn a_service_whose_copy_is_of_no_use_starts_again() {
    let test = "a_service_whose_copy_is_of_no_use_starts_again";
    let Some(server) = postgres::shared(test) else { return };
    let address = postgres::new_store(test).unwrap();
    let schema = address.rsplit('=').next().unwrap();
    let service = Service::start_with(&[("SVC_STORE", &address)]);
    let ada = service.register("ada");
    let shop = project(&service, &ada, "Shop");
    let pid = service.pid();
    server.sql(&format!("update {schema}.nodes set token = null"));
    eventually("it starts again", || service.log().contains("the service starts again"));
    eventually("it is ready", || service.is_ready());
    let read = service.call(Some(&ada), "svc_getProject", json!({"projectId": shop["id"]}));
    assert_eq!((read.ok(), service.pid()), (shop, pid));
    assert_eq!(server.sql(&format!("select count(*) from {schema}.nodes")), "2");
}
