//! The disk of the container engine is full while a backend and a build run.

use crate::{
    backups::{container, finished},
    daemons::Daemon,
    instances::{backend, deployed, until},
    support::{engine::engine, git::Git, requires, service::eventually},
};
use serde_json::{Value, json};

#[test]
fn a_full_disk_of_the_engine_loses_nothing_and_is_over_when_there_is_room() {
    let test = "a_full_disk_of_the_engine_loses_nothing_and_is_over_when_there_is_room";
    let Some(engine) = engine(test) else { return };
    if !requires::programs(test, &["git", "python3", "mkfs.ext4", "fallocate"]) {
        return;
    }
    let Some(daemon) = Daemon::start_with_disk(test, 4) else { return };
    let git = Git::serve();
    let builder = engine.publish("builder-base", "base-builder", "1");
    let service = engine.service(&[
        ("SVC_DOCKER_HOST", daemon.address.as_str()),
        ("SVC_BUILDER_BASE_IMAGE", &builder),
        ("SVC_GIT_PRIVATE_HOSTS", &git.host),
    ]);
    let (ada, project, instance) = backend(&service);
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let psql = |statement: &str| {
        let name = container(&instance, "sqldb");
        daemon.docker(&["exec", &name, "psql", "-U", "svc", "-d", "parse", "-XAtc", statement])
    };
    let sql = |statement: &str| String::from_utf8_lossy(&psql(statement).stdout).trim().to_owned();
    let health = format!("{}/parse/health", instance["url"].as_str().unwrap());
    let serves = || service.http.get(&health).send().is_ok_and(|answer| answer.status() == 200);
    assert!(serves(), "{health}");
    sql("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)");
    assert_eq!(sql("SELECT n FROM kept"), "7");

    // A build writes until nothing is left.
    let base = engine.base("toolbox");
    let steps = "RUN echo begun && sleep 5 && cat /dev/zero > /large";
    git.commit(&[("Dockerfile", format!("FROM {base}\n{steps}\n"))]);
    let deploy = || {
        let source = json!({"git": {"url": git.url}});
        call("triggerDeployment", json!({"appId": instance["appId"], "source": source}))
    };
    let build = deploy().ok();
    eventually("the build runs", || {
        let log = call("getDeploymentLogs", json!({"deploymentId": build["id"]})).ok();
        log.to_string().contains("begun\"")
    });
    daemon.fill();
    let failed = deployed(&service, &ada, &build);
    assert_eq!(failed["state"], "failed", "{failed}");
    let why = call("getDeploymentLogs", json!({"deploymentId": build["id"]})).ok().to_string();
    assert!(why.contains("No space left") || why.contains("no space left"), "{failed} {why}");

    // What runs goes on, and nothing more is begun.
    let another = || {
        let params = json!({"projectId": project["id"], "name": "Another"});
        let made = call("svc_createBackendInstance", params);
        if made.status == 200 {
            let id = made.body["result"]["id"].clone();
            call("svc_deleteBackendInstance", json!({"instanceId": id, "deleteData": true})).ok();
        }
        made
    };
    eventually("nothing more is begun", || {
        daemon.fill();
        another().status != 200
    });
    for refused in [another(), deploy()] {
        assert_eq!(refused.refusal(), (503, 100), "{refused:?}");
    }
    assert!(serves(), "what needs no room");
    let large =
        "CREATE TABLE large AS SELECT repeat(md5(n::text), 99) FROM generate_series(1, 99999) n";
    let refused = psql(large).stderr;
    let refused = String::from_utf8_lossy(&refused);
    let told = ["No space left", "recovery", "could not write init file"];
    assert!(told.iter().any(|told| refused.contains(told)), "{refused}");
    call("svc_restartBackendInstance", json!({"instanceId": instance["id"]})).ok();

    daemon.free();
    let running = until(&service, &ada, &instance["id"], &["running"]);
    assert_eq!(running["lastError"], Value::Null, "{running}");
    eventually("the backend serves again", serves);
    assert_eq!(sql("SELECT n FROM kept"), "7");
    let backup = call("svc_createSqlDbBackup", json!({"appId": instance["appId"]})).ok();
    let backup = finished(&service, &ada, &backup);
    assert_eq!(backup["state"], "ready", "{backup}");
    eventually("more is begun again", || another().status == 200);
    git.commit_version(engine, "after");
    let live = deployed(&service, &ada, &deploy().ok());
    assert_eq!(live["state"], "live", "{live}");
    call("svc_deleteBackendInstance", json!({"instanceId": instance["id"], "deleteData": true}))
        .ok();
}
