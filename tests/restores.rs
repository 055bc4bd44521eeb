//! Restores into real databases: each happens whole or not at all.

use crate::{
    backups::{container, finished, grows, psql},
    instances::{backend, made, until},
    support::engine::{Installed, docker, engine, template},
    support::service::{eventually, sha256},
};
use serde_json::{Value, json};

#[test]
fn an_sql_database_is_put_back_as_it_was() {
    let Some(engine) = engine("an_sql_database_is_put_back_as_it_was") else { return };
    let mut service = engine.service(&[]);
    let (ada, _, instance) = backend(&service);
    let app = &instance["appId"];
    let call = |service: &Installed, function: &str, params: Value| {
        service.call(Some(&ada), function, params)
    };
    psql(
        &instance,
        "parse",
        "create table kept (n int primary key, t text); insert into kept select n, 'row ' || n from generate_series(1, 1000) n",
    );
    let made = call(&service, "svc_createSqlDbBackup", json!({"appId": app})).ok();
    assert_eq!((&made["state"], &made["kind"]), (&json!("running"), &json!("sqlDb")));
    let ready = finished(&service, &ada, &made);
    assert_eq!(ready["state"], "ready", "{ready}");
    let refused = call(&service, "svc_createDocumentDbBackup", json!({"appId": app}));
    assert_eq!(refused.refusal(), (409, 119));
    assert!(refused.body["error"].as_str().unwrap().contains("no document database"));
    for (kind, database, count) in [
        (json!("backend"), json!("sqlDb"), 1),
        (json!("market"), json!("sqlDb"), 0),
        (json!("backend"), json!("documentDb"), 0),
    ] {
        let wanted = json!({"appId": app, "kind": kind, "database": database});
        let found = call(&service, "svc_getBackups", wanted).ok()["items"].clone();
        assert_eq!(found.as_array().unwrap().len(), count, "{kind} {database}: {found}");
    }

    // Anybody with the address can download the file, which has the stated size and hash.
    let id = json!({"backupId": made["id"]});
    let url = call(&service, "svc_getBackupDownloadUrl", id.clone()).ok();
    let log = json!({"function": "svc_getBackupDownloadUrl"});
    let log = call(&service, "svc_getAuditLog", log).ok();
    assert_eq!(log["items"][0]["resource"], made["id"], "{log}");
    let file = service.http.get(url["url"].as_str().unwrap()).send().unwrap();
    assert_eq!(file.status(), 200);
    let bytes = file.bytes().unwrap();
    assert_eq!(
        (sha256(&bytes), bytes.len() as u64),
        (ready["sha256"].as_str().unwrap().to_owned(), ready["size"].as_u64().unwrap(),)
    );
    let forged = url["url"].as_str().unwrap().replace("signature=", "signature=0");
    assert_eq!(service.http.get(forged).send().unwrap().status(), 401);
    let eve = service.register("eve");
    assert_eq!(service.call(Some(&eve), "svc_restoreBackup", id.clone()).refusal(), (404, 101));

    // A restore undoes later changes.
    psql(
        &instance,
        "parse",
        "drop table kept; create table later (n int); create table kept (n int, other text)",
    );
    call(&service, "svc_restoreBackup", id.clone()).ok();
    let restored = finished(&service, &ada, &made);
    assert_eq!(restored["restore"]["state"], "succeeded", "{restored}");
    // The server remembers nothing of the database as it was.
    let back = until(&service, &ada, &instance["id"], &["running", "failed"]);
    assert_eq!(back["state"], "running", "{back}");
    assert_eq!(psql(&instance, "parse", "select count(*), min(t) from kept"), "1000|row 1");
    assert_eq!(
        psql(&instance, "parse", "select count(*) from pg_class where relname = 'later'"),
        "0"
    );
    let run = json!({"appId": app, "functionName": "hello", "parameters": {"name": "Ada"}});
    assert_eq!(call(&service, "svc_runCloudFunction", run).ok(), "Hello, Ada");

    // A damaged file changes nothing.
    let path = service.data().join(format!("backups/{}.gz", made["id"].as_str().unwrap()));
    let mut damaged = std::fs::read(&path).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    psql(&instance, "parse", "delete from kept where n > 10");
    call(&service, "svc_restoreBackup", id.clone()).ok();
    let refused = finished(&service, &ada, &made);
    assert_eq!(refused["restore"]["state"], "failed");
    assert!(refused["restore"]["error"].as_str().unwrap().contains("damaged"), "{refused}");
    assert_eq!(psql(&instance, "parse", "select count(*) from kept"), "10");

    // The service is killed during a dump, then the database is killed during a dump.
    psql(
        &instance,
        "parse",
        "create table large as select n, repeat(md5(n::text), 40) t from generate_series(1, 60000) n",
    );
    let made = call(&service, "svc_createSqlDbBackup", json!({"appId": app})).ok();
    assert_eq!(
        call(&service, "svc_createSqlDbBackup", json!({"appId": app})).refusal(),
        (409, 119)
    );
    eventually("the dump grows", || grows(&service, &made));
    service.kill();
    service.boot();
    assert_eq!(finished(&service, &ada, &made)["state"], "ready");
    let made = call(&service, "svc_createSqlDbBackup", json!({"appId": app})).ok();
    eventually("the dump grows", || grows(&service, &made));
    docker(&["kill", &container(&instance, "sqldb")]);
    let cut = finished(&service, &ada, &made);
    assert_eq!(cut["state"], "failed", "{cut}");
    assert!(cut["size"].is_null() && cut["error"].is_string(), "{cut}");
    until(&service, &ada, &instance["id"], &["running"]);

    call(&service, "svc_deleteBackup", id).ok();
    eventually("its bytes are gone", || !path.exists());
    call(&service, "deleteApp", json!({"appId": app})).ok();
    eventually("nothing is left of the others", || {
        std::fs::read_dir(service.data().join("backups")).unwrap().count() == 0
    });
}

#[test]
fn a_document_database_is_put_back_as_it_was() {
    let Some(engine) = engine("a_document_database_is_put_back_as_it_was") else { return };
    let service = engine.service(&[]);
    let answers = "import socket; socket.create_connection(('127.0.0.1', 27017), 2)";
    let template = template(
        &service,
        engine,
        json!([
            {"role": "documentDb", "image": "documentdb", "volume": "/data/db",
             "healthCheck": {"command": ["python3", "-c", answers]},
             "database": {"engine": "mongodb", "name": "parse", "user": "svc"}},
            {"role": "server", "image": "parse-server", "port": 1337,
             "healthCheck": {"http": "/parse/health"},
             "env": {
                 "PARSE_SERVER_APPLICATION_ID": "${instance.appId}",
                 "PARSE_SERVER_MASTER_KEY": "${secret.master_key}",
                 "PARSE_SERVER_MASTER_KEY_IPS": "0.0.0.0/0,::/0",
                 "PARSE_SERVER_MOUNT_PATH": "/parse",
                 "PARSE_SERVER_DATABASE_URI": "mongodb://documentdb:27017/parse?directConnection=true",
                 "PARSE_SERVER_URL": "http://127.0.0.1:1337/parse", "PORT": "1337"}}
        ]),
    );
    let (ada, _, made) =
        made(&service, "svc_createBackendInstance", json!({"templateId": template}));
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let instance = until(&service, &ada, &made["id"], &["running", "failed"]);
    assert_eq!(instance["state"], "running", "{instance}");
    let app = &instance["appId"];
    let user = |name: &str| {
        let url = format!("{}/parse/users", instance["url"].as_str().unwrap());
        let request = service.http.post(url).json(&json!({"username": name, "password": "p"}));
        request.header("X-Parse-Application-Id", app.as_str().unwrap()).send().unwrap().status()
    };
    let users = || call("svc_getAppMetrics", json!({"appId": app})).ok()["userCount"].clone();
    assert_eq!(
        (user("a"), user("b")),
        (reqwest::StatusCode::CREATED, reqwest::StatusCode::CREATED)
    );
    let backup = call("svc_createDocumentDbBackup", json!({"appId": app})).ok();
    let ready = finished(&service, &ada, &backup);
    assert_eq!(ready["state"], "ready", "{ready}");
    user("c");
    assert_eq!(users(), 3);
    call("svc_restoreBackup", json!({"backupId": backup["id"]})).ok();
    let restored = finished(&service, &ada, &backup);
    assert_eq!(restored["restore"]["state"], "succeeded", "{restored}");
    until(&service, &ada, &instance["id"], &["running", "failed"]);
    assert_eq!(users(), 2);

    // Another instance begins with the same content.
    let copy = json!({
        "projectId": instance["projectId"], "name": "Copy", "templateId": template,
        "fromBackupId": backup["id"],
    });
    let copy = call("svc_createBackendInstance", copy).ok();
    let running = until(&service, &ada, &copy["id"], &["running", "failed"]);
    assert_eq!(running["state"], "running", "{running}");
    let theirs = json!({"appId": running["appId"]});
    assert_eq!(call("svc_getAppMetrics", theirs).ok()["userCount"], 2);

    // A schedule names the time of the next backup. Too frequent schedules are refused.
    let dense = call("svc_scheduleBackups", json!({"appId": app, "cron": "* * * * *"}));
    assert_eq!(dense.refusal(), (400, 142));
    let daily = call("svc_scheduleBackups", json!({"appId": app, "cron": "30 3 * * *", "keep": 2}));
    let daily = daily.ok();
    assert_eq!((&daily["database"], &daily["keep"]), (&json!("documentDb"), &json!(2)));
    assert!(daily["nextAt"].as_str().unwrap().ends_with("T03:30:00.000Z"), "{daily}");
}

#[test]
fn an_instance_begins_with_the_content_of_a_backup() {
    let test = "an_instance_begins_with_the_content_of_a_backup";
    let Some(engine) = engine(test) else { return };
    let mut service = engine.service(&[]);
    let (ada, project, instance) = backend(&service);
    let call = |service: &Installed, function: &str, params: Value| {
        service.call(Some(&ada), function, params)
    };
    psql(
        &instance,
        "parse",
        "create table kept as select n, repeat(md5(n::text), 40) t from generate_series(1, 60000) n",
    );
    let app = json!({"appId": instance["appId"]});
    let backup = call(&service, "svc_createSqlDbBackup", app).ok();
    assert_eq!(finished(&service, &ada, &backup)["state"], "ready");
    let wanted = json!({
        "projectId": project["id"], "name": "Copy", "fromBackupId": backup["id"],
    });
    let with = |field: &str, value: &Value| {
        let mut wanted = wanted.clone();
        wanted[field] = value.clone();
        wanted
    };

    // A backup of another project is not found, and one of another database does not fit.
    let eve = service.register("eve");
    let hers = service.call(Some(&eve), "svc_createProject", json!({"name": "Hers"})).ok();
    let foreign = with("projectId", &hers["id"]);
    assert_eq!(
        service.call(Some(&eve), "svc_createBackendInstance", foreign).refusal(),
        (404, 101)
    );
    assert_eq!(call(&service, "svc_deployMarketServer", wanted.clone()).refusal(), (400, 142));

    // A damaged backup starts no server.
    let path = service.data().join(format!("backups/{}.gz", backup["id"].as_str().unwrap()));
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[1..]).unwrap();
    let copy = call(&service, "svc_createBackendInstance", wanted.clone()).ok();
    assert_eq!(copy["fromBackupId"], backup["id"], "{copy}");
    let failed = until(&service, &ada, &copy["id"], &["running", "failed"]);
    assert_eq!(failed["state"], "failed", "{failed}");
    assert!(failed["lastError"].as_str().unwrap().contains("damaged"), "{failed}");
    assert_eq!(failed["services"][1]["state"], "created", "{failed}");
    std::fs::write(&path, &whole).unwrap();

    // Of sixteen callers one brings the data of a deleted instance back, although the service is
    // killed meanwhile.
    for id in [&copy["id"], &instance["id"]] {
        let gone = json!({"instanceId": id, "deleteData": true});
        call(&service, "svc_deleteBackendInstance", gone).ok();
        service.has_objects(id.as_str(), 0);
    }
    let restore = call(&service, "svc_restoreBackup", json!({"backupId": backup["id"]}));
    assert_eq!(restore.refusal(), (409, 119));
    let again = with("appId", &instance["appId"]);
    let replies: Vec<_> = std::thread::scope(|scope| {
        let ask = || service.call(Some(&ada), "svc_createBackendInstance", again.clone());
        let asked: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        asked.into_iter().map(|reply| reply.join().unwrap()).collect()
    });
    let (made, refused): (Vec<_>, Vec<_>) = replies.into_iter().partition(|r| r.status == 200);
    assert_eq!((made.len(), refused.len()), (1, 15));
    assert!(refused.into_iter().all(|reply| reply.refusal() == (409, 137)));
    let made = made.into_iter().next().unwrap().ok();
    eventually("it is being restored", || {
        let id = json!({"instanceId": made["id"]});
        call(&service, "svc_getBackendInstance", id).ok()["services"][0]["health"] == "healthy"
    });
    service.kill();
    service.boot();
    let back = until(&service, &ada, &made["id"], &["running", "failed"]);
    assert_eq!(back["state"], "running", "{back}");
    assert!(back["fromBackupId"].is_null(), "{back}");
    assert_eq!(psql(&back, "parse", "select count(*) from kept"), "60000");
    let run =
        json!({"appId": back["appId"], "functionName": "hello", "parameters": {"name": "Ada"}});
    assert_eq!(call(&service, "svc_runCloudFunction", run).ok(), "Hello, Ada");
}
