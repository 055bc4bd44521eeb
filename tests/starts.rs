//! The program is killed while it starts. It starts again, with everything that it acknowledged.
//!
//! `crates/store/tests/starts.rs` kills the start of a store at every call; these tests see that the
//! whole program keeps the promise.

use crate::support::{
    requires,
    service::{Person, Service, eventually, has_no_folder},
};
use serde_json::json;
use std::{
    process::{Command, Stdio},
    time::Duration,
};

/// The calls of a start before which the program is killed, and how many of each kind.
const CALLS: [(&str, usize); 7] = [
    ("write", 16),
    ("pwrite64", 6),
    ("fsync", 10),
    ("fdatasync", 4),
    ("rename", 4),
    ("unlink", 4),
    ("fchmod", 2),
];

/// A service with changes that it acknowledged, killed.
fn killed_service() -> (Service, Person) {
    let mut service = Service::start_with(&[("SVC_LOG", "warn")]);
    let ada = service.register("ada");
    for n in 0..200 {
        service.call(Some(&ada), "svc_createProject", json!({"name": format!("{n}")})).ok();
    }
    service.kill();
    (service, ada)
}

/// Everything is there after the start that follows.
fn has_everything(service: &mut Service, ada: &Person) {
    service.check();
    service.boot();
    let projects = service.call(Some(ada), "svc_getProjects", json!({"limit": 200})).ok();
    assert_eq!(projects["items"].as_array().unwrap().len(), 200);
}

#[test]
fn a_service_that_is_killed_at_any_call_of_its_start_starts_again() {
    if !requires::programs("a_service_that_is_killed_at_any_call_of_its_start", &["strace"]) {
        return;
    }
    let (mut service, ada) = killed_service();
    for (call, count) in CALLS {
        for n in 1..=count {
            let (trace, inject) =
                (format!("trace={call}"), format!("inject={call}:signal=SIGKILL:when={n}"));
            let under = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
            let mut start = service.command(&under).spawn().unwrap();
            eventually(&format!("{call} {n}"), || {
                start.try_wait().unwrap().is_some() || service.is_ready()
            });
            // A start that makes fewer such calls is killed when it is ready.
            let _ = Command::new("pkill").args(["-KILL", "-P", &start.id().to_string()]).status();
            start.wait().unwrap();
            service.check();
        }
    }
    has_everything(&mut service, &ada);
}

#[test]
fn a_service_that_is_killed_at_any_moment_of_its_start_starts_again() {
    let (mut service, ada) = killed_service();
    for n in 0..60 {
        let mut start = service.command(&[]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(n * 8));
        start.kill().unwrap();
        start.wait().unwrap();
    }
    has_everything(&mut service, &ada);
}

#[test]
fn what_cannot_be_mended_is_named_with_the_command_that_goes_on() {
    if has_no_folder("what_cannot_be_mended_is_named_with_the_command_that_goes_on") {
        return;
    }
    let (mut service, _) = killed_service();
    std::fs::remove_file(service.data().join("store/sled/db")).unwrap();
    let refused =
        service.command(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success());
    for word in ["store/sled/db is missing or empty", "svc admin restore FILE --data FOLDER"] {
        assert!(words.contains(word), "{words}");
    }
    service.stop();
}
