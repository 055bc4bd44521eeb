//! What has ended is removed after its retention, and the audit log is archived before.

use crate::{
    support::{
        builds::{World, config},
        service::{Service, eventually},
    },
    uploads::{Upload, bytes_of, opening},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs};

const DAY: u64 = 24 * 3600;

/// Starts the service again, so many days later, by a clock that an administrator confirms.
fn wait_days(service: &mut Service, days: u64) {
    service.stop();
    service.set("SVC_CLOCK_AHEAD", &(days * DAY).to_string());
    service.boot();
    let admin = service.administrator();
    service.call(Some(&admin), "svc_admin_confirmClock", json!({})).ok();
    // The first look comes at the start.
    service.kill();
    service.boot();
}

/// The ids of the entries in the archive of the audit log, each as often as it stands there.
fn archived(service: &Service) -> Vec<String> {
    let files = fs::read_dir(service.data().join("audit")).unwrap();
    let text: String =
        files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let id = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["id"].as_str().unwrap().to_owned()
    };
    text.lines().map(id).collect()
}

#[test]
fn what_has_ended_is_removed_in_its_time_and_the_audit_log_is_archived() {
    let test = "what_has_ended_is_removed_in_its_time_and_the_audit_log_is_archived";
    let settings = [("SVC_RETENTION", "builds=60,audit=90,deliveries=unlimited")];
    let Some(mut world) = World::with(test, &settings) else { return };
    world.git.commit(&[config("true")]);
    world.connect();
    let build = world.trigger();
    let build = json!({"buildId": build["id"]});
    world.call("svc_cancelBuild", build.clone());

    let mut bytes = bytes_of("sample.apk");
    let upload = Upload::open(&world.service, &world.ada, &opening(&world.app));
    bytes.truncate(1000);
    assert_eq!(upload.put(bytes).status, 200);
    upload.finalize(&json!({"sha256": "0".repeat(64)}));
    assert_eq!(upload.state(), "rejected");
    let upload = json!({"artifactId": upload.id});

    let log = |world: &World| {
        let admin = world.service.administrator();
        let params = json!({"limit": 200});
        let events = world.service.call(Some(&admin), "svc_admin_getAuditLog", params).ok();
        let ids = events["items"].as_array().unwrap().iter();
        ids.map(|event| event["id"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    let before = log(&world);
    assert!(before.len() > 5, "{before:?}");

    let status = |world: &World, function: &str, params: &Value| {
        let ada = world.service.sign_in(&world.ada, "correct horse");
        world.service.call(Some(&ada), function, params.clone()).status
    };
    wait_days(&mut world.service, 40);
    eventually("the rejected upload goes", || status(&world, "svc_getArtifact", &upload) == 404);
    assert_eq!(status(&world, "svc_getBuild", &build), 200);
    wait_days(&mut world.service, 70);
    eventually("the build goes", || status(&world, "svc_getBuild", &build) == 404);
    assert!(archived(&world.service).is_empty());
    assert!(log(&world).is_superset(&before));

    wait_days(&mut world.service, 100);
    eventually("the audit log is archived", || log(&world).is_disjoint(&before));
    let archived = archived(&world.service);
    assert!(archived.iter().cloned().collect::<BTreeSet<_>>().is_superset(&before));
    world.service.stop();
    world.service.check();
}
