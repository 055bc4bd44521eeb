//! Instances on the container engines of other machines: a second daemon, reached over TLS.

use crate::{
    backups::verified_backup,
    daemons::Daemon,
    instances::{made, until},
    support::{
        engine::{Installed, docker, engine, engine_host},
        load::together,
        service::{LONGEST, Person, eventually},
    },
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Where its servers are published, apart from those of the first engine.
pub const PRIVATE: &str = "127.0.0.2";

/// What adds a daemon as an engine.
pub fn adding(daemon: &Daemon) -> Value {
    json!({
        "name": "second",
        "address": daemon.tls_address(),
        "privateAddress": PRIVATE,
        "authority": daemon.pem("ca.pem"),
        "certificate": daemon.pem("client.pem"),
        "key": daemon.pem("client-key.pem"),
        "labels": {"region": "eu"},
    })
}

pub fn engines(service: &Installed, admin: &Person) -> Value {
    service.call(Some(admin), "svc_admin_getEngines", json!({})).ok()["items"].clone()
}

/// Waits until the service says this of the second engine.
pub fn second_is(state: &str, service: &Installed, admin: &Person) {
    eventually(&format!("it is {state}"), || engines(service, admin)[1]["state"] == state);
}

/// What a statement in the database of a container at this engine prints.
fn psql(host: &str, container: &str, statement: &str) -> String {
    let psql = ["psql", "-U", "svc", "-d", "parse", "-XAtc", statement];
    docker(&[&["-H", host, "exec", container], &psql[..]].concat())
}

#[test]
fn an_engine_is_added_by_its_certificates_and_only_once() {
    let test = "an_engine_is_added_by_its_certificates_and_only_once";
    let Some(engine) = engine(test) else { return };
    let Some(daemon) = Daemon::start_with_tls(test) else { return };
    let mut service = engine.service(&[]);
    let admin = service.administrator();
    let add = |change: Value| {
        let mut wanted = adding(&daemon);
        wanted.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        service.call(Some(&admin), "svc_admin_addEngine", wanted)
    };
    for (change, field) in [
        (json!({"authority": daemon.pem("stranger.pem")}), "address"),
        (
            json!({"certificate": daemon.pem("stranger.pem"), "key": daemon.pem("stranger-key.pem")}),
            "address",
        ),
        (json!({"key": daemon.pem("stranger-key.pem")}), "certificate"),
        (
            json!({"certificate": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"}),
            "certificate",
        ),
        (json!({"address": "127.0.0.1:1"}), "address"),
        (json!({"address": "unix:///var/run/docker.sock"}), "address"),
        (json!({"privateAddress": "203.0.113.7"}), "privateAddress"),
        (json!({"privateAddress": "0.0.0.0"}), "privateAddress"),
    ] {
        let refused = add(change.clone());
        assert_eq!(refused.status, 400, "{change}: {refused:?}");
        assert!(refused.body.to_string().contains(field), "{change}: {refused:?}");
    }
    let added = add(json!({})).ok();
    assert_eq!(added["labels"], json!({"region": "eu"}));
    assert!(!added.to_string().contains("PRIVATE KEY"), "{added}");
    assert!(added["certificateExpiresAt"].is_string(), "{added}");
    let twice = add(json!({"name": "third"}));
    assert_eq!(twice.refusal(), (409, 137), "{twice:?}");
    let person = service.register("ada");
    let stranger = service.call(Some(&person), "svc_admin_getEngines", json!({}));
    assert_eq!(stranger.status, 403, "{stranger:?}");
    eventually("both engines say what they have", || {
        let all = engines(&service, &admin);
        all.as_array()
            .unwrap()
            .iter()
            .all(|one| one["state"] == "reachable" && one["memory"].is_u64())
    });

    // Certificates are renewed, and the new ones are tried first.
    let renew = |certificate: &str, key: &str| {
        let keys = json!({
            "engineId": added["id"], "authority": daemon.pem("ca.pem"),
            "certificate": daemon.pem(certificate), "key": daemon.pem(key),
        });
        service.call(Some(&admin), "svc_admin_updateEngine", keys)
    };
    assert_eq!(renew("stranger.pem", "stranger-key.pem").status, 400);
    renew("client.pem", "client-key.pem").ok();

    // The engine of the settings is none of the added ones, also where that is seen only later.
    let own = |service: &Installed| engines(service, &admin)[0]["state"].clone();
    for (address, state) in [(&daemon.address, "unreachable"), (&engine_host(), "reachable")] {
        service.stop();
        service.set("SVC_DOCKER_HOST", address);
        service.boot();
        eventually(&format!("it is {state}"), || own(&service) == state);
    }
    let log = service.log();
    assert!(log.contains("was added as"), "{log}");
    service.call(Some(&admin), "svc_admin_removeEngine", json!({"engineId": added["id"]})).ok();
    assert_eq!(engines(&service, &admin).as_array().unwrap().len(), 1);
}

#[test]
fn an_instance_lives_on_the_engine_on_which_it_was_placed() {
    let test = "an_instance_lives_on_the_engine_on_which_it_was_placed";
    let Some(engine) = engine(test) else { return };
    let Some(mut daemon) = Daemon::start_with_tls(test) else { return };
    let builder = engine.publish("builder-base", "base-of-one", "1");
    let mut service = engine.service(&[("SVC_BUILDER_BASE_IMAGE", &builder)]);
    let admin = service.administrator();
    let second = service.call(Some(&admin), "svc_admin_addEngine", adding(&daemon)).ok();
    let id = second["id"].clone();
    let wanted = |region: &str| json!({"engineLabels": {"region": region}});
    let refused = {
        let bob = service.register("bob");
        let project = service.call(Some(&bob), "svc_createProject", json!({"name": "Shop"})).ok();
        let mut nowhere = wanted("us");
        (nowhere["projectId"], nowhere["name"]) = (project["id"].clone(), json!("Backend"));
        service.call(Some(&bob), "svc_createBackendInstance", nowhere)
    };
    assert!(refused.body.to_string().contains("engineLabels"), "{refused:?}");

    let (ada, _, instance) = made(&service, "svc_createBackendInstance", wanted("eu"));
    let running = until(&service, &ada, &instance["id"], &["running", "failed"]);
    assert_eq!(running["state"], "running", "{running}");
    let name = instance["id"].as_str().unwrap().trim_start_matches("ins_").to_lowercase();
    let containers = |daemon: &Daemon| {
        let list = daemon.docker(&["ps", "--format", "{{.Names}} {{.Ports}}"]);
        String::from_utf8_lossy(&list.stdout).into_owned()
    };
    let there = containers(&daemon);
    assert!(there.to_lowercase().contains(&name) && there.contains(PRIVATE), "{there}");
    assert!(!there.contains("0.0.0.0"), "{there}");
    let here = docker(&["ps", "--format", "{{.Names}}"]);
    assert!(!here.to_lowercase().contains(&name), "{here}");
    let health = format!("{}/parse/health", running["url"].as_str().unwrap());
    let serves = |service: &Installed| {
        service.http.get(&health).send().is_ok_and(|answer| answer.status() == 200)
    };
    assert!(serves(&service));
    let placed = |service: &Installed, engine: &Value| {
        let params = json!({"engineId": engine});
        service.call(Some(&admin), "svc_admin_getEngineInstances", params).ok()["items"].clone()
    };
    assert_eq!(placed(&service, &id)[0]["id"], instance["id"]);
    assert_eq!(placed(&service, &Value::Null), json!([]));
    let logs = json!({"appId": running["appId"], "service": "sqlDb"});
    let logs = service.call(Some(&ada), "svc_getInstanceLogs", logs).ok();
    assert!(logs.to_string().contains("database system is ready"), "{logs}");

    // A drained engine takes no more, and one with instances is not removed.
    let engine_of = |function: &str| service.call(Some(&admin), function, json!({"engineId": id}));
    assert_eq!(engine_of("svc_admin_drainEngine").ok()["draining"], true);
    let kept = engine_of("svc_admin_removeEngine");
    assert_eq!(kept.status, 409, "{kept:?}");

    // It is away, and comes back with its containers stopped.
    let name = crate::backups::container(&instance, "sqldb");
    let hosts = [engine_host(), daemon.address.clone()];
    let sql = |there: bool, statement: &str| psql(&hosts[usize::from(there)], &name, statement);
    sql(true, "CREATE TABLE kept AS SELECT 7 AS n");
    let backup = verified_backup(&service, &ada, &running["appId"]);
    daemon.end("KILL");
    second_is("unreachable", &service, &admin);
    let overview = service.call(Some(&admin), "svc_admin_getOverview", json!({})).ok();
    let told = overview["attention"].to_string();
    assert!(told.contains("engineUnreachable") && told.contains(id.as_str().unwrap()), "{told}");
    assert!(!serves(&service));
    assert!(daemon.boot());
    until(&service, &ada, &instance["id"], &["running"]);
    eventually("the backend serves again", || serves(&service));

    service.kill();
    service.boot();
    eventually("the backend serves after a start of the service", || serves(&service));

    // It is gone for good: the instance begins anew where the service is, from its backup.
    let recover = |backup: Value| {
        let params = json!({"instanceId": instance["id"], "backupId": backup});
        service.call(Some(&admin), "svc_admin_recoverInstance", params)
    };
    let refused = recover(backup["id"].clone());
    assert!(refused.body.to_string().contains("answers"), "{refused:?}");
    daemon.end("KILL");
    second_is("unreachable", &service, &admin);
    let refused = recover(Value::Null);
    assert!(refused.body.to_string().contains(backup["id"].as_str().unwrap()), "{refused:?}");
    recover(backup["id"].clone()).ok();
    until(&service, &ada, &instance["id"], &["running"]);
    eventually("the backend serves from another engine", || serves(&service));
    assert_eq!(sql(false, "SELECT n FROM kept"), "7");
    let removes = |lost: bool| {
        let params = json!({"engineId": id, "lost": lost});
        service.call(Some(&admin), "svc_admin_removeEngine", params)
    };
    assert_eq!(removes(false).status, 409);
    removes(true).ok();
    assert_eq!(engines(&service, &admin).as_array().unwrap().len(), 1);
    assert!(serves(&service));
}

/// Two engines have room for one instance each. Sixteen callers at once get both places, though all choose the same
/// engine at first.
#[test]
fn what_no_longer_fits_on_one_engine_is_placed_on_another() {
    let test = "what_no_longer_fits_on_one_engine_is_placed_on_another";
    let Some(engine) = engine(test) else { return };
    let Some(daemon) = Daemon::start_with_tls(test) else { return };
    let service = engine.service(&[("SVC_MEMORY_OVERCOMMIT", "0.5")]);
    let admin = service.administrator();
    service.call(Some(&admin), "svc_admin_addEngine", adding(&daemon)).ok();
    let memory = |number: usize| engines(&service, &admin)[number]["memory"].as_u64();
    eventually("the engines say what their machine has", || {
        memory(0).is_some() && memory(1).is_some()
    });
    let ada = service.register("ada");
    let (project, _) = service.project_with_app(&ada, None);
    let resources = json!({"memoryMb": (memory(0).unwrap() >> 20) / 3, "cpus": 1});
    let answers = together(16, |n| {
        let name = format!("Backend {n}");
        let params = json!({"projectId": project, "name": name, "resources": resources});
        service.call(Some(&ada), "svc_createBackendInstance", params)
    });
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 200);
    assert_eq!(made.len(), 2, "{answers:?}");
    assert!(refused[0].body.to_string().contains("has promised"), "{:?}", refused[0]);
    let counts = engines(&service, &admin);
    let counts = counts.as_array().unwrap().iter().map(|engine| &engine["instances"]);
    assert_eq!(counts.collect::<Vec<_>>(), [1, 1]);
    for made in made {
        let params = json!({"instanceId": made.body["result"]["id"], "deleteData": true});
        service.call(Some(&ada), "svc_deleteBackendInstance", params).ok();
    }
    eventually("both are gone", || {
        let all = engines(&service, &admin);
        all.as_array().unwrap().iter().all(|engine| engine["instances"] == 0)
    });
}

#[test]
fn an_instance_moves_between_two_engines_with_its_data() {
    let test = "an_instance_moves_between_two_engines_with_its_data";
    let Some(engine) = engine(test) else { return };
    let Some(mut daemon) = Daemon::start_with_tls(test) else { return };
    let builder = engine.publish("builder-base", "base-of-other", "1");
    let service = engine.service(&[("SVC_BUILDER_BASE_IMAGE", &builder)]);
    let admin = service.administrator();
    let second =
        service.call(Some(&admin), "svc_admin_addEngine", adding(&daemon)).ok()["id"].clone();
    eventually("both engines say what they have", || {
        let all = engines(&service, &admin);
        all.as_array().unwrap().iter().all(|one| one["memory"].is_u64())
    });
    // Room is what the first engine has more of here, so it is chosen by what the other one is not.
    service.call(Some(&admin), "svc_admin_drainEngine", json!({"engineId": second})).ok();
    let (ada, _, instance) = made(&service, "svc_createBackendInstance", json!({}));
    let running = until(&service, &ada, &instance["id"], &["running", "failed"]);
    assert_eq!(running["state"], "running", "{running}");
    let placed = |engine: &Value| {
        let params = json!({"engineId": engine});
        let all = service.call(Some(&admin), "svc_admin_getEngineInstances", params).ok();
        all["items"].as_array().unwrap().iter().find(|one| one["id"] == instance["id"]).cloned()
    };
    let moves = |to: &Value| {
        let params = json!({"instanceId": instance["id"], "engineId": to});
        service.call(Some(&admin), "svc_admin_moveInstance", params)
    };
    let refused = moves(&second);
    assert!(refused.body.to_string().contains("drained"), "{refused:?}");
    let again = json!({"engineId": second, "draining": false});
    service.call(Some(&admin), "svc_admin_drainEngine", again).ok();

    let health = format!("{}/parse/health", running["url"].as_str().unwrap());
    let serves = || service.http.get(&health).send().is_ok_and(|answer| answer.status() == 200);
    let name = crate::backups::container(&instance, "sqldb");
    let hosts = [engine_host(), daemon.address.clone()];
    let statement =
        |there: bool, statement: &str| psql(&hosts[usize::from(there)], &name, statement);
    statement(
        false,
        "CREATE TABLE kept AS SELECT n, repeat(md5(n::text), 20) FROM generate_series(1, 20000) n",
    );
    let sum = "SELECT count(*), sum(hashtext(repeat)) FROM kept";
    let kept = statement(false, sum);
    assert!(kept.starts_with("20000|"), "{kept}");

    for (to, there) in [(&second, true), (&Value::Null, false)] {
        let moving = moves(to).ok();
        assert_eq!(moving["moving"], true, "{moving}");
        let begun = Instant::now();
        let (mut away, mut served) = (None, true);
        loop {
            let (now, arrived) = (serves(), placed(to));
            if served && !now {
                away = Some(Instant::now());
            }
            served = now;
            if let Some(it) = arrived
                && it["moving"] == false
                && it["state"] == "running"
                && now
            {
                break;
            }
            assert!(
                begun.elapsed() < LONGEST,
                "{:?} {}",
                placed(&Value::Null),
                service.last_words()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        // What the move takes depends on the machine; it is printed, and never a reason to fail.
        println!(
            "moved in {:?}, of which {:?} without service",
            begun.elapsed(),
            away.map(|at| at.elapsed())
        );
        assert_eq!(statement(there, sum), kept, "to the other engine: {there}");
    }
    let left = daemon.docker(&["ps", "--all", "--quiet", "--filter", "label=svc.instance"]);
    assert!(left.stdout.is_empty(), "{left:?}");
    let volumes = daemon.docker(&["volume", "ls", "--quiet", "--filter", "label=svc.instance"]);
    assert!(!volumes.stdout.is_empty(), "the old volume stays for days");

    // Towards an engine that is gone, it stays where it is.
    daemon.end("KILL");
    second_is("unreachable", &service, &admin);
    let refused = moves(&second);
    assert_eq!(refused.status, 503, "{refused:?}");
    until(&service, &ada, &instance["id"], &["running"]);
    eventually("it serves", serves);
    assert_eq!(statement(false, sum), kept);
    let gone = json!({"instanceId": instance["id"], "deleteData": true});
    assert!(daemon.boot());
    service.call(Some(&ada), "svc_deleteBackendInstance", gone).ok();
    eventually("nothing of it is left at either engine", || {
        let volumes = daemon.docker(&["volume", "ls", "--quiet", "--filter", "label=svc.instance"]);
        volumes.stdout.is_empty() && service.objects(instance["id"].as_str()).is_empty()
    });
    service.call(Some(&admin), "svc_admin_removeEngine", json!({"engineId": second})).ok();
}
