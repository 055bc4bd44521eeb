//! Passwords, organizations, and the standing of members.

use crate::support::service::{Person, Service, eventually};
use serde_json::{Value, json};
use std::sync::Barrier;

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

pub fn open() -> Service {
    Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise"), ("SVC_LOG", "warn")])
}

/// The token after these words in the operator's log.
fn logged_token(service: &Service, words: &str) -> String {
    let mut token = None;
    eventually("the token appears in the log", || {
        let log = service.log().replace("\\n", "\n");
        token = log
            .rsplit_once(words)
            .and_then(|(_, rest)| rest.split_whitespace().next().map(str::to_owned));
        token.is_some()
    });
    token.unwrap()
}

#[test]
fn a_forgotten_password_is_reset_once_with_the_token_from_the_log() {
    let service = open();
    let ada = service.register("ada");
    let ask =
        |email: &str| service.call(None, "requestPasswordReset", json!({"email": email})).ok();
    assert_eq!((ask("ADA@example.com"), ask("nobody@example.com")), (json!({}), json!({})));
    let words = "/reset-password?token=";
    let first = logged_token(&service, words);
    ask("ada@example.com");
    eventually("the second token appears", || service.log().matches(words).count() == 2);
    let second = logged_token(&service, words);
    assert_eq!(service.log().matches(&second).count(), 1, "a secret is logged once");
    let reset = |token: &str, password: &str| {
        service.call(None, "resetPassword", json!({"token": token, "newPassword": password}))
    };
    assert_eq!(reset(&first, "short").refusal(), (400, 142));
    reset(&first, "another horse").ok();
    for used in [&first, &second] {
        assert_eq!(reset(used, "a third horse").refusal(), (401, 119));
    }
    assert_eq!(reset(&"x".repeat(5000), "a third horse").refusal(), (401, 119));
    assert_eq!(service.call(Some(&ada), "getCurrentUser", json!({})).refusal(), (401, 119));
    let old = service.call(
        None,
        "loginWithEmail",
        json!({"email": ada.email, "password": "correct horse"}),
    );
    assert_eq!(old.refusal(), (404, 101));
    service.sign_in(&ada, "another horse");
    assert!(!service.log().contains("horse"), "no password is logged");
}

#[test]
fn an_email_belongs_to_one_account() {
    let mut service = open();
    let gate = Barrier::new(20);
    let register = |n: usize| {
        let email = if n.is_multiple_of(2) { "Grace@Example.com" } else { "grace@example.COM" };
        let params =
            json!({"email": email, "password": "correct horse", "name": format!("Grace {n}")});
        gate.wait();
        service.call(None, "registerUser", params)
    };
    let answers: Vec<_> = std::thread::scope(|threads| {
        let register = &register;
        let all: Vec<_> = (0..20).map(|n| threads.spawn(move || register(n))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!(made.len(), 1, "{answers:?}");
    assert!(refused.iter().all(|answer| answer.refusal() == (409, 137)), "{refused:?}");
    let late = json!({"email": "GRACE@example.com", "password": "correct horse"});
    assert_eq!(service.call(None, "registerUser", late.clone()).refusal(), (409, 137));
    let signed_in = service.call(None, "loginWithEmail", late).ok();
    assert_eq!(signed_in["user"]["id"], made[0].body["result"]["user"]["id"]);
    service.stop();
    service.check();
}

#[test]
fn an_organization_is_joined_by_invitation_and_left_at_once() {
    let service = open();
    let [ada, bob, eve] = ["ada", "bob", "eve"].map(|name| service.register(name));
    let call =
        |who: &Person, function: &str, params: Value| service.call(Some(who), function, params);
    let role = |who: &Person| call(who, "getCurrentUser", json!({})).ok()["role"].clone();
    assert_eq!(role(&ada), "client", "the personal organization does not count");
    let acme = call(&ada, "createOrganization", json!({"name": "Acme"})).ok()["id"].clone();
    assert_eq!((role(&ada), role(&bob)), (json!("admin"), json!("client")));

    // Invitations.
    let invite = |who: &Person, email: &str, role: &str| {
        call(who, "inviteMember", json!({"organizationId": acme, "email": email, "role": role}))
    };
    let accept =
        |who: &Person, token: &Value| call(who, "acceptInvitation", json!({"token": token}));
    let first = invite(&ada, "bob@example.com", "client").ok()["acceptToken"].clone();
    let token = invite(&ada, "Bob@Example.com", "supervisor").ok()["acceptToken"].clone();
    assert_eq!(accept(&bob, &first).refusal(), (404, 101), "renewed: the token before ends");
    assert_eq!(accept(&eve, &token).refusal(), (404, 101), "meant for another e-mail");
    assert_eq!(
        call(&bob, "getOrganization", json!({"organizationId": acme})).refusal(),
        (404, 101)
    );
    let joined = accept(&bob, &token).ok();
    assert_eq!(joined["members"].as_array().unwrap().len(), 2);
    assert_eq!(accept(&bob, &token).ok(), joined, "accepting twice answers the same membership");
    assert_eq!(accept(&eve, &token).refusal(), (404, 101));
    assert_eq!(invite(&ada, "BOB@example.com", "admin").refusal(), (409, 137), "a member already");
    assert_eq!(invite(&bob, "eve@example.com", "admin").refusal(), (403, 403));
    assert_eq!(role(&bob), "supervisor");
    let token = invite(&ada, "eve@example.com", "client").ok()["acceptToken"].clone();
    accept(&eve, &token).ok();

    // Roles.
    let set = |who: &Person, of: &Person, role: &str| {
        call(who, "updateMember", json!({"organizationId": acme, "userId": of.id, "role": role}))
    };
    assert_eq!(set(&bob, &eve, "admin").refusal(), (403, 403));
    set(&ada, &bob, "admin").ok();
    assert_eq!(role(&bob), "admin");
    assert_eq!(set(&bob, &ada, "client").refusal(), (409, 119), "the owner's role stays");
    set(&ada, &bob, "supervisor").ok();

    // A client reaches its own projects and the projects that list it. A supervisor reaches all.
    let names = |who: &Person| {
        let found = call(who, "svc_getProjects", json!({"organizationId": acme})).ok();
        let mut names: Vec<_> =
            found["items"].as_array().unwrap().iter().map(|p| text(&p["name"])).collect();
        names.sort();
        names
    };
    let create = |who: &Person, name: &str| {
        call(who, "svc_createProject", json!({"name": name, "organizationId": acme})).ok()["id"]
            .clone()
    };
    let (shop, own) = (create(&ada, "Shop"), create(&eve, "Own"));
    assert_eq!((names(&ada).len(), names(&bob).len()), (2, 2));
    assert_eq!(names(&eve), ["Own"]);
    assert_eq!(call(&eve, "svc_getProject", json!({"projectId": shop})).refusal(), (404, 101));
    let list =
        |ids: Value| call(&ada, "svc_updateProject", json!({"projectId": shop, "memberIds": ids}));
    let stranger = service.register("stranger");
    let refused = list(json!([eve.id, stranger.id]));
    assert_eq!(
        (refused.refusal(), &refused.body["details"][0]["field"]),
        ((400, 142), &json!("memberIds[1]"))
    );
    assert_eq!(list(json!([eve.id])).ok()["memberIds"], json!([eve.id]));
    assert_eq!(names(&eve), ["Own", "Shop"]);
    let delete = |who: &Person, project: &Value| {
        call(who, "svc_deleteProject", json!({"projectId": project}))
    };
    assert_eq!(delete(&eve, &shop).refusal(), (403, 403));
    let app = call(&eve, "createApp", json!({"projectId": own, "name": "App"})).ok()["id"].clone();
    let token = service
        .with_token(&eve, json!({"name": "ci", "scopes": ["artifact:upload"], "appId": app}));
    assert_eq!(call(&token, "svc_getArtifacts", json!({"appId": app})).status, 200);

    // A removed member loses its lists, its projects and its tokens there before the reply.
    let remove = |who: &Person, of: &Person| {
        call(who, "removeMember", json!({"organizationId": acme, "userId": of.id}))
    };
    assert_eq!(remove(&bob, &eve).refusal(), (403, 403));
    assert_eq!(remove(&ada, &stranger).refusal(), (404, 101));
    assert_eq!(remove(&ada, &ada).refusal(), (409, 119), "the owner cannot be removed");
    remove(&ada, &eve).ok();
    for (function, params) in [
        ("svc_getProject", json!({"projectId": shop})),
        ("svc_updateProject", json!({"projectId": own, "name": "Mine"})),
        ("svc_deleteProject", json!({"projectId": own})),
        ("getApp", json!({"appId": app})),
        ("deleteApp", json!({"appId": app})),
        ("getOrganization", json!({"organizationId": acme})),
    ] {
        assert_eq!(call(&eve, function, params).refusal(), (404, 101), "{function}");
    }
    assert!(names(&eve).is_empty());
    assert_eq!(call(&token, "svc_getArtifacts", json!({"appId": app})).refusal(), (404, 101));
    assert_eq!(role(&eve), "client");
    assert_eq!(accept(&eve, &first).refusal(), (404, 101));
    remove(&bob, &bob).ok();
    assert_eq!(
        call(&bob, "getOrganization", json!({"organizationId": acme})).refusal(),
        (404, 101)
    );

    // Deleting an organization.
    let end = |who: &Person, params: Value| call(who, "deleteOrganization", params);
    assert_eq!(end(&ada, json!({"organizationId": acme})).refusal(), (409, 119), "it has projects");
    let deleted = end(&ada, json!({"organizationId": acme, "cascade": true})).ok();
    assert_eq!(deleted["deleted"]["projects"], 2);
    for (function, params) in [
        ("getOrganization", json!({"organizationId": acme})),
        ("svc_getProject", json!({"projectId": shop})),
        ("getApp", json!({"appId": app})),
        ("svc_createProject", json!({"organizationId": acme, "name": "Late"})),
    ] {
        assert_eq!(call(&ada, function, params).refusal(), (404, 101), "{function}");
    }
    eventually("the owner's role falls with the organization", || role(&ada) == "client");
    let empty = call(&ada, "createOrganization", json!({"name": "Empty"})).ok()["id"].clone();
    assert_eq!(end(&ada, json!({"organizationId": empty})).ok()["deleted"]["projects"], 0);

    // The personal organization.
    let all = call(&ada, "listOrganizations", json!({})).ok();
    assert_eq!(all["items"].as_array().unwrap().len(), 1);
    let personal = all["items"][0]["id"].clone();
    assert_eq!(all["items"][0]["personal"], true);
    assert_eq!(
        end(&ada, json!({"organizationId": personal, "cascade": true})).refusal(),
        (409, 119)
    );
    let invited = json!({"organizationId": personal, "email": "bob@example.com", "role": "client"});
    assert_eq!(call(&ada, "inviteMember", invited).refusal(), (409, 119));
    let project = call(&ada, "svc_createProject", json!({"name": "At home"})).ok();
    assert_eq!(project["organizationId"], personal);
}

#[test]
fn lists_go_newest_first_a_page_at_a_time() {
    let service = open();
    let ada = service.register("ada");
    let (project, _) = service.project_with_app(&ada, None);
    let create = |name: String| {
        service.call(Some(&ada), "createApp", json!({"projectId": project, "name": name})).ok()
    };
    let mut made: Vec<String> = (0..119).map(|n| text(&create(format!("App {n}"))["id"])).collect();
    let list = |params: Value| {
        let mut all = json!({"projectId": project});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        service.call(Some(&ada), "listApps", all)
    };
    let ids = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|app| text(&app["id"])).collect()
    };
    let (mut seen, mut sizes, mut cursor) = (Vec::new(), Vec::new(), Value::Null);
    loop {
        let page =
            if cursor.is_null() { list(json!({})) } else { list(json!({"cursor": cursor})) }.ok();
        let page_ids = ids(&page);
        sizes.push(page_ids.len());
        seen.extend(page_ids);
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
        if sizes.len() == 1 {
            // Later items do not shift the remaining pages.
            create("Later".into());
        }
    }
    assert_eq!(sizes, [50, 50, 20]);
    made.reverse();
    assert_eq!(seen[..119], made);
    assert_eq!(ids(&list(json!({"limit": 200})).ok()).len(), 121);
    assert_eq!(ids(&list(json!({"limit": 1})).ok()).len(), 1);
    for (field, value) in [
        ("cursor", json!("nonsense")),
        ("cursor", json!("")),
        ("cursor", json!("é".repeat(4))),
        ("cursor", json!("2f2e2e2f")),
        ("cursor", json!("61".repeat(500))),
        ("limit", json!(0)),
        ("limit", json!(201)),
        ("limit", json!(1.5)),
        ("limit", json!("10")),
    ] {
        let refused = list(json!({field: value}));
        assert_eq!(
            (refused.refusal(), &refused.body["details"][0]["field"]),
            ((400, 142), &json!(field)),
            "{value}"
        );
    }
}

#[test]
fn who_is_removed_loses_everything_there_and_starts_anew() {
    let service = open();
    let (ada, bob) = (service.register("ada"), service.register("bob"));
    let call =
        |who: &Person, function: &str, params: Value| service.call(Some(who), function, params);
    let acme = call(&ada, "createOrganization", json!({"name": "Acme"})).ok()["id"].clone();
    let join = || {
        let params = json!({"organizationId": acme, "email": bob.email, "role": "client"});
        let token = call(&ada, "inviteMember", params).ok()["acceptToken"].clone();
        eventually("the one before is forgotten", || {
            call(&bob, "acceptInvitation", json!({"token": token})).status == 200
        });
    };
    join();
    let (listed, app) = service.project_with_app(&ada, Some(&acme));
    let list = || {
        let params = json!({"projectId": listed, "memberIds": [bob.id]});
        call(&ada, "svc_updateProject", params).ok()
    };
    list();
    let (own, _) = service.project_with_app(&bob, Some(&acme));
    let params = json!({"name": "ci", "scopes": ["artifact:upload"], "appId": app});
    let ci = service.with_token(&bob, params);
    let reached = || {
        let project = |id: &Value| call(&bob, "svc_getProject", json!({"projectId": id})).status;
        let params =
            json!({"appId": app, "platform": "android", "fileName": "a.apk", "version": "1.0.0"});
        let projects = call(&bob, "svc_getProjects", json!({"organizationId": acme}));
        let projects = projects.body["result"]["items"].as_array().map_or(0, Vec::len);
        (
            project(&listed),
            project(&own),
            projects,
            service.post(Some(&ci), "upload-url", &params).status,
        )
    };
    assert_eq!(reached(), (200, 200, 2, 201));
    call(&ada, "removeMember", json!({"organizationId": acme, "userId": bob.id})).ok();
    assert_eq!(reached(), (404, 404, 0, 404));
    eventually("the project's list forgets", || {
        let project = call(&ada, "svc_getProject", json!({"projectId": listed})).ok();
        project["memberIds"] == json!([])
    });
    join();
    assert_eq!(reached(), (404, 404, 0, 404), "what was given before counts no more");
    list();
    let (new, _) = service.project_with_app(&bob, Some(&acme));
    assert_eq!(call(&bob, "svc_getProject", json!({"projectId": new})).status, 200);
    assert_eq!(reached(), (200, 404, 2, 404));
}
