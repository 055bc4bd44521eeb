//! Images and templates: who sees them, and which of their parts never change.

use crate::support::service::{Person, Service};
use serde_json::{Value, json};

#[test]
fn templates_are_drafted_published_and_never_change_behind_anybody() {
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let (admin, ada) = (service.administrator(), service.register("ada"));
    let call = |function: &str, params: Value| service.call(Some(&admin), function, params);
    let anyone = |function: &str, params: Value| service.call(None, function, params);
    let shipped = anyone("getTemplate", json!({"slug": "parse-server-postgresql"})).ok();
    assert_eq!(
        (&shipped["status"], &shipped["currentVersion"]),
        (&json!("published"), &json!("1.0.2"))
    );
    let services = shipped["versions"][0]["services"].clone();

    let mine = json!({"name": "Mine", "slug": "mine", "kind": "backend", "category": "own", "tags": ["sql", "sql"]});
    let made = call("createTemplate", mine.clone()).ok();
    assert_eq!((&made["status"], &made["tags"]), (&json!("draft"), &json!(["sql"])));
    assert_eq!(call("createTemplate", mine).refusal(), (409, 137));
    let id = &made["id"];
    assert_eq!(anyone("getTemplate", json!({"slug": "mine"})).refusal(), (404, 101));
    let publish = json!({"templateId": id, "status": "published"});
    assert_eq!(
        call("updateTemplateStatus", publish.clone()).refusal(),
        (409, 119),
        "no version yet"
    );

    // Contradictions are reported for each field.
    let wrong = json!([
        {"role": "server", "imageId": services[0]["imageId"], "imageVersion": "99",
         "env": {"A": "${secret.}"}, "healthCheck": {"http": "/health"}},
        {"role": "sqlDb", "imageId": services[0]["imageId"], "imageVersion": "15", "port": 5432},
        {"role": "storefront", "imageId": services[0]["imageId"], "imageVersion": "15", "port": 1}
    ]);
    let wrong = json!({"templateId": id, "version": "1.0.0", "services": wrong});
    let refused = call("addTemplateDockerVersion", wrong);
    assert_eq!(refused.refusal(), (400, 142));
    let fields = refused.body["details"].as_array().unwrap().iter();
    let fields: Vec<_> = fields.map(|problem| problem["field"].as_str().unwrap()).collect();
    for field in [
        "services[0].imageVersion",
        "services[0].port",
        "services[0].healthCheck",
        "services[0].env.A",
        "services[1].port",
        "services[1].database",
        "services[1].volume",
        "services[2].role",
    ] {
        assert!(fields.contains(&field), "{field} in {fields:?}");
    }

    let version =
        |version: &str| json!({"templateId": id, "version": version, "services": services});
    call("addTemplateDockerVersion", version("1.0.0")).ok();
    call("addTemplateDockerVersion", version("2.0.0")).ok();
    assert_eq!(call("addTemplateDockerVersion", version("1.0.0")).refusal(), (409, 137));
    // Those who maintain templates try a draft; nobody else finds it.
    let try_it = |who: &Person| {
        let project = service.call(Some(who), "svc_createProject", json!({"name": "Trial"})).ok();
        let wanted = json!({"projectId": project["id"], "name": "Trial", "templateId": id});
        service.call(Some(who), "svc_createBackendInstance", wanted)
    };
    assert_eq!(try_it(&ada).refusal(), (404, 101));
    assert_eq!(try_it(&admin).ok()["templateVersion"], "1.0.0");
    call("updateTemplateStatus", publish).ok();
    let seen = anyone("getTemplate", json!({"slug": "mine"})).ok();
    assert_eq!(seen["currentVersion"], "1.0.0", "the first one, until somebody says otherwise");
    call("updateTemplateVersion", json!({"templateId": id, "version": "2.0.0"})).ok();
    let unknown = json!({"templateId": id, "version": "3.0.0"});
    assert_eq!(call("updateTemplateVersion", unknown).refusal(), (404, 101));

    // Pricing and visibility.
    for pricing in [json!({"model": "free", "amount": 1}), json!({"model": "oneTime", "amount": 1})]
    {
        let params = json!({"templateId": id, "pricing": pricing});
        assert_eq!(call("updateTemplatePricing", params).refusal(), (400, 142), "{pricing}");
    }
    let much =
        json!({"model": "subscription", "planCode": "PLN_a", "amount": 1, "currency": "EUR"});
    let refused = call("updateTemplatePricing", json!({"templateId": id, "pricing": much}));
    let details = refused.body["details"].as_array().unwrap();
    let fields: Vec<_> = details.iter().map(|it| it["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["pricing.amount", "pricing.currency"], "{}", refused.body);
    let featured = json!({"templateId": id, "featured": false});
    assert_eq!(call("updateTemplatePricing", featured).ok()["pricing"], json!({"model": "free"}));
    let once = json!({"model": "oneTime", "amount": 1900, "currency": "EUR"});
    let params = json!({"templateId": id, "pricing": once, "featured": true});
    assert_eq!(call("updateTemplatePricing", params).ok()["pricing"], once);
    let slugs = |function: &str, params: Value| -> Vec<String> {
        let items = anyone(function, params).ok()["items"].as_array().unwrap().clone();
        items.iter().map(|t| t["slug"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(slugs("getFeaturedTemplates", json!({}))[0], "mine");
    assert_eq!(slugs("getTemplatesByCategory", json!({"category": "own"})), ["mine"]);
    assert_eq!(slugs("getTemplates", json!({"query": "VENDURE"})), ["vendure"]);
    assert_eq!(slugs("getTemplates", json!({"kind": "market"})), ["vendure"]);

    // A template with an instance counts it. Neither the template nor its images can be deleted.
    let project = service.call(Some(&ada), "svc_createProject", json!({"name": "Shop"})).ok();
    let wanted = json!({"projectId": project["id"], "name": "Backend", "templateId": id});
    let instance = service.call(Some(&ada), "svc_createBackendInstance", wanted.clone()).ok();
    assert_eq!(instance["templateVersion"], "2.0.0");
    let stats = call("getTemplateStats", json!({"templateId": id})).ok();
    assert_eq!(
        (&stats["instances"], &stats["byVersion"]),
        (&json!({"total": 2, "running": 0}), &json!({"1.0.0": 1, "2.0.0": 1}))
    );
    assert_eq!(call("deleteTemplate", json!({"templateId": id})).refusal(), (409, 119));
    let image = json!({"imageId": services[0]["imageId"]});
    assert_eq!(call("deleteDockerImage", image).refusal(), (409, 119));
    call("updateTemplateStatus", json!({"templateId": id, "status": "archived"})).ok();
    assert_eq!(slugs("getTemplatesByCategory", json!({"category": "own"})), Vec::<String>::new());
    let archived = service.call(Some(&ada), "svc_createBackendInstance", wanted);
    assert_eq!(archived.refusal(), (409, 119));

    // Users cannot replace a variable that the template sets.
    let stolen = json!({"projectId": project["id"], "name": "Backend", "env": {"PARSE_SERVER_MASTER_KEY": "mine"}});
    let refused = service.call(Some(&ada), "svc_createBackendInstance", stolen);
    assert_eq!(refused.refusal(), (400, 142));
    assert_eq!(refused.body["details"][0]["field"], "env.PARSE_SERVER_MASTER_KEY");
}

#[test]
fn images_are_found_deprecated_and_deleted() {
    let mut service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let (admin, ada) = (service.administrator(), service.register("ada"));
    // A catalogue entry that an administrator deletes stays deleted.
    let vendure = service.call(None, "getTemplate", json!({"slug": "vendure"})).ok();
    service.call(Some(&admin), "deleteTemplate", json!({"templateId": vendure["id"]})).ok();
    let storefront =
        service.call(None, "getDockerImage", json!({"name": "vendure-storefront"})).ok();
    service.call(Some(&admin), "deleteDockerImage", json!({"imageId": storefront["id"]})).ok();
    service.stop();
    service.check();
    service.boot();
    let gone = service.call(None, "getTemplate", json!({"slug": "vendure"}));
    assert_eq!(gone.refusal(), (404, 101));
    let gone = service.call(None, "getDockerImage", json!({"name": "vendure-storefront"}));
    assert_eq!(gone.refusal(), (404, 101));

    let call = |function: &str, params: Value| service.call(Some(&admin), function, params);
    let found = service.call(None, "searchDockerImages", json!({"query": "parse"})).ok();
    assert_eq!(found["items"][0]["name"], "parse-server", "{found}");
    for repository in ["Team/Name", "a//b", "host:99999/a", "a:tag", "a@sha256:0", "../a", ""] {
        let params = json!({"name": "mine", "repository": repository});
        assert_eq!(call("registerDockerImage", params).refusal(), (400, 142), "{repository}");
    }
    let params = json!({"name": "mine", "repository": "registry.example.com:5000/team/name"});
    let mine = call("registerDockerImage", params.clone()).ok();
    assert_eq!(call("registerDockerImage", params).refusal(), (409, 137));
    // Without an engine no registry can be asked, so no version is added.
    let version = json!({"imageId": mine["id"], "version": "1.0.0"});
    assert_eq!(call("addDockerImageVersion", version).refusal(), (503, 100));
    let nested =
        json!({"git": {"url": "https://git.example.com/a.git", "dockerfile": "Dockerfile"}});
    let build = json!({"imageId": mine["id"], "version": "1.0.0", "source": nested});
    let refused = call("triggerDockerBuild", build);
    assert_eq!(refused.refusal(), (400, 142));
    assert_eq!(refused.body["details"][0]["field"], "source.git.dockerfile", "{}", refused.body);
    let both = json!({"imageId": mine["id"], "name": "mine"});
    assert_eq!(service.call(None, "getDockerImage", both).refusal(), (400, 142));
    call("deleteDockerImage", json!({"imageId": mine["id"]})).ok();
    assert_eq!(service.call(None, "getDockerImage", json!({"name": "mine"})).refusal(), (404, 101));

    // A deprecated version is refused for new instances, with the reason.
    let image = service.call(None, "getDockerImage", json!({"name": "postgresql"})).ok();
    let params = json!({"imageId": image["id"], "version": "15", "reason": "it is too old"});
    call("deprecateDockerImageVersion", params).ok();
    let project = service.call(Some(&ada), "svc_createProject", json!({"name": "Shop"})).ok();
    let wanted = json!({"projectId": project["id"], "name": "Backend"});
    let refused = service.call(Some(&ada), "svc_createBackendInstance", wanted);
    assert_eq!(refused.refusal(), (409, 119));
    assert!(refused.body["error"].as_str().unwrap().contains("it is too old"), "{}", refused.body);
}
