//! Requests to a backend in real containers: from the library of Parse, and during a deployment.

use crate::{
    instances::{backend, deployed, made, until},
    library,
    support::engine::{Installed, engine, template},
    support::{
        load::under_load,
        service::{Person, eventually},
    },
};
use reqwest::header::{HOST, SET_COOKIE};
use serde_json::{Value, json};

/// A server of a version with known advisories says so to members, to operators, to webhooks once, and in
/// `svc doctor`; each names the version to deploy.
fn is_outdated(
    service: &Installed,
    (ada, admin): (&Person, &Person),
    (webhook, app): (&Value, &Value),
    server: &Value,
) {
    let known = &server["outdated"];
    let advisories = known["advisories"].as_array().unwrap();
    let ids: Vec<_> = advisories.iter().map(|advisory| advisory["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"CVE-2026-100631"), "{known}");
    assert_eq!(known["better"], "9.10.1-alpha.13");

    let image = service.call(None, "getDockerImage", json!({"name": "parse-server"})).ok();
    let version = |name: &str| {
        let versions = image["versions"].as_array().unwrap().iter();
        versions.clone().find(|version| version["version"] == name).unwrap().clone()
    };
    assert_eq!(version("9.10.0")["advisories"], known["advisories"]);
    assert_eq!(version("9.10.1-alpha.13")["advisories"], Value::Null);

    let overview = service.call(Some(admin), "svc_admin_getOverview", json!({})).ok();
    let attention = overview["attention"].as_array().unwrap();
    let told = attention.iter().find(|entry| entry["reason"] == "instanceOutdated");
    assert!(told.unwrap()["detail"].as_str().unwrap().contains(ids[0]), "{overview}");

    let deliveries = || {
        let params = json!({"webhookId": webhook["id"]});
        let page = service.call(Some(ada), "svc_getWebhookDeliveries", params).ok();
        page["items"].as_array().unwrap().len()
    };
    eventually("it is told", || deliveries() == 1);

    let token = json!({"name": "doctor", "scopes": ["instance:read"], "appId": app});
    let token = service.with_token(ada, token).token;
    let app = app.as_str().unwrap();
    let settings = [("SVC_TOKEN", &*token), ("SVC_API_URL", &service.url), ("SVC_APP_ID", app)];
    let said = service.cli_with(&["doctor", "--json"], &settings, "").stdout;
    let said: Value = serde_json::from_slice(&said).unwrap();
    let mut findings = said["findings"].as_array().unwrap().iter();
    let finding = findings.find(|finding| finding["check"] == "image").unwrap();
    assert_eq!(finding["fix"], "deploy parse-server 9.10.1-alpha.13", "{said}");
}

#[test]
fn a_deployment_switches_without_a_failed_request_and_goes_back() {
    let Some(engine) = engine("a_deployment_switches_without_a_failed_request_and_goes_back")
    else {
        return;
    };
    let service = engine.service(&[]);
    let (ada, project, instance) = backend(&service);
    let app = &instance["appId"];
    let admin = service.administrator();
    let hook = json!({"organizationId": project["organizationId"], "url": "https://receiver.example/",
        "events": ["instance.outdated"]});
    let webhook = service.call(Some(&ada), "svc_createWebhook", hook).ok()["webhook"].clone();
    let image = service.call(None, "getDockerImage", json!({"name": "parse-server"})).ok();
    for version in ["2", "sick"] {
        let params = json!({"imageId": image["id"], "version": version});
        let image = service.call(Some(&admin), "addDockerImageVersion", params).ok();
        let added = image["versions"].as_array().unwrap().last().unwrap().clone();
        assert!(added["digest"].as_str().unwrap().starts_with("sha256:"), "{added}");
    }
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params);
    let version = || {
        let params = json!({"appId": app, "functionName": "version"});
        call("svc_runCloudFunction", params).ok()
    };
    let deploy = |version: &str| {
        let source = json!({"imageId": image["id"], "version": version});
        let made = call("triggerDeployment", json!({"appId": app, "source": source})).ok();
        deployed(&service, &ada, &made)
    };
    let server = || {
        let read = call("svc_getInstanceDetails", json!({"appId": app})).ok();
        let services = read["services"].as_array().unwrap().iter();
        services.clone().find(|service| service["role"] == "server").unwrap().clone()
    };
    assert_eq!(server()["outdated"], Value::Null, "nothing is known against the shipped version");
    let first = deploy("9.10.0");
    assert_eq!((&first["state"], version()), (&json!("live"), json!("1")), "{first}");
    is_outdated(&service, (&ada, &admin), (&webhook, app), &server());

    // The proxy is under constant load during a deployment and its rollback.
    let url = format!("{}/parse/functions/version", instance["url"].as_str().unwrap());
    let request = |client: &reqwest::blocking::Client| {
        let request = client.post(&url).body("{}").header("Content-Type", "application/json");
        request.header("X-Parse-Application-Id", app.as_str().unwrap())
    };
    under_load(request, || {
        let second = deploy("2");
        assert_eq!((&second["state"], version()), (&json!("live"), json!("2")), "{second}");
        assert_eq!(second["previousDeploymentId"], first["id"]);
        let before = call("getDeployment", json!({"deploymentId": first["id"]})).ok();
        assert_eq!(before["state"], "superseded");
        assert_eq!(server()["outdated"], Value::Null, "nothing is known against the second");

        let back = call("rollbackDeployment", json!({"appId": app})).ok();
        assert_eq!(back["rollbackOf"], second["id"]);
        let back = deployed(&service, &ada, &back);
        assert_eq!((&back["state"], version()), (&json!("live"), json!("1")), "{back}");
        let taken_back = call("getDeployment", json!({"deploymentId": second["id"]})).ok();
        assert_eq!(taken_back["state"], "rolledBack");
    });

    // A deployment whose server does not become healthy can be cancelled. Until then the next one
    // waits.
    let source = json!({"imageId": image["id"], "version": "sick"});
    let sick = call("triggerDeployment", json!({"appId": app, "source": source})).ok();
    let next = call("triggerDeployment", json!({"appId": app, "source": source})).ok();
    let state = |deployment: &Value| {
        let params = json!({"deploymentId": deployment["id"]});
        call("getDeployment", params).ok()["state"].clone()
    };
    eventually("it comes up", || state(&sick) == "verifying");
    assert_eq!(state(&next), "queued", "one at a time");
    call("cancelDeployment", json!({"deploymentId": next["id"]})).ok();
    assert_eq!(state(&next), "cancelled");
    call("cancelDeployment", json!({"deploymentId": sick["id"]})).ok();
    assert_eq!(deployed(&service, &ada, &sick)["state"], "cancelled");
    assert_eq!(version(), "1", "the old one serves");
    assert_eq!(
        call("cancelDeployment", json!({"deploymentId": first["id"]})).refusal(),
        (409, 119)
    );
    // Of the instance are left two containers, a network and a volume.
    service.has_objects(instance["id"].as_str(), 4);

    // A deprecated version is refused with the reason.
    let reason = json!({"imageId": image["id"], "version": "2", "reason": "it greets wrongly"});
    service.call(Some(&admin), "deprecateDockerImageVersion", reason).ok();
    let source = json!({"imageId": image["id"], "version": "2"});
    let refused = call("triggerDeployment", json!({"appId": app, "source": source}));
    assert_eq!(refused.refusal(), (409, 119));
    assert!(refused.body["error"].as_str().unwrap().contains("it greets wrongly"));
}

#[test]
fn the_parse_library_reaches_a_backend_through_the_service() {
    let test = "the_parse_library_reaches_a_backend_through_the_service";
    let Some(engine) = engine(test) else { return };
    if !library::installed(test) {
        return;
    }
    let service = engine.service(&[]);
    let (_, _, instance) = backend(&service);
    let script = "
        const Parse = require('parse/node');
        (async () => {
            Parse.initialize(process.env.APP_ID);
            Parse.serverURL = process.env.URL + '/parse';
            Parse.User.enableUnsafeCurrentUser();
            const user = await Parse.User.signUp('ada', 'correct horse');
            const name = await Parse.Cloud.run('whoami');
            const found = await new Parse.Query(Parse.User).get(user.id);
            await Parse.User.logOut();
            const hello = await Parse.Cloud.run('hello', { name: found.get('username') });
            console.log(JSON.stringify([name, hello]));
        })().catch((e) => { console.error(e); process.exit(1); });";
    let run = library::run(
        std::process::Command::new("node")
            .args(["-e", script])
            .env("APP_ID", instance["appId"].as_str().unwrap())
            .env("URL", instance["url"].as_str().unwrap()),
    );
    let printed = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{printed}{}", String::from_utf8_lossy(&run.stderr));
    assert!(printed.contains("Hello, ada"), "{printed}");
}

#[test]
fn an_instance_sees_the_client_that_the_nearest_proxy_names() {
    let test = "an_instance_sees_the_client_that_the_nearest_proxy_names";
    let Some(engine) = engine(test) else { return };
    let service = engine.service(&[("SVC_TRUSTED_PROXIES", "127.0.0.1")]);
    let env = json!({"PARSE_SERVER_MASTER_KEY_IPS": "192.0.0.8,203.0.113.9"});
    let (ada, _, made) = made(&service, "svc_createBackendInstance", json!({"env": env}));
    let instance = until(&service, &ada, &made["id"], &["running", "failed"]);
    assert_eq!(instance["state"], "running", "{instance}");
    let app = instance["appId"].as_str().unwrap();
    let secrets = service.call(Some(&ada), "svc_getInstanceSecrets", json!({"appId": app})).ok();
    let master_key = secrets["secrets"]["master_key"].as_str().unwrap();
    let url = format!("{}/parse/users", instance["url"].as_str().unwrap());
    let as_master = |forwarded: &[&str]| {
        let request = service.http.get(&url).header("X-Parse-Application-Id", app);
        let request = request.header("X-Parse-Master-Key", master_key);
        let lines = forwarded.iter();
        let request = lines.fold(request, |sent, line| sent.header("X-Forwarded-For", *line));
        request.send().unwrap().status().as_u16()
    };
    // A proxy adds its client to the line that came, or adds a line.
    for forged in [&["192.0.0.8", "198.51.100.7"][..], &["192.0.0.8, 198.51.100.7"]] {
        assert_eq!(as_master(forged), 403, "{forged:?}");
    }
    for named in [&["198.51.100.7", "203.0.113.9"][..], &["198.51.100.7, 203.0.113.9"]] {
        assert_eq!(as_master(named), 200, "{named:?}");
    }
}

#[test]
fn a_cookie_of_an_instance_reaches_no_other() {
    let Some(engine) = engine("a_cookie_of_an_instance_reaches_no_other") else { return };
    let mut service = engine.service(&[]);
    let server = json!({"role": "server", "image": "web-server", "port": 8080,
        "healthCheck": {"http": "/health"}});
    let template = template(&service, engine, json!([server]));
    let (ada, _, made) =
        made(&service, "svc_createBackendInstance", json!({"templateId": template}));
    let running = until(&service, &ada, &made["id"], &["running", "failed"]);
    assert_eq!(running["state"], "running", "{running}");
    let path = format!("/instances/{}", running["appId"].as_str().unwrap());
    // Its server asks for the whole host, and for the hosts above it.
    let cookies = |service: &Installed, host: Option<&str>, path: &str| -> Vec<String> {
        let mut cookies = Vec::new();
        eventually("its server answers", || {
            let mut request = service.http.get(format!("{}{path}", service.url));
            if let Some(host) = host {
                request = request.header(HOST, host);
            }
            let answer = request.send().unwrap();
            let sent = answer.headers().get_all(SET_COOKIE).iter();
            cookies = sent.map(|cookie| cookie.to_str().unwrap().to_owned()).collect();
            answer.status() == 200
        });
        cookies
    };
    assert_eq!(cookies(&service, None, &path), [format!("a=1; Path={path}")]);

    service.stop();
    service.set("SVC_INSTANCE_DOMAIN", "apps.localhost");
    service.boot();
    let named = until(&service, &ada, &made["id"], &["running"]);
    let host = named["url"].as_str().unwrap().trim_start_matches("http://");
    assert_eq!(cookies(&service, Some(host), "/"), ["a=1; Path=/"], "a host of its own");
    assert_eq!(cookies(&service, None, &path), Vec::<String>::new(), "no origin of its own");
}
