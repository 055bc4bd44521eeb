//! Backends in real containers: a Parse Server with PostgreSQL.

use crate::{
    support::engine::{Installed, docker, engine},
    support::load::together,
    support::service::{Answer, LONGEST, Person, eventually},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Waits until an instance is in one of these states, and with the state `running` until all its
/// services run: one that is added comes up while the others serve. Returns the instance.
pub fn until(service: &Installed, who: &Person, id: &Value, states: &[&str]) -> Value {
    let mut begun = Instant::now();
    loop {
        let instance = service.call(Some(who), "svc_getBackendInstance", json!({"instanceId": id}));
        let instance = instance.ok();
        // Its image may have to be built first. On a busy machine one step of it takes minutes, and the
        // service itself says when that is too long.
        let why = instance["lastError"].as_str();
        if why.is_some_and(|why| why.contains("its image is being built")) {
            begun = Instant::now();
        }
        // What has an address is reached once it has a port.
        let all_run = || {
            let mut services = instance["services"].as_array().unwrap().iter();
            services.all(|service| {
                service["state"] == "running"
                    && (service["url"].is_null() || service["port"].is_u64())
            })
        };
        let is_in =
            |state: &&str| instance["state"] == **state && (**state != *"running" || all_run());
        if states.iter().any(is_in) {
            return instance;
        }
        assert!(begun.elapsed() < LONGEST, "not {states:?}: {instance}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Makes an instance with this function and these parameters, in a new project of a new person.
/// Returns the person, the project and the instance.
pub fn made(service: &Installed, function: &str, mut wanted: Value) -> (Person, Value, Value) {
    let ada = service.register("ada");
    let project = service.call(Some(&ada), "svc_createProject", json!({"name": "Shop"})).ok();
    (wanted["projectId"], wanted["name"]) = (project["id"].clone(), json!("Backend"));
    let made = service.call(Some(&ada), function, wanted).ok();
    assert_eq!(made["state"], "provisioning");
    (ada, project, made)
}

/// Makes a running backend. Returns the person, the project and the instance.
pub fn backend(service: &Installed) -> (Person, Value, Value) {
    let wanted = json!({"env": {"PARSE_SERVER_LOG_LEVEL": "info", "SLACK_URL": "s3cret"}});
    let (ada, project, made) = made(service, "svc_createBackendInstance", wanted);
    let running = until(service, &ada, &made["id"], &["running", "failed"]);
    assert_eq!(running["state"], "running", "{running}");
    (ada, project, running)
}

/// Waits until a deployment has ended. Returns the deployment.
pub fn deployed(service: &Installed, who: &Person, deployment: &Value) -> Value {
    let begun = Instant::now();
    loop {
        let params = json!({"deploymentId": deployment["id"]});
        let found = service.call(Some(who), "getDeployment", params).ok();
        let state = found["state"].as_str().unwrap();
        let drained = found["steps"][5]["state"] == "succeeded";
        if ["failed", "cancelled"].contains(&state) || state == "live" && drained {
            return found;
        }
        assert!(begun.elapsed() < LONGEST, "{found}\n{}", service.last_words());
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_backend_lives_in_real_containers() {
    let Some(engine) = engine("a_backend_lives_in_real_containers") else { return };
    let service = engine.service(&[]);
    let (ada, project, instance) = backend(&service);
    let (id, app) = (&instance["id"], &instance["appId"]);
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let run = |function: &str, parameters: Value| {
        let params = json!({"appId": app, "functionName": function, "parameters": parameters});
        call("svc_runCloudFunction", params)
    };

    // The instance has its own app, hidden secrets and restricted containers. Only variables that
    // the template declares plain are shown.
    let shown = json!({"PARSE_SERVER_LOG_LEVEL": "info", "SLACK_URL": "••••••••"});
    assert_eq!(instance["env"], shown);
    let members = call("getApp", json!({"appId": app})).ok();
    assert_eq!((&members["name"], &members["backendInstanceId"]), (&json!("Backend"), id));
    let taken = json!({"projectId": project["id"], "name": "Again", "appId": app});
    assert_eq!(call("svc_createBackendInstance", taken).refusal(), (409, 137));
    let secrets = call("svc_getInstanceSecrets", json!({"appId": app})).ok();
    let password = secrets["secrets"]["sql_password"].as_str().unwrap().to_owned();
    assert!(!service.log().contains(&password), "no secret is logged");
    let store = std::fs::read(service.rows().join("sled/db")).unwrap();
    let leaked = store.windows(password.len()).any(|window| window == password.as_bytes());
    assert!(!leaked, "no secret is readable in the store");
    for container in service.objects(Some(id.as_str().unwrap())).iter().take(2) {
        let inspected: Value = serde_json::from_str(&docker(&["inspect", container])).unwrap();
        let host = &inspected[0]["HostConfig"];
        assert_eq!(host["CapDrop"], json!(["ALL"]), "{host}");
        assert_eq!(host["SecurityOpt"], json!(["no-new-privileges"]));
        assert_eq!((&host["ReadonlyRootfs"], &host["Privileged"]), (&json!(true), &json!(false)));
        assert!(host["Memory"].as_u64() > Some(0) && host["PidsLimit"].as_u64() > Some(0));
        for bound in host["PortBindings"].as_object().into_iter().flatten().map(|(_, b)| b) {
            assert_eq!(bound[0]["HostIp"], "127.0.0.1");
        }
    }

    // Cloud functions, through the service and through the proxy.
    assert_eq!(run("hello", json!({"name": "Ada"})).ok(), "Hello, Ada");
    let failed = run("perr", json!({"code": 101}));
    assert_eq!(failed.refusal(), (400, 141));
    assert!(failed.body["error"].as_str().unwrap().contains("101"), "{}", failed.body);
    let unknown = run("nothing", json!({}));
    assert_eq!(unknown.refusal(), (400, 141));
    assert!(unknown.body["error"].as_str().unwrap().contains("Invalid function"), "{unknown:?}");
    // A call that is repeated while it is under way does not run again.
    let slow = json!({"appId": app, "functionName": "slow", "parameters": {"ms": 3000}});
    let once = |params: &Value| {
        let answer =
            service.try_call(Some(&ada), "svc_runCloudFunction", params.clone(), Some("x"));
        answer.unwrap()
    };
    let answers = together(2, |_| once(&slow));
    let (done, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|it| it.status == 200);
    assert_eq!(refused.iter().map(|it| it.refusal()).collect::<Vec<_>>(), [(424, 100)]);
    assert_eq!(done.into_iter().map(|it| it.ok()).collect::<Vec<_>>(), ["slow"]);
    let listed = call("svc_listCloudFunctions", json!({"appId": app, "kind": "backend"})).ok();
    assert!(listed["functions"].as_array().unwrap().contains(&json!("hello")), "{listed}");
    let url = format!("{}/parse", instance["url"].as_str().unwrap());
    let direct = service.http.post(format!("{url}/functions/hello"));
    let direct = direct.header("X-Parse-Application-Id", app.as_str().unwrap());
    let answer: Value = direct.json(&json!({"name": "Bob"})).send().unwrap().json().unwrap();
    assert_eq!(answer["result"], "Hello, Bob");
    let user = service.http.post(format!("{url}/users"));
    let user = user.header("X-Parse-Application-Id", app.as_str().unwrap());
    let user = user.json(&json!({"username": "u", "password": "p"})).send().unwrap();
    assert_eq!(user.status(), 201);

    // Its master key passes from the addresses that its owner allows, and from the service.
    let secrets = call("svc_getInstanceSecrets", json!({"appId": app})).ok();
    let master_key = secrets["secrets"]["master_key"].as_str().unwrap().to_owned();
    let as_master = || {
        let users =
            service.http.get(format!("{url}/users")).header("X-Parse-Master-Key", &master_key);
        let users = users.header("X-Parse-Application-Id", app.as_str().unwrap());
        users.header("X-Forwarded-For", "192.0.0.8").send().unwrap().status().as_u16()
    };
    assert_eq!(as_master(), 403);

    // Logs, metrics and data.
    let metrics = call("svc_getAppMetrics", json!({"appId": app})).ok();
    assert_eq!((&metrics["userCount"], &metrics["sessionCount"]), (&json!(1), &json!(1)));
    assert!(metrics["cpuPercent"].is_number() && metrics["memoryBytes"].as_u64() > Some(1 << 20));
    let logs =
        call("svc_getInstanceLogs", json!({"appId": app, "tail": 3, "service": "sqlDb"})).ok();
    assert_eq!((logs["lines"].as_array().unwrap().len(), &logs["truncated"]), (3, &json!(true)));
    let sql = call("svc_testSqlConnection", json!({"appId": app})).ok();
    assert_eq!((&sql["ok"], &sql["databases"]), (&json!(true), &json!(["parse", "postgres"])));
    let sql = call("svc_testSqlConnection", json!({"appId": app, "database": "nowhere"})).ok();
    assert_eq!((&sql["ok"], &sql["steps"][3]["name"]), (&json!(false), &json!("query")), "{sql}");
    assert!(sql["hint"].as_str().unwrap().contains("no such database"), "{sql}");

    // Stopping, starting and restarting keeps the data.
    let stopped = call("svc_stopBackendInstance", json!({"instanceId": id, "wait": true})).ok();
    assert_eq!(stopped["state"], "stopped", "{stopped}");
    assert_eq!(run("hello", json!({})).refusal(), (409, 119));
    assert_eq!(once(&slow).ok(), "slow", "the reply of the first one");
    let metrics = call("svc_getServerMetrics", json!({"instanceId": id})).ok();
    assert!(metrics["current"].is_null() && metrics["history"].is_array(), "{metrics}");
    let sql = call("svc_testSqlConnection", json!({"appId": app, "kind": "backend"})).ok();
    assert_eq!((&sql["ok"], &sql["hint"]), (&json!(false), &json!("start the instance")), "{sql}");
    let wrong = json!({"instanceId": id, "resources": {"memoryMb": 1, "cpus": 1.0}});
    assert_eq!(call("svc_updateBackendInstance", wrong).refusal(), (400, 142));
    let env = json!({"VERBOSE": "0", "PARSE_SERVER_MASTER_KEY_IPS": "192.0.0.8,127.0.0.1"});
    let update = json!({"instanceId": id, "name": "Renamed", "env": env});
    let updated = call("svc_updateBackendInstance", update).ok();
    assert_eq!((&updated["name"], &updated["env"]), (&json!("Renamed"), &env));
    until(&service, &ada, id, &["stopped"]);
    let gone = service.http.get(format!("{url}/health")).send().unwrap();
    assert_eq!(gone.status(), 503);
    assert_eq!(gone.json::<Value>().unwrap()["code"], 100);
    call("svc_startBackendInstance", json!({"instanceId": id})).ok();
    until(&service, &ada, id, &["running"]);
    assert_eq!(as_master(), 200);
    call("svc_restartBackendInstance", json!({"instanceId": id})).ok();
    until(&service, &ada, id, &["running"]);
    let metrics = call("svc_getAppMetrics", json!({"appId": app})).ok();
    assert_eq!(metrics["userCount"], 1, "{metrics}");

    // A running server is replaced by one with more memory and the same variables.
    let update = json!({"instanceId": id, "resources": {"memoryMb": 600, "cpus": 1.0}});
    call("svc_updateBackendInstance", update).ok();
    eventually("the server has more memory", || {
        let of =
            |container: &String| docker(&["inspect", "-f", "{{.HostConfig.Memory}}", container]);
        let containers = service.objects(Some(id.as_str().unwrap()));
        containers.iter().take(2).any(|c| of(c).trim() == (600 << 20).to_string())
    });
    eventually("the new server serves", || {
        let params = json!({"instanceId": id});
        let services = call("svc_getBackendInstance", params).ok()["services"].clone();
        run("hello", json!({"name": "Ada"})).status == 200 && services[1]["health"] == "healthy"
    });

    // A deleted instance comes back as it was, however many call for it at once.
    let params = json!({"instanceId": id});
    assert_eq!(call("svc_undeleteBackendInstance", params.clone()).refusal(), (404, 101));
    call("svc_deleteBackendInstance", params.clone()).ok();
    assert_eq!(call("svc_getBackendInstance", params.clone()).refusal(), (404, 101));
    let eve = service.register("eve");
    let theirs = service.call(Some(&eve), "svc_undeleteBackendInstance", params.clone());
    assert_eq!(theirs.refusal(), (404, 101));
    let deleted = json!({"projectId": project["id"], "deleted": true});
    eventually("its containers are removed", || {
        call("svc_getBackendInstances", deleted.clone()).ok()["items"][0]["state"] == "deleted"
    });
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let undelete = || call("svc_undeleteBackendInstance", params.clone());
        let calls: Vec<_> = (0..16).map(|_| scope.spawn(undelete)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let (done, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 200);
    assert!(!done.is_empty(), "{:?}", answers[0].body);
    // The later ones find no deleted instance any more.
    assert!(refused.iter().all(|answer| answer.refusal() == (404, 101)));
    until(&service, &ada, id, &["running"]);
    let metrics = call("svc_getAppMetrics", json!({"appId": app})).ok();
    assert_eq!(metrics["userCount"], 1, "{metrics}");

    // In another app it begins without what the app that it leaves keeps of it.
    let schedule = json!({"appId": app, "cron": "0 3 * * *", "verify": false});
    call("svc_scheduleBackups", schedule).ok();
    let (elsewhere, third) = service.project_with_app(&ada, None);
    for (from, to) in [(&project["id"], &third), (&elsewhere, app)] {
        call("svc_deleteBackendInstance", json!({"instanceId": id})).ok();
        let deleted = json!({"projectId": from, "deleted": true});
        eventually("its containers are removed", || {
            call("svc_getBackendInstances", deleted.clone()).ok()["items"][0]["state"] == "deleted"
        });
        call("svc_undeleteBackendInstance", json!({"instanceId": id, "appId": to})).ok();
        until(&service, &ada, id, &["running"]);
        let there = call("svc_getBackupSchedule", json!({"appId": to}));
        assert_eq!(there.status, if to == app { 200 } else { 404 }, "{}", there.body);
        let deployed = call("listDeployments", json!({"appId": to})).ok();
        assert_eq!(deployed["items"], json!([]), "{deployed}");
    }

    // What its app and its project take with them is kept too, and comes into another app.
    let counts = json!({"projectId": project["id"], "kind": "market"});
    assert_eq!(call("svc_getBackendInstances", counts).ok()["items"], json!([]));
    let gone = call("deleteApp", json!({"appId": app})).ok();
    assert_eq!((&gone["keptInstances"], &gone["deleted"]["instances"]), (&json!([id]), &json!(1)));
    service.has_objects(Some(id.as_str().unwrap()), 1);
    let deleted =
        json!({"projectId": project["id"], "deleted": true, "kind": "all", "state": "deleted"});
    eventually("it is listed", || {
        call("svc_getBackendInstances", deleted.clone()).ok()["items"][0]["id"] == *id
    });
    let refused = call("svc_undeleteBackendInstance", params.clone());
    assert_eq!(refused.refusal(), (400, 142), "{}", refused.body);
    assert_eq!(refused.body["details"][0]["field"], "appId", "{}", refused.body);
    call("svc_deleteProject", json!({"projectId": project["id"]})).ok();
    let (_, foreign) = service.project_with_app(&eve, None);
    let (_, other) = service.project_with_app(&ada, None);
    let into = |who: &Person, app: &Value| {
        let params = json!({"instanceId": id, "appId": app});
        service.call(Some(who), "svc_undeleteBackendInstance", params)
    };
    assert_eq!(into(&eve, &foreign).refusal(), (404, 101), "the data of others");
    assert_eq!(into(&ada, &foreign).refusal(), (404, 101), "the app of others");
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..16).map(|_| scope.spawn(|| into(&ada, &other))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(answers.iter().any(|answer| answer.status == 200), "{:?}", answers[0].body);
    assert!(answers.iter().all(|it| it.status == 200 || it.refusal() == (404, 101)));
    let moved = until(&service, &ada, id, &["running"]);
    assert_eq!(moved["appId"], other, "{moved}");
    let metrics = call("svc_getAppMetrics", json!({"appId": other})).ok();
    assert_eq!(metrics["userCount"], 1, "{metrics}");
    for name in [id, &other] {
        let health = format!("{}/instances/{}/parse/health", service.url, name.as_str().unwrap());
        assert_eq!(service.http.get(health).send().unwrap().status(), 200, "{name}");
    }

    // Without its volume, it does not come up empty unless somebody asks for that.
    call("svc_deleteBackendInstance", params.clone()).ok();
    service.has_objects(Some(id.as_str().unwrap()), 1);
    for volume in service.objects(Some(id.as_str().unwrap())) {
        docker(&["volume", "rm", &volume]);
    }
    eventually("it comes back", || {
        call("svc_undeleteBackendInstance", params.clone()).status == 200
    });
    let failed = until(&service, &ada, id, &["failed", "running"]);
    let why = failed["lastError"].as_str().unwrap();
    assert!(why.starts_with("sqldb: the volume with its data is gone"), "{failed}");
    assert_eq!(failed["services"][0]["volumeGone"], true, "{failed}");
    call("svc_startBackendInstance", json!({"instanceId": id, "acceptDataLoss": true})).ok();
    let empty = until(&service, &ada, id, &["running"]);
    assert_eq!(empty["services"][0]["volumeGone"], false, "{empty}");
    let metrics = call("svc_getAppMetrics", json!({"appId": other})).ok();
    assert_eq!(metrics["userCount"], 0, "{metrics}");

    // Nothing is left behind.
    call("svc_deleteBackendInstance", json!({"instanceId": id, "deleteData": true})).ok();
    assert_eq!(call("svc_getBackendInstance", json!({"instanceId": id})).refusal(), (404, 101));
    service.has_objects(None, 0);
}
