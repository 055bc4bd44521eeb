//! What a person sees first, what happened, and the search: each shows what its reader may see.

use crate::support::service::{Person, Service};
use serde_json::{Value, json};

/// An organization of Ada's with two projects. Carl is a client of it, and works on the one named Open.
struct Team {
    service: Service,
    ada: Person,
    carl: Person,
    organization: Value,
    /// The app of the project that Carl works on, and the one of the other.
    apps: [Value; 2],
}

impl Team {
    fn new() -> Team {
        let service = Service::start();
        let (ada, carl) = (service.register("ada"), service.register("carl"));
        let call = |function: &str, params: Value| service.call(Some(&ada), function, params).ok();
        let organization = call("createOrganization", json!({"name": "Acme"}))["id"].clone();
        let invitation =
            json!({"organizationId": organization, "email": carl.email, "role": "client"});
        let token = call("inviteMember", invitation)["acceptToken"].clone();
        service.call(Some(&carl), "acceptInvitation", json!({"token": token})).ok();
        let apps = ["Open", "Hidden"].map(|name| {
            let params = json!({"name": name, "organizationId": organization});
            let project = call("svc_createProject", params)["id"].clone();
            if name == "Open" {
                let members = json!({"projectId": project, "memberIds": [carl.id]});
                call("svc_updateProject", members);
            }
            let params = json!({"name": format!("{name} app"), "projectId": project});
            call("createApp", params)["id"].clone()
        });
        Team { service, ada, carl, organization, apps }
    }

    fn call(&self, who: &Person, function: &str, params: Value) -> Value {
        self.service.call(Some(who), function, params).ok()
    }

    /// Uploads a file of an app, and makes a release of it.
    fn release(&self, app: &Value, channel: &str) -> Value {
        let artifact = self.service.upload(&self.ada, app, "sample.apk", "1.4.2")["id"].clone();
        let params = json!({"appId": app, "artifactIds": [artifact], "channel": channel});
        self.call(&self.ada, "svc_createRelease", params)["id"].clone()
    }
}

/// The values of a field of a list.
fn all(list: &Value, field: &str) -> Vec<String> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item[field].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn home_shows_each_member_what_is_live() {
    let team = Team::new();
    let [open, hidden] = &team.apps;
    let release = team.release(open, "production");
    let publish = json!({"releaseId": release, "targets": ["ota"]});
    team.call(&team.ada, "svc_publishRelease", publish);
    team.release(hidden, "beta");

    let home = team.call(&team.ada, "svc_getHome", json!({}));
    assert_eq!(all(&home["apps"], "name"), ["Hidden app", "Open app"]);
    assert_eq!(home["apps"][0]["live"], json!([]), "a draft is not live");
    let live = &home["apps"][1]["live"][0];
    assert_eq!(
        (&live["id"], &live["version"], &live["channel"]),
        (&release, &json!("1.4.2"), &json!("production"))
    );
    assert_eq!(home["attention"], json!([]));

    // Who may not see an app sees nothing of it.
    let carls = team.call(&team.carl, "svc_getHome", json!({}));
    assert_eq!(all(&carls["apps"], "name"), ["Open app"]);
    let outsider = team.service.register("olga");
    let nothing = team.call(&outsider, "svc_getHome", json!({}));
    assert_eq!(nothing, json!({"attention": [], "apps": []}));
}

#[test]
fn activity_shows_each_member_what_they_may_see() {
    let team = Team::new();
    let [open, hidden] = &team.apps;
    team.release(open, "production");
    team.release(hidden, "production");
    let of_organization = json!({"organizationId": team.organization});
    let seen = team.call(&team.ada, "svc_getActivity", of_organization.clone());
    let happened = all(&seen["items"], "function");
    assert_eq!(happened[0], "svc_createRelease");
    assert!(!happened.contains(&"createUploadUrl".to_owned()), "{happened:?}");
    let first = &seen["items"][0];
    assert_eq!(
        (&first["userName"], &first["resourceName"], &first["appName"]),
        (&json!("ada"), &json!("1.4.2"), &json!("Hidden app"))
    );
    assert_eq!(happened.last().map(String::as_str), Some("createOrganization"));
    assert!(first.get("address").is_none() && first.get("requestId").is_none(), "{first}");

    // A client sees their projects, and what they did themselves.
    let seen = team.call(&team.carl, "svc_getActivity", of_organization.clone());
    let apps = all(&seen["items"], "appName");
    assert!(apps.contains(&"Open app".to_owned()) && !apps.contains(&"Hidden app".to_owned()));
    assert!(all(&seen["items"], "function").contains(&"acceptInvitation".to_owned()), "{seen}");
    assert!(!all(&seen["items"], "function").contains(&"inviteMember".to_owned()), "{seen}");
    // What a person did stays, but without names once it is out of their reach.
    let params = json!({"appId": open, "name": "Open to few"});
    team.call(&team.carl, "updateApp", params);
    let project = team.call(&team.carl, "getApp", json!({"appId": open}))["projectId"].clone();
    let members = json!({"projectId": project, "memberIds": []});
    team.call(&team.ada, "svc_updateProject", members);
    let seen = team.call(&team.carl, "svc_getActivity", of_organization.clone());
    assert_eq!(all(&seen["items"], "function")[0], "updateApp");
    assert_eq!(seen["items"][0]["resourceName"], Value::Null, "{seen}");
    assert!(!seen.to_string().contains("Open to few"), "{seen}");
    let outsider = team.service.register("olga");
    let refused = team.service.call(Some(&outsider), "svc_getActivity", of_organization);
    assert_eq!(refused.refusal(), (404, 101));

    // The list goes on where a page ended.
    let whole = team.call(&team.ada, "svc_getActivity", json!({"limit": 200}))["items"].clone();
    let (mut parts, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = team.call(&team.ada, "svc_getActivity", json!({"limit": 2, "cursor": cursor}));
        parts.extend(page["items"].as_array().unwrap().clone());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(Value::Array(parts), whole);
}

#[test]
fn a_search_finds_things_by_their_names() {
    let team = Team::new();
    let [open, hidden] = &team.apps;
    let release = team.release(open, "production");
    team.release(hidden, "production");
    let find = |who: &Person, query: &str| {
        team.call(who, "svc_search", json!({"query": query}))["items"].clone()
    };
    // What is called so is before what begins with it.
    assert_eq!(all(&find(&team.ada, "OPEN"), "kind"), ["project", "app"]);
    assert_eq!(all(&find(&team.ada, "open a"), "name"), ["Open app"]);
    let versions = find(&team.ada, "1.4");
    assert_eq!(all(&versions, "kind"), ["release", "release"]);
    assert_eq!(all(&versions, "within"), ["Hidden app", "Open app"]);
    assert_eq!(all(&find(&team.ada, "sample.apk"), "kind"), ["artifact", "artifact"]);
    assert_eq!(all(&find(&team.ada, "acme"), "id"), [team.organization.as_str().unwrap()]);
    assert_eq!(all(&find(&team.ada, "carl"), "within"), ["Acme"]);
    assert_eq!(find(&team.ada, release.as_str().unwrap())[0]["name"], "1.4.2");
    assert_eq!(find(&team.ada, "no such thing"), json!([]));
    // Nobody finds what they may not see.
    assert_eq!(all(&find(&team.carl, "app"), "name"), ["Open app"]);
    assert_eq!(all(&find(&team.carl, "1.4.2"), "within"), ["Open app"]);
    assert_eq!(find(&team.carl, hidden.as_str().unwrap()), json!([]));
    let refused = team.service.call(Some(&team.ada), "svc_search", json!({"query": ""}));
    assert_eq!(refused.refusal(), (400, 142));
}
