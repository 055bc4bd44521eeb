//! Backups of real databases: each is complete or none, and is verified on demand.

use crate::{
    instances::{backend, made, until},
    quotas::used,
    support::engine::{Installed, docker, engine, template},
    support::service::{Person, Service, eventually},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use test_support::disk::Disk;

/// Makes a backup of the SQL database of an app and verifies it. Returns the backup.
pub fn verified_backup(service: &Installed, who: &Person, app: &Value) -> Value {
    let call = |function: &str, params: Value| service.call(Some(who), function, params).ok();
    let backup = finished(service, who, &call("svc_createSqlDbBackup", json!({"appId": app})));
    assert_eq!(backup["state"], "ready", "{backup}");
    call("svc_verifyBackup", json!({"backupId": backup["id"]}));
    let verified = finished(service, who, &backup);
    assert_eq!(verified["verification"]["state"], "succeeded", "{verified}");
    verified
}

/// Waits until a backup is complete or has failed. Returns the backup.
pub fn finished(service: &Installed, who: &Person, backup: &Value) -> Value {
    let mut found = Value::Null;
    eventually("the backup comes to an end", || {
        let all = service.call(Some(who), "svc_getBackups", json!({"appId": backup["appId"]})).ok();
        let all = all["items"].as_array().unwrap().clone();
        found = all.into_iter().find(|b| b["id"] == backup["id"]).unwrap();
        let under_way = |part: &Value| part["state"] == "running";
        ![&found, &found["restore"], &found["verification"]].into_iter().any(under_way)
    });
    found
}

pub fn container(instance: &Value, role: &str) -> String {
    let unique = instance["id"].as_str().unwrap().trim_start_matches("ins_").to_lowercase();
    format!("svc-{unique}-{role}-1")
}

/// Runs SQL in a database of an instance, and returns the output.
pub fn psql(instance: &Value, database: &str, sql: &str) -> String {
    let name = container(instance, "sqldb");
    docker(&["exec", &name, "psql", "-U", "svc", "-d", database, "-XAtc", sql])
}

/// Whether a dump has written bytes, and is not complete.
pub fn grows(service: &Installed, backup: &Value) -> bool {
    let file = format!("backups/{}.partial", backup["id"].as_str().unwrap());
    std::fs::metadata(service.data().join(file)).is_ok_and(|file| file.len() > 0)
}

#[test]
fn a_backup_is_verified_in_a_database_of_its_own() {
    let Some(engine) = engine("a_backup_is_verified_in_a_database_of_its_own") else { return };
    let mut service = engine.service(&[]);
    let (ada, _, instance) = backend(&service);
    let app = &instance["appId"];
    let call = |service: &Installed, function: &str, params: Value| {
        service.call(Some(&ada), function, params)
    };
    let left = |backup: &Value| {
        let label = format!("label=svc.backup={}", backup["id"].as_str().unwrap());
        let list = |what: &[&str]| docker(&[what, &["-q", "--filter", &label]].concat());
        [list(&["ps", "-a"]), list(&["volume", "ls"]), list(&["network", "ls"])].concat()
    };
    psql(&instance, "parse", "create table kept as select n from generate_series(1, 1000) n");
    let verified = json!({"appId": app, "verify": true});
    let made = call(&service, "svc_createSqlDbBackup", verified).ok();
    let good = finished(&service, &ada, &made);
    assert_eq!(good["verification"]["state"], "succeeded", "{good}");
    assert!(good["restore"].is_null(), "{good}");
    eventually("the database of the trial is gone", || left(&made).is_empty());

    // A complete dump that cannot be restored: its tables are made with an empty search path.
    psql(
        &instance,
        "parse",
        "create function more(n int) returns bool immutable language sql as 'select n <= (select count(*) from kept)';
         create table checked (n int check (more(n))); insert into checked values (1)",
    );
    let made = call(&service, "svc_createSqlDbBackup", json!({"appId": app})).ok();
    assert_eq!(finished(&service, &ada, &made)["state"], "ready");
    let id = json!({"backupId": made["id"]});
    call(&service, "svc_verifyBackup", id.clone()).ok();
    let useless = finished(&service, &ada, &made);
    assert_eq!(useless["verification"]["state"], "failed", "{useless}");
    let why = useless["verification"]["error"].as_str().unwrap();
    assert!(why.contains("relation \"kept\" does not exist"), "{why}");
    psql(&instance, "parse", "drop table checked");

    // A service that is killed during a restore check starts it again, and leaves nothing behind.
    let id = json!({"backupId": good["id"]});
    call(&service, "svc_verifyBackup", id.clone()).ok();
    eventually("the database of the trial is there", || !left(&good).is_empty());
    service.kill();
    service.boot();
    let again = finished(&service, &ada, &good);
    assert_eq!(again["verification"]["state"], "succeeded", "{again}");
    eventually("the database of the trial is gone", || left(&good).is_empty());
    assert_eq!(psql(&instance, "parse", "select count(*) from kept"), "1000");

    // A restore interrupts a restore check.
    psql(&instance, "parse", "delete from kept");
    call(&service, "svc_verifyBackup", id.clone()).ok();
    eventually("the database of the trial is there", || !left(&good).is_empty());
    call(&service, "svc_restoreBackup", id.clone()).ok();
    let back = finished(&service, &ada, &good);
    until(&service, &ada, &instance["id"], &["running", "failed"]);
    assert_eq!(
        (&back["restore"]["state"], psql(&instance, "parse", "select count(*) from kept")),
        (&json!("succeeded"), "1000".into())
    );
    assert_eq!(back["verification"]["state"], "failed", "{back}");
    eventually("the database of the trial is gone", || left(&good).is_empty());

    // Each day of its clock, the schedule makes a backup that replaces the one before.
    let daily = json!({"appId": app, "cron": "30 3 * * *", "keep": 1, "verify": true});
    assert_eq!(call(&service, "svc_scheduleBackups", daily).ok()["verify"], true);
    let mut before = Value::Null;
    for day in 1..=2 {
        service.stop();
        service.set("SVC_CLOCK_AHEAD", &(day * 86_400).to_string());
        service.boot();
        eventually("it is made, verified, and the only one", || {
            let all = call(&service, "svc_getBackups", json!({"appId": app})).ok();
            let all = all["items"].as_array().unwrap();
            let scheduled: Vec<_> = all.iter().filter(|b| b["scheduled"] == true).collect();
            let [only] = scheduled.as_slice() else { return false };
            let new = only["id"] != before && only["verification"]["state"] == "succeeded";
            if new {
                before = only["id"].clone();
            }
            new
        });
    }
}

#[test]
fn a_backup_that_does_not_fit_on_the_disk_is_none() {
    let test = "a_backup_that_does_not_fit_on_the_disk_is_none";
    let Some(engine) = engine(test) else { return };
    let mut service = engine.service(&[]);
    let (ada, _, instance) = backend(&service);
    psql(
        &instance,
        "parse",
        "create table large as select md5(n::text) || md5((n * 7)::text) t from generate_series(1, 60000) n",
    );
    let folder = service.data().join("backups");
    let Some(_disk) = Disk::at(&folder, 256, test) else { return };
    let made =
        service.call(Some(&ada), "svc_createSqlDbBackup", json!({"appId": instance["appId"]}));
    let full = finished(&service, &ada, &made.ok());
    let left = std::fs::read_dir(&folder).unwrap().count();
    service.kill();
    assert_eq!(full["state"], "failed", "{full}");
    assert!(full["error"].as_str().unwrap().contains("the disk is full"), "{full}");
    assert_eq!(left, 0);
}

#[test]
fn a_database_has_one_schedule() {
    let mut service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let ada = service.register("ada");
    let (project, app) = service.project_with_app(&ada, None);
    let backend = json!({"projectId": project, "appId": app, "name": "Backend"});
    service.call(Some(&ada), "svc_createBackendInstance", backend).ok();
    let of_app = json!({"appId": app});
    let call = |service: &Service, function: &str, params: &Value| {
        service.call(Some(&ada), function, params.clone())
    };
    let get = |service: &Service| call(service, "svc_getBackupSchedule", &of_app);
    assert_eq!(get(&service).refusal(), (404, 101));
    let unsaid = call(&service, "svc_scheduleBackups", &of_app);
    assert_eq!(unsaid.refusal(), (400, 142));
    assert!(unsaid.body["error"].as_str().unwrap().contains("cron"), "{}", unsaid.body);
    for dense in ["* * * * *", "0,5 3 * * *", "* 3 * * *"] {
        let params = json!({"appId": app, "cron": dense});
        assert_eq!(call(&service, "svc_scheduleBackups", &params).refusal(), (400, 142), "{dense}");
    }

    // Sixteen calls at once are all answered, and one schedule remains.
    let daily = json!({"appId": app, "cron": "30 3 * * *", "keep": 2});
    let ids: BTreeSet<String> = std::thread::scope(|threads| {
        let all = [(); 16].map(|()| {
            threads.spawn(|| call(&service, "svc_scheduleBackups", &daily).ok()["id"].to_string())
        });
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1, "{ids:?}");
    let schedule = get(&service).ok();
    assert_eq!((&schedule["database"], &schedule["keep"]), (&json!("sqlDb"), &json!(2)));

    // A day later the schedule makes a backup, which fails because nothing runs here. The schedule
    // continues.
    service.stop();
    service.set("SVC_CLOCK_AHEAD", "86400");
    service.boot();
    let backups = || call(&service, "svc_getBackups", &of_app).ok()["items"].clone();
    eventually("the backup is made", || backups()[0]["state"] == "failed");
    assert_eq!((&backups()[0]["scheduled"], &backups()[1]), (&json!(true), &Value::Null));
    let next = get(&service).ok()["nextAt"].clone();
    assert!(next.as_str() > schedule["nextAt"].as_str(), "{next}");

    let ended = call(&service, "svc_unscheduleBackups", &of_app).ok();
    assert_eq!(ended["deleted"], schedule["id"]);
    assert_eq!(call(&service, "svc_unscheduleBackups", &of_app).refusal(), (404, 101));
    assert_eq!(get(&service).refusal(), (404, 101));

    // Deleting an app deletes its schedule.
    call(&service, "svc_scheduleBackups", &daily).ok();
    call(&service, "deleteApp", &of_app).ok();
    assert_eq!(get(&service).refusal(), (404, 101));
}

#[test]
fn a_database_without_its_tools_makes_no_backup() {
    let Some(engine) = engine("a_database_without_its_tools_makes_no_backup") else { return };
    let service = engine.service(&[]);
    let template = template(
        &service,
        engine,
        json!([
            {"role": "sqlDb", "image": "toolbox", "volume": "/data",
             "database": {"engine": "postgresql", "name": "parse", "user": "svc"}},
            {"role": "server", "image": "web-server", "port": 8080, "healthCheck": {"http": "/health"}}
        ]),
    );
    let (ada, _, made) =
        made(&service, "svc_createBackendInstance", json!({"templateId": template}));
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let instance = until(&service, &ada, &made["id"], &["running", "failed"]);
    assert_eq!(instance["state"], "running", "{instance}");
    let app = &instance["appId"];
    let backup = call("svc_createSqlDbBackup", json!({"appId": app})).ok();
    let failed = finished(&service, &ada, &backup);
    assert_eq!(failed["state"], "failed");
    assert!(failed["error"].as_str().unwrap().contains("has no pg_dump"), "{failed}");
    assert_eq!(used(&service, &ada, None, "backups").0, 1, "it counts until it is deleted");
    let sql = call("svc_testSqlConnection", json!({"appId": app})).ok();
    assert_eq!((&sql["ok"], &sql["steps"][1]["name"]), (&json!(false), &json!("connect")), "{sql}");
}
