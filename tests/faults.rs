//! Instances after faults of the service, the engine, a container or an image.

use crate::{
    daemons::{Cuttable, Daemon},
    instances::{backend, deployed, made, until},
    support::engine::{Engine, Installed, docker, engine, template},
    support::{
        git::Git,
        requires,
        service::{LONGEST, Person, eventually},
    },
};
use serde_json::{Value, json};
use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

/// The repository that the registry loses.
const LOST: &str = "lost-image";

#[test]
fn what_does_not_come_up_says_why_and_is_mended_by_a_deployment() {
    let test = "what_does_not_come_up_says_why_and_is_mended_by_a_deployment";
    let Some(engine) = engine(test) else { return };
    let service = engine.service(&[]);
    let broken = json!({"env": {"NODE_OPTIONS": "--require=/nowhere.js"}});
    let (ada, _, made) = made(&service, "svc_createBackendInstance", broken);
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let failed = until(&service, &ada, &made["id"], &["failed", "running"]);
    assert!(failed["lastError"].as_str().unwrap().contains("3 times in a row"), "{failed}");
    let log = failed["lastLog"].as_array().unwrap();
    assert!(log.iter().any(|line| line.as_str().unwrap().contains("/nowhere.js")), "{log:?}");
    let source = json!({"templateVersion": "1.0.2"});
    let params = json!({"appId": made["appId"], "source": source, "env": {}});
    let mended = call("triggerDeployment", params).ok();
    assert_eq!(deployed(&service, &ada, &mended)["state"], "live");
    until(&service, &ada, &made["id"], &["running"]);

    // An image that no registry has.
    let admin = service.administrator();
    let image = json!({"name": "lost", "repository": format!("{}/lost", engine.registry)});
    let image = service.call(Some(&admin), "registerDockerImage", image).ok();
    let version = json!({"imageId": image["id"], "version": "1"});
    let refused = service.call(Some(&admin), "addDockerImageVersion", version);
    assert_eq!(refused.refusal(), (400, 142), "{}", refused.body);
}

#[test]
fn a_service_that_is_killed_goes_on_with_its_instances() {
    let Some(engine) = engine("a_service_that_is_killed_goes_on_with_its_instances") else {
        return;
    };
    let mut service = engine.service(&[]);
    let (ada, _, instance) = made(&service, "svc_createBackendInstance", json!({}));
    let id = instance["id"].clone();
    let mut random = fastrand::Rng::with_seed(0x5eed);
    let mut kill = |service: &mut Installed| {
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(random.u64(20..900)));
            service.kill();
            service.boot();
        }
    };
    kill(&mut service);
    until(&service, &ada, &id, &["running"]);
    for (function, state) in [
        ("svc_stopBackendInstance", "stopped"),
        ("svc_startBackendInstance", "running"),
        ("svc_restartBackendInstance", "running"),
    ] {
        service.call(Some(&ada), function, json!({"instanceId": id})).ok();
        kill(&mut service);
        until(&service, &ada, &id, &[state]);
    }
    // In the middle of a deployment.
    let image = service.call(None, "getDockerImage", json!({"name": "parse-server"})).ok();
    let source = json!({"imageId": image["id"], "version": "9.10.1-alpha.13"});
    let params = json!({"appId": instance["appId"], "source": source});
    let deployment = service.call(Some(&ada), "triggerDeployment", params).ok();
    kill(&mut service);
    assert_eq!(deployed(&service, &ada, &deployment)["state"], "live");
    assert_eq!(service.objects(Some(id.as_str().unwrap())).len(), 4, "no leftovers");

    service
        .call(
            Some(&ada),
            "svc_deleteBackendInstance",
            json!({"instanceId": id, "deleteData": true}),
        )
        .ok();
    kill(&mut service);
    service.has_objects(None, 0);
    service.stop();
    service.check();
}

#[test]
fn containers_that_are_killed_or_removed_come_back() {
    let Some(engine) = engine("containers_that_are_killed_or_removed_come_back") else { return };
    let service = engine.service(&[]);
    let (ada, _, instance) = backend(&service);
    let id = &instance["id"];
    let unique = id.as_str().unwrap().trim_start_matches("ins_").to_lowercase();
    let (server, database) = (format!("svc-{unique}-server-1"), format!("svc-{unique}-sqldb-1"));
    let restarts = |instance: &Value| instance["services"][1]["restarts"].as_u64().unwrap();
    docker(&["kill", &server]);
    eventually("the end is seen", || {
        restarts(
            &service.call(Some(&ada), "svc_getBackendInstance", json!({"instanceId": id})).ok(),
        ) == 1
    });
    until(&service, &ada, id, &["running"]);
    docker(&["rm", "--force", &server, &database]);
    docker(&["network", "rm", &format!("svc-{unique}")]);
    eventually("the loss is seen", || {
        service.call(Some(&ada), "svc_getBackendInstance", json!({"instanceId": id})).ok()["state"]
            != "running"
    });
    until(&service, &ada, id, &["running"]);
    // A server that runs and does not answer is degraded until it answers again.
    docker(&["pause", &server]);
    let degraded = until(&service, &ada, id, &["degraded"]);
    assert!(degraded["lastError"].as_str().unwrap().contains("server"), "{degraded}");
    docker(&["unpause", &server]);
    until(&service, &ada, id, &["running"]);
}

#[test]
fn an_engine_that_is_away_fails_nothing() {
    let Some(engine) = engine("an_engine_that_is_away_fails_nothing") else { return };
    let way = Cuttable::new();
    let service = engine.service(&[("SVC_DOCKER_HOST", &way.address)]);
    let (ada, project, instance) = backend(&service);
    let readiness = || -> Value {
        service.http.get(format!("{}/readyz", service.url)).send().unwrap().json().unwrap()
    };
    way.set_open(false);
    eventually("it is missed", || readiness()["checks"]["engine"]["ok"] == false);
    assert_eq!(readiness()["status"], "degraded");
    let stale = until(&service, &ada, &instance["id"], &["running"]);
    assert_eq!(stale["stale"], true, "the last state that is known");
    let url = format!("{}/parse/health", instance["url"].as_str().unwrap());
    assert_eq!(service.http.get(url).send().unwrap().status(), 200, "it serves all the same");
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let metrics = call("svc_getServerMetrics", json!({"instanceId": instance["id"]}));
    assert_eq!(metrics.refusal(), (503, 100));
    let second = json!({"projectId": project["id"], "name": "Second"});
    let second = call("svc_createBackendInstance", second).ok();
    call("svc_stopBackendInstance", json!({"instanceId": instance["id"]})).ok();
    eventually("it waits for the engine", || {
        let waiting = until(&service, &ada, &second["id"], &["provisioning"]);
        waiting["lastError"].as_str().is_some_and(|why| why.contains("waits for"))
    });
    until(&service, &ada, &instance["id"], &["stopping"]);
    way.set_open(true);
    until(&service, &ada, &instance["id"], &["stopped"]);
    until(&service, &ada, &second["id"], &["running"]);
    eventually("it is back", || readiness()["status"] == "ready");
}

/// Makes an instance of one small server, whose image is in this repository. Returns the person and
/// the instance.
fn small(service: &Installed, engine: &Engine, repository: &str) -> (Person, Value) {
    let services = json!([{"role": "server", "image": "web-server", "repository": repository,
        "port": 8080, "healthCheck": {"http": "/health"}}]);
    let template = template(service, engine, services);
    if repository == LOST {
        engine.lose(repository);
    }
    let (ada, _, made) =
        made(service, "svc_createBackendInstance", json!({"templateId": template}));
    (ada, made)
}

#[test]
fn an_engine_that_is_stopped_and_started_has_its_instances_again() {
    let test = "an_engine_that_is_stopped_and_started_has_its_instances_again";
    let Some(engine) = engine(test) else { return };
    let Some(mut daemon) = Daemon::start(test) else { return };
    let builder = engine.publish("builder-base", "base-builder", "1");
    let of_this =
        [("SVC_DOCKER_HOST", daemon.address.as_str()), ("SVC_BUILDER_BASE_IMAGE", &builder)];
    let service = engine.service(&of_this);
    let (ada, made) = small(&service, engine, "small");
    let running = until(&service, &ada, &made["id"], &["running", "failed"]);
    assert_eq!(running["state"], "running", "{running}");
    let url = format!("{}/health", running["url"].as_str().unwrap());
    let page = || service.http.get(&url).send().unwrap().status();
    assert_eq!(page(), 200);
    for signal in ["TERM", "KILL"] {
        daemon.end(signal);
        eventually("it is missed", || {
            let seen = until(&service, &ada, &made["id"], &["running", "degraded"]);
            seen["stale"] == true
        });
        assert!(daemon.boot(), "{signal}");
        eventually("it serves again", || {
            let params = json!({"instanceId": made["id"]});
            let seen = service.call(Some(&ada), "svc_getBackendInstance", params).ok();
            seen["state"] == "running" && seen["stale"] == false && page() == 200
        });
    }

    // The next ports that the engine would choose are taken.
    let port = |instance: &Value| instance["services"][0]["port"].as_u64().unwrap();
    let last = port(&until(&service, &ada, &made["id"], &["running"]));
    let next = (last + 1..last + 16).map(|port| TcpListener::bind(("127.0.0.1", port as u16)));
    let taken: Vec<_> = next.flatten().collect();
    let id = json!({"instanceId": made["id"]});
    service.call(Some(&ada), "svc_restartBackendInstance", id.clone()).ok();
    let again = until(&service, &ada, &made["id"], &["running", "failed"]);
    assert_eq!(again["state"], "running", "{again}");
    assert!(taken.iter().all(|l| u64::from(l.local_addr().unwrap().port()) != port(&again)));
    assert_eq!(page(), 200);
    service.call(Some(&ada), "svc_deleteBackendInstance", id).ok();
}

#[test]
fn an_image_that_is_gone_fails_the_instance_until_it_is_back() {
    let test = "an_image_that_is_gone_fails_the_instance_until_it_is_back";
    let Some(engine) = engine(test) else { return };
    let service = engine.service(&[]);
    // The registry had the image when the template was made.
    let (ada, made) = small(&service, engine, LOST);
    let failed = until(&service, &ada, &made["id"], &["failed", "running"]);
    assert_eq!(failed["state"], "failed", "{failed}");
    assert!(failed["lastError"].as_str().unwrap().contains(LOST), "{failed}");
    engine.publish("web-server", LOST, "1");
    let id = json!({"instanceId": made["id"]});
    service.call(Some(&ada), "svc_startBackendInstance", id).ok();
    until(&service, &ada, &made["id"], &["running"]);
}

/// The states in which nothing happens by itself any more.
const AT_REST: [&str; 5] = ["running", "stopped", "failed", "live", "succeeded"];

/// Kills the service as soon as `now` is in this state, and starts it again. A busy machine may not see a short
/// state: then it is killed after it. Returns whether the state was seen.
fn kill_in(service: &mut Installed, state: &str, now: impl Fn(&Installed) -> Value) -> bool {
    let begun = Instant::now();
    let is_seen = loop {
        let seen = now(service);
        if seen == state || AT_REST.iter().any(|rest| seen == *rest) {
            break seen == state;
        }
        assert!(begun.elapsed() < LONGEST, "{state} was never seen: {seen}");
        // Some states are short.
        std::thread::sleep(Duration::from_millis(2));
    };
    service.kill();
    service.boot();
    is_seen
}

#[test]
fn a_service_that_is_killed_in_each_state_on_the_way_goes_on() {
    let test = "a_service_that_is_killed_in_each_state_on_the_way_goes_on";
    let Some(engine) = engine(test) else { return };
    if !requires::programs(test, &["git", "python3"]) {
        return;
    }
    let git = Git::serve();
    let mut service = engine.service(&[("SVC_GIT_PRIVATE_HOSTS", &git.host)]);
    let (ada, _, made) = made(&service, "svc_createBackendInstance", json!({}));
    let id = made["id"].clone();
    let instance = |service: &Installed| {
        let found = service.call(Some(&ada), "svc_getBackendInstance", json!({"instanceId": id}));
        found.body["result"]["state"].clone()
    };
    let mut seen = Vec::new();
    for (function, states, end) in [
        ("", ["provisioning", "starting"].as_slice(), "running"),
        ("svc_stopBackendInstance", &["stopping"], "stopped"),
        ("svc_startBackendInstance", &["starting"], "running"),
        ("svc_restartBackendInstance", &["restarting"], "running"),
    ] {
        if !function.is_empty() {
            service.call(Some(&ada), function, json!({"instanceId": id})).ok();
        }
        for state in states {
            seen.push(kill_in(&mut service, state, instance));
        }
        until(&service, &ada, &id, &[end]);
    }

    // The instance is restarted whenever it can be, so that the deployment waits for it when it is built.
    let slow = format!(
        "FROM {}\nCOPY cloud/main.js /parse-server/cloud/main.js\nRUN sleep 3\n",
        engine.base("parse-server")
    );
    git.commit_version(engine, "two");
    git.commit(&[("Dockerfile", slow)]);
    let source = json!({"git": {"url": git.url}});
    let params = json!({"appId": made["appId"], "source": source});
    let deployment = service.call(Some(&ada), "triggerDeployment", params).ok();
    let state = |service: &Installed| {
        let params = json!({"deploymentId": deployment["id"]});
        service.call(Some(&ada), "getDeployment", params).ok()["state"].clone()
    };
    seen.push(kill_in(&mut service, "building", state));
    seen.push(kill_in(&mut service, "deploying", |service| {
        if instance(service) == "running" {
            service.call(Some(&ada), "svc_restartBackendInstance", json!({"instanceId": id}));
        }
        state(service)
    }));
    seen.push(kill_in(&mut service, "verifying", state));
    assert_eq!(deployed(&service, &ada, &deployment)["state"], "live");
    let run = json!({"appId": made["appId"], "functionName": "version"});
    assert_eq!(service.call(Some(&ada), "svc_runCloudFunction", run).ok(), "two");

    // A deployment that never becomes healthy fails at its deadline, and the old version serves.
    let admin = service.administrator();
    let image = service.call(None, "getDockerImage", json!({"name": "parse-server"})).ok();
    let version = json!({"imageId": image["id"], "version": "sick"});
    service.call(Some(&admin), "addDockerImageVersion", version.clone()).ok();
    let params = json!({"appId": made["appId"], "source": version});
    let sick = service.call(Some(&ada), "triggerDeployment", params).ok();
    let state = |service: &Installed| {
        let params = json!({"deploymentId": sick["id"]});
        service.call(Some(&ada), "getDeployment", params).ok()["state"].clone()
    };
    seen.push(kill_in(&mut service, "verifying", state));
    service.stop();
    service.set("SVC_CLOCK_AHEAD", "301");
    service.boot();
    let failed = deployed(&service, &ada, &sick);
    assert_eq!(failed["state"], "failed", "{failed}");
    assert!(failed["error"].as_str().unwrap().contains("in time"), "{failed}");
    let run = json!({"appId": made["appId"], "functionName": "version"});
    assert_eq!(service.call(Some(&ada), "svc_runCloudFunction", run).ok(), "two");
    assert_eq!(service.objects(Some(id.as_str().unwrap())).len(), 4, "no leftovers");

    // A build of a registered image.
    let repository = format!("{}/killed", engine.registry);
    let image = json!({"name": "killed", "repository": repository});
    let image = service.call(Some(&admin), "registerDockerImage", image).ok();
    let build = json!({"imageId": image["id"], "version": "1.0.0",
        "source": {"git": {"url": git.url}}});
    let job = service.call(Some(&admin), "triggerDockerBuild", build).ok();
    let state = |service: &Installed| {
        let params = json!({"jobId": job["id"]});
        service.call(Some(&admin), "getBuildJobStatus", params).ok()["state"].clone()
    };
    seen.push(kill_in(&mut service, "building", state));
    let missed = seen.iter().filter(|seen| !**seen).count();
    assert!(missed <= seen.len() / 2, "most states were seen: {seen:?}");
    eventually("it is built", || state(&service) == "succeeded");

    let gone = json!({"instanceId": id, "deleteData": true});
    service.call(Some(&ada), "svc_deleteBackendInstance", gone).ok();
    service.kill();
    service.boot();
    service.has_objects(None, 0);
}
