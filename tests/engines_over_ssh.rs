//! A container engine of another machine that is reached over ssh: a second daemon, behind OpenSSH.

use crate::{
    backups::verified_backup,
    daemons::Daemon,
    engines::{PRIVATE, second_is},
    instances::{made, until},
    support::{
        engine::engine,
        requires,
        service::eventually,
        ssh::{self, Ssh},
    },
};
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn an_engine_is_reached_over_ssh() {
    let test = "an_engine_is_reached_over_ssh";
    let Some(engine) = engine(test) else { return };
    if !requires::programs(test, &ssh::PROGRAMS) {
        return;
    }
    let Some(daemon) = Daemon::start_with_tls(test) else { return };
    let mut ssh = Ssh::start_with(&format!("SetEnv DOCKER_HOST={}", daemon.address));
    let builder = engine.publish("builder-base", "base-over-ssh", "1");
    let service = engine.service(&[("SVC_BUILDER_BASE_IMAGE", &builder)]);
    let admin = service.administrator();
    let (key, other) = (service.home.join("key"), service.home.join("other"));
    for path in [&key, &other] {
        ssh::new_key("ed25519", path);
    }
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    ssh.allow(&[read(&key.with_extension("pub")).trim()]);
    let add = |key: &Path, host_key: Value| {
        let params = json!({
            "name": "second", "address": ssh.address(), "privateAddress": PRIVATE, "hostKey": host_key,
            "key": read(key), "labels": {"region": "eu"},
        });
        service.call(Some(&admin), "svc_admin_addEngine", params)
    };
    let of_another = read(&other.with_extension("pub"));
    for (refused, field, why) in [
        (add(&key, json!(null)), "hostKey", "ssh_host_ed25519_key.pub"),
        (add(&key, json!(of_another.trim())), "address", "Host key verification failed"),
        (add(&other, json!(ssh.public_host_key())), "address", "Permission denied"),
    ] {
        let told = refused.body.to_string();
        assert_eq!(refused.status, 400, "{told}");
        assert!(told.contains(field) && told.contains(why), "{told}");
    }
    let added = add(&key, json!(ssh.public_host_key())).ok();
    assert_eq!(added["certificateExpiresAt"], Value::Null, "{added}");
    assert!(!added.to_string().contains("PRIVATE KEY"), "{added}");

    let wanted = json!({"engineLabels": {"region": "eu"}});
    let (ada, _, instance) = made(&service, "svc_createBackendInstance", wanted);
    let running = until(&service, &ada, &instance["id"], &["running", "failed"]);
    assert_eq!(running["state"], "running", "{running}");
    let there = daemon.docker(&["ps", "--quiet", "--filter", "label=svc.instance"]).stdout;
    assert_eq!(there.iter().filter(|b| **b == b'\n').count(), 2, "{there:?}");
    let logs = json!({"appId": running["appId"], "service": "sqlDb"});
    let logs = service.call(Some(&ada), "svc_getInstanceLogs", logs).ok();
    assert!(logs.to_string().contains("database system is ready"), "{logs}");
    // A dump and its restore: a connection that is only read, and one whose input ends.
    verified_backup(&service, &ada, &running["appId"]);

    ssh.stop();
    second_is("unreachable", &service, &admin);
    ssh.serve();
    second_is("reachable", &service, &admin);
    let gone = json!({"instanceId": instance["id"], "deleteData": true});
    service.call(Some(&ada), "svc_deleteBackendInstance", gone).ok();
    let engine_id = json!({"engineId": added["id"]});
    eventually("it is removed", || {
        service.call(Some(&admin), "svc_admin_removeEngine", engine_id.clone()).status == 200
    });
    let keys = || std::fs::read_dir(service.data().join("ssh")).unwrap().count();
    eventually("no key is left on the disk", || keys() == 0);
}
