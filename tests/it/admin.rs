//! Backup, restore and check, as an operator does them.

use crate::service::{SVC, Service};
use serde_json::json;
use std::process::{Command, Output};

fn admin(service: &Service, args: &[&str]) -> Output {
    Command::new(SVC).arg("admin").args(args).current_dir(&service.home).output().unwrap()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_backup_brings_everything_back() {
    let mut service = Service::start();
    let ada = service.register("ada");
    let project = service.call(Some(&ada), "svc_createProject", json!({"name": "Shop"})).ok();

    // Nobody takes a backup from under a server, or starts a second one on its data.
    for args in [&["backup", "b.gz"][..], &["check"]] {
        let refused = admin(&service, args);
        assert_eq!(refused.status.code(), Some(1));
        assert!(
            said(&refused).contains("is in use by another svc (process "),
            "{}",
            said(&refused)
        );
    }
    let second = Command::new(SVC)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .current_dir(&service.home)
        .output()
        .unwrap();
    assert!(!second.status.success() && said(&second).contains("in use"), "{}", said(&second));

    service.stop();
    let backup = admin(&service, &["backup", "b.gz"]);
    assert!(backup.status.success(), "{}", said(&backup));
    assert!(said(&admin(&service, &["backup", "b.gz"])).contains("there already"));
    let into = admin(&service, &["restore", "b.gz"]);
    assert!(
        !into.status.success() && said(&into).contains("new data directory"),
        "{}",
        said(&into)
    );

    // A backup that is cut off leaves no store behind.
    let bytes = std::fs::read(service.home.join("b.gz")).unwrap();
    std::fs::write(service.home.join("cut.gz"), &bytes[..bytes.len() / 2]).unwrap();
    std::fs::rename(service.data().join("store"), service.home.join("lost")).unwrap();
    let cut = admin(&service, &["restore", "cut.gz"]);
    assert!(!cut.status.success() && !service.data().join("store").exists(), "{}", said(&cut));

    let restored = admin(&service, &["restore", "b.gz"]);
    assert!(restored.status.success(), "{}", said(&restored));
    service.check();
    service.boot();
    let found = service.call(Some(&ada), "svc_getProject", json!({"projectId": project["id"]}));
    assert_eq!(found.ok(), project, "the session is good, and the project is there");
}

#[test]
fn the_platform_is_given_and_taken_where_its_data_lies() {
    let mut service = Service::start();
    let ada = service.register("ada");
    let watch =
        |service: &Service| service.call(Some(&ada), "svc_admin_getActors", json!({})).status;
    assert_eq!(watch(&service), 403);
    let refused = admin(&service, &["superadmin", &ada.email]);
    assert!(!refused.status.success() && said(&refused).contains("in use"), "{}", said(&refused));
    service.stop();
    let unknown = admin(&service, &["superadmin", "bob@example.com"]);
    assert!(!unknown.status.success() && said(&unknown).contains("register"), "{}", said(&unknown));
    for (args, status) in [
        (&["superadmin", "ADA@example.com"][..], 200),
        (&["superadmin", &ada.email, "--revoke"], 403),
    ] {
        let done = admin(&service, args);
        assert!(done.status.success() && said(&done).contains(&ada.id), "{}", said(&done));
        service.check();
        service.boot();
        assert_eq!(watch(&service), status);
        service.stop();
    }
}
