//! Rules for every declared function, also for functions that are added later: parameters come from
//! the schemas of `/openapi.json`, and permitted callers from its standings.

use crate::support::{
    declared::{Declared, declared, parameters, scene},
    service::Service,
};
use contract::endpoint::Access;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

#[test]
fn the_document_lists_what_is_declared_and_all_of_it_is_served() {
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let mut listed: Vec<_> = declared(&service).into_iter().map(|f| f.name).collect();
    let mut known: Vec<_> = contract::all().map(|f| f.name.to_owned()).collect();
    listed.sort();
    known.sort();
    assert_eq!(listed, known);
    for name in listed {
        let answer = service.call(None, &name, json!({"noSuchParameter": 1}));
        assert!([(401, 119), (400, 142)].contains(&answer.refusal()), "{name}: {}", answer.body);
    }
}

#[test]
fn every_endpoint_of_the_document_is_served() {
    let service = Service::start();
    for endpoint in contract::endpoint::all() {
        let path = endpoint.path.replace(['{', '}'], "");
        let method = endpoint.method.name().parse().unwrap();
        let answer = service.http.request(method, format!("{}{path}", service.url)).send().unwrap();
        let text = answer.text().unwrap();
        assert!(!text.contains("nothing is served at this address"), "{}: {text}", endpoint.name);
    }
}

/// The refusal for a caller whose standing is too low. `None` if the caller may call the function.
fn refusal(function: &Declared, who: &str) -> Option<(u16, i64)> {
    let field = |name: &str| function.fields.iter().any(|(field, _, _)| field == name);
    let below = [
        "projectId",
        "appId",
        "artifactId",
        "releaseId",
        "tokenId",
        "instanceId",
        "deploymentId",
        "backupId",
        "buildId",
        "publisherId",
        "credentialId",
        "domainId",
    ]
    .iter()
    .any(|f| field(f));
    let of_app = below && !field("projectId") || field("instanceId");
    let is_project = field("projectId") && function.standing == "Owner";
    let (hidden, too_low) = (Some((404, 101)), Some((403, 403)));
    let standing = function.standing.as_str();
    match (standing, who) {
        ("Public", _) => None,
        (_, "nobody") => Some((401, 119)),
        (_, "token" | "other token") if function.any_token => None,
        (_, "token" | "other token") if function.scope.is_none() => Some((401, 119)),
        (_, "token") if function.scope.as_deref() != Some("artifact:upload") => too_low,
        (_, "token") => None,
        (_, "other token") if function.scope.as_deref() != Some("artifact:upload") => too_low,
        (_, "other token") => hidden,
        ("Master key" | "SuperAdmin", _) => too_low,
        // Its caller needs a standing in what it names, which no schema tells.
        _ if function.name == "svc_claimBuild" => match who {
            "stranger" => hidden,
            "owner" | "admin" => None,
            _ => too_low,
        },
        _ if field("backupId") || field("reference") => hidden,
        ("Admin", "owner" | "admin") => None,
        ("Admin", _) => too_low,
        // The organization that they name here is not theirs.
        ("User", "stranger") if function.name == "svc_createProject" => hidden,
        ("User", "stranger") if field("sessionId") => hidden,
        ("User", _) => None,
        ("Member" | "Owner/Admin" | "Owner", "stranger") => hidden,
        ("Member" | "Owner/Admin" | "Owner", "client") if below => hidden,
        ("Member", _) => None,
        // The creator of a project may do to its apps what an admin may.
        ("Owner/Admin" | "Owner", "creator") if of_app || is_project => None,
        ("Owner/Admin" | "Owner", "client" | "listed" | "supervisor" | "creator") => too_low,
        ("Owner", "admin") => too_low,
        ("Owner/Admin", "admin") | ("Owner/Admin" | "Owner", "owner") => None,
        other => panic!("{}: teach this test the standing {other:?}", function.name),
    }
}

#[test]
fn every_function_refuses_every_lower_standing() {
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let scene = scene(&service);
    let functions = declared(&service);
    let people = [
        ("nobody", None),
        ("stranger", Some(&scene.stranger)),
        ("client", Some(&scene.client)),
        ("creator", Some(&scene.creator)),
        ("listed", Some(&scene.listed)),
        ("supervisor", Some(&scene.supervisor)),
        ("admin", Some(&scene.admin)),
        ("owner", Some(&scene.owner)),
        ("token", Some(&scene.token)),
        ("other token", Some(&scene.other_token)),
    ];
    let mut refused = 0;
    for function in &functions {
        for (name, person) in &people {
            let Some(expected) = refusal(function, name) else { continue };
            let answer = service.call(*person, &function.name, parameters(&scene, function).into());
            let told = format!("{} for {name}: {}", function.name, answer.body);
            assert_eq!(answer.refusal(), expected, "{told}");
            // Without a session, the answer does not tell what exists or what a function takes.
            if *name == "nobody" {
                let guess = service.call(None, &function.name, json!({"noSuchParameter": 1}));
                assert_eq!(
                    (guess.refusal(), &guess.body["error"]),
                    (expected, &answer.body["error"])
                );
            }
            // Hidden and missing resources have the same answer.
            if expected == (404, 101) {
                let params = elsewhere(parameters(&scene, function));
                let missing = service.call(*person, &function.name, params);
                assert_eq!((missing.refusal(), &missing.body), (expected, &answer.body), "{told}");
            }
            refused += 1;
        }
    }
    assert!(refused > 150, "only {refused} refusals were tried");

    // The refused calls changed nothing.
    for (function, field) in [
        ("getOrganization", "organizationId"),
        ("svc_getProject", "projectId"),
        ("getApp", "appId"),
        ("svc_getArtifact", "artifactId"),
        ("svc_getRelease", "releaseId"),
    ] {
        let read =
            service.call(Some(&scene.owner), function, json!({field: scene.ids[field]})).ok();
        assert!(
            read["updatedAt"].is_null() || read["name"] == "Acme" || read["name"] == "Shop",
            "{read}"
        );
    }
    assert_eq!(
        service
            .call(Some(&scene.token), "svc_getArtifacts", json!({"appId": scene.ids["appId"]}))
            .status,
        200
    );
}

/// The standing of a deploy token is that of its maker's memberships, and a superadmin is no member
/// here.
#[test]
fn a_token_of_a_superadmin_reaches_nothing_of_others() {
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let scene = scene(&service);
    let functions = declared(&service);
    let scoped: Vec<_> = functions.iter().filter(|f| f.scope.is_some()).collect();
    let scopes: BTreeSet<_> = scoped.iter().filter_map(|f| f.scope.clone()).collect();
    let all = json!({"name": "operator", "scopes": scopes});
    let mut bound = all.clone();
    bound["appId"] = scene.ids["appId"].clone();
    let refused = service.call(Some(&scene.superadmin), "svc_createDeployToken", bound);
    assert_eq!(refused.refusal(), (409, 119), "{}", refused.body);
    let token = service.with_token(&scene.superadmin, all);
    for function in scoped {
        let params = parameters(&scene, function);
        let answer = service.call(Some(&token), &function.name, params.clone().into());
        assert_eq!(answer.refusal(), (404, 101), "{}: {}", function.name, answer.body);
        let missing = service.call(Some(&token), &function.name, elsewhere(params));
        assert_eq!(missing.body, answer.body, "{}", function.name);
    }
    for endpoint in contract::endpoint::all() {
        let Access::Operation(spec) = endpoint.access else { continue };
        if spec.scopes.is_empty() {
            continue;
        }
        let id = |field: &str| scene.ids[field].as_str().unwrap().to_owned();
        let body = match endpoint.name {
            "createUploadUrl" => {
                json!({"appId": id("appId"), "platform": "android", "fileName": "app.apk"})
            }
            "finalizeArtifact" => json!({"sha256": "0".repeat(64)}),
            "createSourceUrl" => json!({"sha256": "0".repeat(64), "size": 1}),
            other => panic!("teach this test a body for {other}"),
        };
        let path = endpoint.path.replace("{artifactId}", &id("artifactId"));
        let path = path.replace("{appId}", &id("appId"));
        let request = service.http.post(format!("{}{path}", service.url)).bearer_auth(&token.token);
        let answer = Service::answer(request.json(&body).send().unwrap()).unwrap();
        assert_eq!(answer.refusal(), (404, 101), "{}: {}", endpoint.name, answer.body);
    }
}

/// Each scope opens its functions, and a token with all other scopes is refused there.
#[test]
fn a_token_calls_what_its_scopes_name() {
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let scene = scene(&service);
    let functions = declared(&service);
    let scopes: BTreeSet<_> = functions.iter().filter_map(|f| f.scope.clone()).collect();
    assert!(scopes.len() >= 7, "{scopes:?}");
    let token = |scopes: &[&String]| {
        let params = json!({"name": "ci", "scopes": scopes, "appId": scene.ids["appId"]});
        service.with_token(&scene.owner, params)
    };
    for scope in &scopes {
        let others: Vec<_> = scopes.iter().filter(|other| *other != scope).collect();
        let (with, without) = (token(&[scope]), token(&others));
        for function in functions.iter().filter(|f| f.scope.as_ref() == Some(scope)) {
            let params: Value = parameters(&scene, function).into();
            let refused = service.call(Some(&without), &function.name, params.clone());
            // The creator of a release may publish it with a weaker scope.
            let name = &function.name;
            assert_eq!(refused.refusal(), (403, 403), "{name}: {}", refused.body);
            let answer = service.call(Some(&with), name, params);
            assert!(![401, 403].contains(&answer.status), "{name}: {}", answer.body);
        }
    }
    // Who calls with a token learns what the token is.
    let known = service.call(Some(&scene.token), "getCurrentUser", json!({})).ok();
    let token = &known["deployToken"];
    assert_eq!((&token["name"], &token["scopes"]), (&json!("ci"), &json!(["artifact:upload"])));
    assert_eq!((&token["appId"], &known["id"]), (&scene.ids["appId"], &json!(scene.owner.id)));
    let known = service.call(Some(&scene.owner), "getCurrentUser", json!({})).ok();
    assert_eq!(known["deployToken"], Value::Null);
}

/// The same parameters with ids of missing resources.
fn elsewhere(params: Map<String, Value>) -> Value {
    let other = |value: Value| match value.as_str().and_then(|text| text.split_once('_')) {
        Some((prefix, unique)) if prefix.len() == 3 && unique.len() == 26 => {
            json!(format!("{prefix}_01J9ZQ8F5W7V3T6M2K4N8R0P1S"))
        }
        _ => value,
    };
    let of_the_user = |field: &str| field == "userId" || field == "actorId";
    let params = params.into_iter().map(|(field, value)| {
        let changed = if of_the_user(&field) { value } else { other(value) };
        (field, changed)
    });
    Value::Object(params.collect())
}

#[test]
fn the_master_key_is_refused_from_elsewhere() {
    let service = Service::start_with(&[
        ("SVC_ANONYMOUS_TIER", "enterprise"),
        ("SVC_MASTER_KEY_ADDRESSES", "10.0.0.1"),
    ]);
    let scene = scene(&service);
    for function in declared(&service).iter().filter(|f| f.standing != "Public") {
        let params = parameters(&scene, function).into();
        let request = service.request(&service.http, &function.name, &params);
        let request = request.header("X-Backend-Master-Key", service.master_key());
        let answer = Service::answer(request.header("X-Forwarded-For", "10.0.0.1").send().unwrap());
        assert_eq!(answer.unwrap().refusal(), (401, 119), "{}", function.name);
    }
}
