//! Market servers in real containers: a Vendure with PostgreSQL, dashboard and storefront, built from
//! the shipped recipes.

use crate::{
    backups::{finished, psql},
    host_names::{host, status},
    instances::{deployed, made, until},
    support::{
        browser::Browser,
        engine::{Installed, engine},
        load::under_load,
        service::eventually,
    },
};
use serde_json::{Value, json};

#[test]
fn a_shop_comes_up_with_nothing_prepared() {
    let Some(engine) = engine("a_shop_comes_up_with_nothing_prepared") else {
        return;
    };
    // The base image of the recipes is not there yet.
    let base = format!("{}/late-base:1", engine.registry);
    let mut service = engine.service(&[("SVC_RECIPE_BASE_IMAGE", &base)]);
    let admin = service.administrator();
    let (ada, _, made) = made(&service, "svc_deployMarketServer", json!({}));
    let (id, app) = (&made["id"], &made["appId"]);
    assert_eq!((&made["kind"], made["services"].as_array().unwrap().len()), (&json!("market"), 2));
    let failed = until(&service, &ada, id, &["running", "failed"]);
    let why = failed["lastError"].as_str().unwrap();
    assert!(why.starts_with("server: its image was not built, see the log of job "), "{why}");
    assert!(why.contains(&base), "{why}");

    // It is there now. The service is killed while it builds, and goes on.
    engine.publish("recipe-base", "late-base", "1");
    service.call(Some(&ada), "svc_startMarketServer", json!({"appId": app})).ok();
    let jobs = |service: &Installed| {
        let jobs = service.call(Some(&admin), "listBuildJobs", json!({})).ok()["items"].clone();
        jobs.as_array().unwrap().iter().map(|job| job["state"].clone()).collect::<Vec<_>>()
    };
    eventually("it is being built", || jobs(&service) == ["building", "failed"]);
    let waiting = service.call(Some(&ada), "svc_getMarketServerStatus", json!({"appId": app})).ok();
    let waiting = &waiting["instance"];
    assert_eq!(waiting["state"], "restarting", "{waiting}");
    service.kill();
    service.boot();
    let running = until(&service, &ada, id, &["running", "failed"]);
    let log = || {
        let newest = &service.call(Some(&admin), "listBuildJobs", json!({})).ok()["items"][0];
        service.call(Some(&admin), "getBuildJobLogs", json!({"jobId": newest["id"]})).ok()
    };
    assert_eq!(running["state"], "running", "{}: {}", running["lastError"], log());
    assert_eq!(running["lastError"], Value::Null);
    assert_eq!(jobs(&service), ["succeeded", "failed"]);
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let shop = format!("{}/shop-api", running["url"].as_str().unwrap());
    let asked = service.http.post(&shop).json(&json!({"query": "{activeChannel{code}}"}));
    let asked: Value = asked.send().unwrap().json().unwrap();
    assert_eq!(asked["data"]["activeChannel"]["code"], "__default_channel__", "{asked}");

    call("svc_deployMarketDashboard", json!({"appId": app})).ok();
    until(&service, &ada, id, &["running"]);
    call("svc_deployMarketStorefront", json!({"appId": app, "env": {"SHOP_NAME": "Ada's"}})).ok();
    let whole = until(&service, &ada, id, &["running", "failed"]);
    let roles: Vec<_> = whole["services"].as_array().unwrap().iter().map(|s| &s["role"]).collect();
    assert_eq!(roles, ["sqlDb", "server", "dashboard", "storefront"], "{whole}");
    for service_of in &whole["services"].as_array().unwrap()[2..] {
        let page = service.http.get(format!("{}/", service_of["url"].as_str().unwrap()));
        let page = page.send().unwrap();
        assert_eq!(page.status(), 200, "{service_of}");
        assert!(page.text().unwrap().contains("<html"), "{service_of}");
    }
    let shop = whole["services"][3]["url"].as_str().unwrap();
    let page = service.http.get(format!("{shop}/")).send().unwrap().text().unwrap();
    assert!(page.contains("Ada&#39;s") && page.contains("Nothing is for sale yet"), "{page}");
    // The dashboard finds its files below its public path.
    let dashboard = whole["services"][2]["url"].as_str().unwrap();
    let page = service.http.get(format!("{dashboard}/")).send().unwrap().text().unwrap();
    let base = dashboard.strip_prefix(&service.url).unwrap();
    assert!(page.contains(&format!("<base href=\"{base}/\"")), "{page}");

    // A storefront that does not start is left out, and the server keeps running.
    let broken = json!({"NODE_OPTIONS": "--require=/nowhere.js"});
    let status = || call("svc_getMarketServerStatus", json!({"appId": app})).ok();
    call("svc_deployMarketStorefront", json!({"appId": app, "env": broken})).ok();
    assert_eq!(call("svc_deployMarketStorefront", json!({"appId": app})).refusal(), (409, 119));
    eventually("the new one is given up", || status()["services"][3]["givenUp"].is_string());
    assert_eq!(status()["services"][3]["env"], json!({"SHOP_NAME": "Ada's"}), "the old one serves");

    // A second call makes the storefront anew, with the given variables.
    eventually("nothing else is on its way", || {
        call("svc_deployMarketStorefront", json!({"appId": app})).status == 200
    });
    eventually("the new one serves", || {
        let status = status();
        status["services"][3]["givenUp"].is_null() && status["services"][3]["health"] == "healthy"
    });
    assert_eq!(status()["services"][3]["env"], json!({"SHOP_NAME": "Ada's"}));
    eventually("nothing else is on its way", || {
        let params = json!({"appId": app, "env": {}});
        call("svc_deployMarketStorefront", params).status == 200
    });
    eventually("the new one serves", || {
        let status = call("svc_getMarketServerStatus", json!({"appId": app})).ok();
        status["services"][3]["env"] == json!({}) && status["services"][3]["health"] == "healthy"
    });
    let sql = call("svc_testSqlConnection", json!({"appId": app})).ok();
    assert_eq!((&sql["ok"], &sql["databases"]), (&json!(true), &json!(["postgres", "vendure"])));
    let stopped = call("svc_stopMarketServer", json!({"appId": app, "wait": true})).ok();
    assert_eq!(stopped["state"], "stopped", "{stopped}");
    call("svc_startMarketServer", json!({"appId": app})).ok();
    until(&service, &ada, id, &["running"]);

    // Deleting the app deletes all of its services, and keeps the volume of its database.
    let gone = call("deleteApp", json!({"appId": app})).ok();
    assert_eq!(gone["keptInstances"], json!([id]), "{gone}");
    service.has_objects(None, 1);
}

#[test]
fn a_market_server_is_deployed_without_a_failed_request_and_its_data_comes_back() {
    let test = "a_market_server_is_deployed_without_a_failed_request_and_its_data_comes_back";
    let Some(engine) = engine(test) else { return };
    let service = engine.service(&[]);
    let (ada, _, made) = made(&service, "svc_deployMarketServer", json!({}));
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let app = &made["appId"];
    let instance = until(&service, &ada, &made["id"], &["running", "failed"]);
    assert_eq!(instance["state"], "running", "{instance}");
    let logs = call("svc_getInstanceLogs", json!({"appId": app, "service": "server"})).ok();
    assert!(!logs["lines"].as_array().unwrap().is_empty());
    let metrics = call("svc_getServerMetrics", json!({"instanceId": made["id"]})).ok();
    assert!(metrics["current"]["memoryBytes"].as_u64() > Some(1 << 20), "{metrics}");

    let sql = |sql: &str| psql(&instance, "vendure", sql);
    let channels = "select count(*) from channel where code = '__default_channel__'";
    let backup = call("svc_createSqlDbBackup", json!({"appId": app, "verify": true})).ok();
    let ready = finished(&service, &ada, &backup);
    assert_eq!(ready["verification"]["state"], "succeeded", "{ready}");
    sql("update channel set code = 'lost'");
    assert_eq!(sql(channels), "0");
    call("svc_restoreBackup", json!({"backupId": backup["id"]})).ok();
    let restored = finished(&service, &ada, &backup);
    assert_eq!(restored["restore"]["state"], "succeeded", "{restored}");
    until(&service, &ada, &made["id"], &["running", "failed"]);
    assert_eq!(sql(channels), "1");

    let shop = format!("{}/shop-api", instance["url"].as_str().unwrap());
    let ask = |client: &reqwest::blocking::Client| {
        client.post(&shop).json(&json!({"query": "{activeChannel{code}}"}))
    };
    let deploy = |env: Value| {
        let source = json!({"templateVersion": "1.1.0"});
        let params = json!({"appId": app, "target": "marketServer", "source": source, "env": env});
        deployed(&service, &ada, &call("triggerDeployment", params).ok())
    };
    under_load(ask, || {
        let first = deploy(json!({"NODE_OPTIONS": "--no-deprecation"}));
        assert_eq!(first["state"], "live", "{first}");
        assert_eq!(deploy(json!({"NODE_OPTIONS": "--trace-warnings"}))["state"], "live");
        let sick = deploy(json!({"NODE_OPTIONS": "--require=/nowhere.js"}));
        assert_eq!(sick["state"], "failed", "{sick}");
        let back = call("rollbackDeployment", json!({"appId": app})).ok();
        assert_eq!(deployed(&service, &ada, &back)["state"], "live");
    });
    let status = call("svc_getMarketServerStatus", json!({"appId": app})).ok();
    assert_eq!(status["services"][1]["env"], json!({"NODE_OPTIONS": "--no-deprecation"}));
}

#[test]
fn a_market_server_goes_on_without_a_dashboard_that_does_not_come_up() {
    let test = "a_market_server_goes_on_without_a_dashboard_that_does_not_come_up";
    let Some(engine) = engine(test) else { return };
    let service = engine.service(&[("SVC_INSTANCE_DOMAIN", "apps.localhost")]);
    let (ada, _, made) = made(&service, "svc_deployMarketServer", json!({}));
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    until(&service, &ada, &made["id"], &["running"]);
    let broken = json!({"NODE_OPTIONS": "--require=/nowhere.js"});
    let params = json!({"appId": made["appId"], "env": broken});
    let adding = call("svc_deployMarketDashboard", params).ok();
    assert_eq!(adding["state"], "running", "the shop goes on: {adding}");
    assert_eq!(adding["services"][2]["state"], "missing", "{adding}");
    let degraded = until(&service, &ada, &made["id"], &["degraded", "failed"]);
    assert_eq!(degraded["state"], "degraded", "{degraded}");
    assert!(degraded["lastError"].as_str().unwrap().contains("left out"), "{degraded}");
    assert_eq!(status(&service, &host(&degraded["url"]), "/health"), 200);
    let mended = json!({"appId": made["appId"], "env": {}});
    call("svc_deployMarketDashboard", mended).ok();
    let running = until(&service, &ada, &made["id"], &["running"]);

    // It has a host name of its own, and asks the shop at another one.
    let Some(browser) = Browser::start(test) else { return };
    let secrets = json!({"appId": made["appId"], "kind": "market"});
    let secrets = call("svc_getInstanceSecrets", secrets).ok();
    let password = secrets["secrets"]["superadmin_password"].as_str().unwrap();
    browser.open(running["services"][2]["url"].as_str().unwrap());
    browser.fill("textbox", "Username", "superadmin");
    browser.fill("textbox", "Password", password);
    browser.click("button", "Log in");
    browser.says("Latest orders");
}
