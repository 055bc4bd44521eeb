//! The view of the platform's administrators, and the standing of the master key.

use crate::support::service::{Answer, Person, Service};
use serde_json::{Value, json};

fn open() -> Service {
    Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise"), ("SVC_LOG", "info")])
}

/// All items of a list, in pages of two.
fn all(call: impl Fn(Value) -> Answer, params: Value) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..1000 {
        let mut params = params.clone();
        params["limit"] = json!(2);
        if !cursor.is_null() {
            params["cursor"] = cursor;
        }
        let page = call(params).ok();
        let here = page["items"].as_array().unwrap();
        assert!(here.len() <= 2, "{page}");
        items.extend(here.clone());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            return items;
        }
    }
    panic!("the list does not end: {items:?}");
}

fn ids(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[test]
fn an_administrator_finds_people_organizations_and_projects() {
    let service = open();
    let admin = service.administrator();
    let people = ["ada", "bob", "eve"].map(|name| service.register(name));
    let (ada, bob) = (&people[0], &people[1]);
    let acme = service.call(Some(ada), "createOrganization", json!({"name": "Acme"})).ok();
    let (project, _) = service.project_with_app(bob, None);
    let ask = |function: &'static str| {
        let (service, admin) = (&service, &admin);
        move |params: Value| service.call(Some(admin), function, params)
    };

    let users = all(ask("svc_admin_getUsers"), json!({}));
    assert_eq!(
        ids(&users),
        [&people[2].id, &people[1].id, &people[0].id, &admin.id].map(String::as_str),
        "newest first"
    );
    for query in ["bob@example.com", "BOB", &bob.id, "ob@ex"] {
        let found = all(ask("svc_admin_getUsers"), json!({"query": query}));
        assert_eq!(ids(&found), [bob.id.as_str()], "{query}");
        assert_eq!(found[0]["tier"], "enterprise");
    }
    assert!(all(ask("svc_admin_getUsers"), json!({"query": "nobody"})).is_empty());

    let organizations = all(ask("svc_admin_getOrganizations"), json!({}));
    assert_eq!(organizations.len(), 5, "each personal one, and Acme: {organizations:?}");
    let found = all(ask("svc_admin_getOrganizations"), json!({"query": "acme"}));
    assert_eq!(found, std::slice::from_ref(&acme));
    let projects = all(ask("svc_admin_getProjects"), json!({"query": "shop"}));
    assert_eq!(ids(&projects), [project.as_str().unwrap()]);

    // Deleted resources do not appear here.
    service.call(Some(bob), "svc_deleteProject", json!({"projectId": project})).ok();
    assert!(all(ask("svc_admin_getProjects"), json!({})).is_empty());
    service.call(Some(ada), "deleteOrganization", json!({"organizationId": acme["id"]})).ok();
    assert!(all(ask("svc_admin_getOrganizations"), json!({"query": "acme"})).is_empty());

    // All actors, in pages.
    let total = ask("svc_admin_getActors")(json!({"kind": "account"})).ok();
    let actors = all(ask("svc_admin_getActors"), json!({"kind": "account"}));
    assert!(actors.len() >= 3, "{actors:?}");
    assert_eq!(total["total"], actors.len());
    let mut different = ids(&actors);
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), actors.len(), "{actors:?}");
}

#[test]
fn the_audit_log_is_searched_and_knows_of_downloads() {
    let service = open();
    let admin = service.administrator();
    let ada = service.register("ada");
    let (_, app) = service.project_with_app(&ada, None);
    let artifact = service.upload(&ada, &app, "sample.apk", "1.4.2")["id"].clone();
    let params = json!({"artifactId": artifact});
    service.call(Some(&ada), "svc_getArtifactDownloadUrl", params).ok();
    let log = |params: Value| {
        all(|params| service.call(Some(&admin), "svc_admin_getAuditLog", params), params)
    };
    crate::support::service::eventually("the download is in the log", || {
        log(json!({"function": "svc_getArtifactDownloadUrl"})).len() == 1
    });
    let download = log(json!({"function": "svc_getArtifactDownloadUrl"}))[0].clone();
    assert_eq!(
        (&download["userId"], &download["resource"], &download["via"]),
        (&json!(ada.id), &artifact, &json!("session"))
    );
    let of_app = log(json!({"resource": app}));
    assert!(of_app.iter().any(|event| event["function"] == "createApp"), "{of_app:?}");
    assert!(of_app.iter().all(|event| event["resource"] == app), "{of_app:?}");
    let whole = log(json!({}));
    let since = &whole[1]["at"];
    let recent = log(json!({"since": since}));
    assert!(recent.len() >= 2 && recent.len() < whole.len(), "{recent:?}");
    assert!(recent.iter().all(|event| event["at"].as_str() >= since.as_str()), "{recent:?}");
    let both = log(json!({"userId": ada.id, "function": "createApp", "resource": app}));
    assert_eq!(both.len(), 1, "{both:?}");
    assert!(log(json!({"since": "2999-01-31T12:00:00.000Z"})).is_empty());
}

#[test]
fn the_master_key_alone_stands_for_nobody_and_sees_all() {
    let service = open();
    let (ada, bob) = (service.register("ada"), service.register("bob"));
    let (project, app) = service.project_with_app(&ada, None);
    let organization =
        service.call(Some(&ada), "svc_getProject", json!({"projectId": project})).ok();
    let organization = organization["organizationId"].clone();
    service.project_with_app(&bob, None);
    service.with_token(&ada, json!({"name": "ci", "scopes": ["artifact:upload"], "appId": app}));
    let master = |function: &str, params: Value| {
        let request = service.request(&service.http, function, &params);
        let request = request.header("X-Backend-Master-Key", service.master_key());
        Service::answer(request.send().unwrap()).unwrap()
    };

    for (function, params) in [
        ("createOrganization", json!({"name": "Acme"})),
        ("svc_createProject", json!({"name": "Shop"})),
        ("svc_createDeployToken", json!({"name": "ci", "scopes": ["artifact:upload"]})),
        ("getCurrentUser", json!({})),
        ("updateProfile", json!({"name": "Nobody"})),
        (
            "changePassword",
            json!({"currentPassword": "correct horse", "newPassword": "another horse"}),
        ),
        ("logout", json!({})),
        ("svc_getSessions", json!({})),
        ("acceptInvitation", json!({"token": "svc_inv_x"})),
    ] {
        let refused = master(function, params);
        assert_eq!(refused.refusal(), (401, 119), "{function}");
        let error = refused.body["error"].as_str().unwrap();
        assert!(error.contains("master key") && error.contains("sign in"), "{function}: {error}");
    }

    // Lists are complete: there are two projects, and one organization has one of them.
    let list = |function: &'static str, params: Value| all(|p| master(function, p), params);
    assert_eq!(list("svc_getProjects", json!({})).len(), 2);
    let one = list("svc_getProjects", json!({"organizationId": organization}));
    assert_eq!(ids(&one), [project.as_str().unwrap()]);
    assert_eq!(list("listOrganizations", json!({})).len(), 3);
    assert_eq!(list("svc_getDeployTokens", json!({})).len(), 1);

    // A project that the master key creates has no creator. Members of the organization reach it.
    let params = json!({"name": "Made for you", "organizationId": organization});
    let made = master("svc_createProject", params).ok();
    assert_eq!(made["ownerId"], Value::Null);
    let delete = |who: &Person| {
        service.call(Some(who), "svc_deleteProject", json!({"projectId": made["id"]}))
    };
    assert_eq!(delete(&bob).refusal(), (404, 101));
    delete(&ada).ok();

    // The document offers the key only for functions that accept it.
    let document: Value =
        service.http.get(format!("{}/openapi.json", service.url)).send().unwrap().json().unwrap();
    let offers = |function: &str| {
        let ways = &document["paths"][format!("/functions/{function}")]["post"]["security"];
        ways.as_array().unwrap().iter().any(|way| way.get("masterKey").is_some())
    };
    assert!(offers("svc_getProjects") && offers("svc_createProject"));
    for function in ["createOrganization", "svc_createDeployToken", "updateProfile", "logout"] {
        assert!(!offers(function), "{function}");
    }
}

#[test]
fn a_proxy_that_nobody_told_of_is_noticed_once() {
    let mut service = open();
    for _ in 0..3 {
        let request = service.request(&service.http, "getTemplates", &json!({}));
        let request = request.header("X-Forwarded-For", "203.0.113.9");
        assert_eq!(Service::answer(request.send().unwrap()).unwrap().status, 200);
    }
    // What it logs is whole when it has stopped.
    service.stop();
    let warned = service.log().matches("SVC_TRUSTED_PROXIES").count();
    assert_eq!(warned, 1, "{}", service.log());
}

#[test]
fn metrics_are_for_operators_and_strangers_ask_within_their_rate_limit() {
    let settings =
        [("SVC_METRICS_TOKEN", "a token of tests"), ("SVC_TRUSTED_PROXIES", "127.0.0.5")];
    let service = Service::start_with(&settings);
    let address = |path: &str| format!("{}{path}", service.url);
    let stranger = Service::client_at([127, 0, 0, 2]);
    let refused = Service::answer(stranger.get(address("/metrics")).send().unwrap()).unwrap();
    assert_eq!(refused.refusal(), (401, 119));
    let with = |token: &str| stranger.get(address("/metrics")).bearer_auth(token).send().unwrap();
    assert_eq!(with("another token").status(), 401);
    assert_eq!(with("a token of tests").status(), 200);
    let forwarded = service.http.get(address("/metrics")).header("X-Forwarded-For", "203.0.113.9");
    assert_eq!(forwarded.send().unwrap().status(), 401, "a proxy asks for somebody else");

    let asked = |client: &reqwest::blocking::Client, path: &str| {
        let answers = (0..80).map(|_| client.get(address(path)).send().unwrap().status());
        answers.filter(|status| *status == 429).count()
    };
    assert!(asked(&stranger, "/readyz") > 0);
    let of_monitor = asked(&service.http, "/readyz");
    assert_eq!(of_monitor, 0, "a monitor of the operator asks as often as it likes");
    let of_balancer = asked(&Service::client_at([127, 0, 0, 5]), "/readyz");
    assert_eq!(of_balancer, 0, "a balancer asks each node each second");
    for (last, path) in [(3, "/install/x"), (4, "/install/x/manifest.plist")] {
        assert!(asked(&Service::client_at([127, 0, 0, last]), path) > 0, "{path}");
    }
}

#[test]
fn readiness_does_not_say_where_the_engine_is() {
    let mut service = Service::start_with(&[("SVC_DOCKER_HOST", "unix:///nowhere/x.sock")]);
    let ready = service.http.get(format!("{}/readyz", service.url)).send().unwrap();
    let ready = ready.text().unwrap();
    assert!(ready.contains("the container engine does not answer"), "{ready}");
    assert!(!ready.contains("nowhere"), "{ready}");
    service.stop();
    assert!(service.log().contains("/nowhere/x.sock"), "{}", service.log());
}

#[test]
fn the_log_warns_of_settings_that_strangers_may_use() {
    let docker = ("SVC_DOCKER_HOST", "tcp://127.0.0.1:1");
    let public = ("SVC_PUBLIC_URL", "https://api.example.net");
    let domain = ("SVC_INSTANCE_DOMAIN", "apps.example.net");
    let closed = ("SVC_REGISTRATION", "closed");
    let proxy = ("SVC_TRUSTED_PROXIES", "127.0.0.1");
    let dashboard = ("SVC_DASHBOARD_URL", "https://svc.example.net");
    for (settings, warnings) in [
        (vec![], [0, 0, 0]),
        (vec![docker, public], [1, 0, 1]),
        (vec![proxy], [0, 0, 1]),
        (vec![dashboard], [0, 0, 1]),
        (vec![public, closed], [0, 1, 0]),
        (vec![public, domain], [0, 0, 0]),
    ] {
        let mut service = Service::start_with(&settings);
        service.stop();
        let log = service.log();
        let words = ["without TLS", "share the origin", "have no origin"];
        let warned = words.map(|words| log.matches(words).count());
        assert_eq!(warned, warnings, "{settings:?}: {log}");
    }
}

#[test]
fn a_shown_secret_is_in_the_audit_log_before_the_reply() {
    let mut service = open();
    let ada = service.register("ada");
    let (project, app) = service.project_with_app(&ada, None);
    let repository = json!({"appId": app, "url": "https://git.example.com/shop.git"});
    service.call(Some(&ada), "svc_connectRepository", repository).ok();
    let backend = json!({"projectId": project, "appId": app, "name": "Backend"});
    service.call(Some(&ada), "svc_createBackendInstance", backend).ok();
    for (function, of) in [("svc_getRepositoryWebhook", "rep_"), ("svc_getInstanceSecrets", "ins_")]
    {
        service.call(Some(&ada), function, json!({"appId": app})).ok();
        service.kill();
        service.boot();
        let params = json!({"function": function});
        let log = service.call(Some(&ada), "svc_getAuditLog", params).ok();
        assert_eq!(log["items"].as_array().unwrap().len(), 1, "{log}");
        let shown = log["items"][0]["resource"].as_str().unwrap();
        assert!(shown.starts_with(of), "{log}");
    }
}
