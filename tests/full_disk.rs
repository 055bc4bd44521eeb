//! A full disk: uploads are refused before it is full, the rest goes on, and nothing that was
//! acknowledged is lost. The service goes on by itself when there is room again.

use crate::support::{
    requires,
    service::{Person, Service, eventually, has_no_folder},
};
use serde_json::json;
use std::{
    fs,
    process::{Child, Command},
};
use test_support::disk::Disk;

/// Moves the data of the service to a disk of 512 MiB.
fn disk_under(service: &mut Service, test: &str) -> Option<Disk> {
    service.stop();
    let data = service.data();
    let aside = data.with_extension("aside");
    fs::rename(&data, &aside).unwrap();
    fs::create_dir(&data).unwrap();
    let disk = Disk::at(&data, 512 << 10, test)?;
    let copied = Command::new("cp").arg("-a").arg(aside.join(".")).arg(&data).status();
    assert!(copied.unwrap().success());
    service.boot();
    Some(disk)
}

fn rename(service: &Service, who: &Person, name: &str) -> (u16, i64) {
    let answer = service.call(Some(who), "updateProfile", json!({"name": name}));
    if answer.status == 200 { (200, 0) } else { answer.refusal() }
}

fn name(service: &Service, who: &Person) -> String {
    let user = service.call(Some(who), "getCurrentUser", json!({})).ok();
    user["name"].as_str().unwrap().to_owned()
}

#[test]
fn a_full_disk_loses_nothing_and_is_over_when_there_is_room() {
    let test = "a_full_disk_loses_nothing_and_is_over_when_there_is_room";
    if has_no_folder(test) {
        return;
    }
    let mut service = Service::start_with(&[("SVC_LOG", "warn")]);
    let (ada, grace) = (service.register("ada"), service.register("grace"));
    let (project, app) = service.project_with_app(&grace, None);
    let backend = json!({"projectId": project, "appId": app, "name": "Backend"});
    service.call(Some(&grace), "svc_createBackendInstance", backend).ok();
    let secrets = |service: &Service| {
        service.call(Some(&grace), "svc_getInstanceSecrets", json!({"appId": app}))
    };
    secrets(&service).ok();
    let Some(disk) = disk_under(&mut service, test) else { return };

    // One tenant cannot take the room that the others need.
    let upload = |size: u64| {
        let body = json!({"appId": app, "platform": "android", "fileName": "a.apk", "version": "1.0.0", "size": size});
        service.post(Some(&grace), "upload-url", &body)
    };
    assert_eq!(upload(450 << 20).refusal(), (503, 100));
    let open = upload(100 << 20);
    assert_eq!(open.status, 201, "{}", open.body);
    assert_eq!(rename(&service, &ada, "before"), (200, 0));

    // Somebody else fills the disk: the store uses its reserve, then refuses changes.
    disk.fill();
    assert_eq!(rename(&service, &ada, "from the reserve"), (200, 0));
    disk.fill();
    let part = service.http.put(open.body["uploadUrl"].as_str().unwrap()).body(vec![0; 1 << 20]);
    let part = part.header("Content-Range", format!("bytes 0-{}/{}", (1 << 20) - 1, 100 << 20));
    assert_eq!(Service::answer(part.send().unwrap()).unwrap().status, 503);
    for _ in 0..20 {
        assert_eq!(rename(&service, &ada, "refused"), (503, 100));
    }
    assert_eq!(name(&service, &ada), "from the reserve");
    // No secret is shown before the audit log has it. A reset tells nobody whether it was begun.
    assert_eq!(secrets(&service).refusal(), (503, 100));
    for email in [ada.email.as_str(), "nobody@example.com"] {
        let asked = service.call(None, "requestPasswordReset", json!({"email": email}));
        assert_eq!(asked.status, 200, "{email}: {}", asked.body);
    }
    let ready = service.http.get(format!("{}/readyz", service.url)).send().unwrap().text().unwrap();
    assert!(ready.contains("\"store\":{\"ok\":false"), "{ready}");

    disk.free();
    eventually("changes are taken again", || rename(&service, &ada, "after") == (200, 0));

    // A kill and a start on the full disk.
    disk.fill();
    service.kill();
    let mut start = service.command(&[]).spawn().unwrap();
    eventually("the start ends", || start.try_wait().unwrap().is_some() || service.is_ready());
    let _ = start.kill();
    start.wait().unwrap();
    disk.free();
    service.check();
    service.boot();
    assert_eq!(name(&service, &ada), "after");
    service.stop();
}

/// A disk that is full for one process: its writes to the store fail, and nobody knows how much is free.
struct FullFor(Child);

impl FullFor {
    fn process(id: u32) -> FullFor {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64,statfs"]);
        strace.args(["-e", "inject=pwrite64:error=ENOSPC", "-e", "inject=statfs:error=EIO"]);
        FullFor(strace.arg("-p").arg(id.to_string()).spawn().unwrap())
    }
}

impl Drop for FullFor {
    fn drop(&mut self) {
        // strace lets go of the process.
        let interrupt = ["-INT", &self.0.id().to_string()];
        let _ = Command::new("kill").args(interrupt).status();
        let _ = self.0.wait();
    }
}

#[test]
fn a_store_that_a_full_disk_broke_goes_on_when_there_is_room() {
    let test = "a_store_that_a_full_disk_broke_goes_on_when_there_is_room";
    if !requires::programs(test, &["strace"]) {
        return;
    }
    let mut service = Service::start_with(&[("SVC_LOG", "warn")]);
    let ada = service.register("ada");
    let try_rename = |name: &str| {
        let done = service.try_call(Some(&ada), "updateProfile", json!({"name": name}), None);
        done.ok().map(|answer| answer.status)
    };
    assert_eq!(try_rename("before"), Some(200));
    let full = FullFor::process(service.pid());
    eventually("a write fails", || try_rename("before") != Some(200));
    for n in 0..20 {
        assert_eq!(try_rename(&format!("refused {n}")), Some(503));
    }
    drop(full);
    // The same process goes on: nobody starts it.
    eventually("changes are taken again", || try_rename("after") == Some(200));
    assert!(service.log().contains("the service starts again"), "{}", service.last_words());
    // It also ends as every other one does.
    service.stop();
    service.check();
    service.boot();
    assert_eq!(name(&service, &ada), "after");
}
