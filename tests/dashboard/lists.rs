//! Lists that are longer than a page, long names, and the addresses of forms.

use super::{PASSWORD, client, sent, sign_in, start};
use crate::support::{
    browser::Browser,
    service::{Person, Service},
};
use reqwest::header::LOCATION;
use serde_json::{Value, json};
use std::path::Path;

/// Asserts that the list of a page is reached to its last item by clicks, from its first part on.
fn reach(browser: &Browser, parts: usize, last: &str) {
    for _ in 1..parts {
        browser.click("link", "Show older ones");
        browser.find("link", "Back to the newest");
    }
    browser.find("link", last);
    assert!(!browser.text().contains("Show older ones"), "the last part leads nowhere");
    browser.click("link", "Back to the newest");
    browser.find("link", "Show older ones");
}

/// Makes this many things, one after another.
fn make(count: usize, make: impl Fn(usize)) {
    (0..count).for_each(make);
}

#[test]
fn the_last_of_many_is_reached_by_clicks_and_found_by_name() {
    let Some((browser, judge)) = start("the_last_of_many_is_reached_by_clicks_and_found_by_name")
    else {
        return;
    };
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let (at, ada, grace) =
        (service.dashboard(), service.register("ada"), service.register("grace"));
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params).ok();

    // An organization of somebody else, older than those that Ada makes.
    let name = json!({"name": "Oldest organization"});
    let oldest = service.call(Some(&grace), "createOrganization", name).ok()["id"].clone();
    join(&service, &grace, &ada, &oldest);
    make(49, |n| drop(call("createOrganization", json!({"name": format!("Organization {n:03}")}))));
    make(120, |n| drop(call("svc_createProject", json!({"name": format!("Project {n:03}")}))));
    let project = call("svc_createProject", json!({"name": "Full"}))["id"].clone();
    let app = |n| json!({"projectId": project, "name": format!("App {n:03}")});
    make(120, |n| drop(call("createApp", app(n))));

    // Names hide nothing.
    let hidden = json!({"name": "\u{202E}pohS"});
    assert_eq!(service.call(Some(&ada), "svc_createProject", hidden).refusal(), (400, 142));

    // The functions tell the size, and search.
    let listed = call("listApps", json!({"projectId": project}));
    assert_eq!((&listed["total"], listed["items"].as_array().unwrap().len()), (&json!(120), 50));
    let found = call("listApps", json!({"projectId": project, "query": "aPP 007"}));
    assert_eq!((&found["total"], &found["items"][0]["name"]), (&json!(1), &json!("App 007")));
    assert_eq!(call("svc_getProjects", json!({}))["total"], 121);
    let found = call("svc_getProjects", json!({"query": "project 000"}));
    assert_eq!((&found["total"], &found["items"][0]["name"]), (&json!(1), &json!("Project 000")));
    let found = call("listOrganizations", json!({"query": "OLDEST"}));
    assert_eq!((&found["total"], &found["items"][0]["id"]), (&json!(1), &oldest));

    sign_in(&browser, &service, &ada.email, PASSWORD);
    browser.click("link", "Projects");
    browser.says("50 of 121");
    judge.page(&browser, "projects-many");
    reach(&browser, 3, "Project 000");
    browser.fill("searchbox", "Name, description or id of a project", "t 000");
    browser.click("button", "Filter");
    browser.find("link", "Project 000");
    assert!(!browser.text().contains("Project 001"));
    browser.fill("searchbox", "Name, description or id of a project", "no such project");
    browser.click("button", "Filter");
    browser.says("Nothing found.");

    // The menu of a new project reaches what the first page of organizations does not show.
    browser.choose("Organization", "ada");
    browser.open(&format!("{at}/organizations"));
    browser.says("50 of 51");
    reach(&browser, 2, "ada");
    browser.fill("searchbox", "Name or id of an organization", "oldest");
    browser.click("button", "Filter");
    browser.click("link", "Oldest organization");
    browser.click("link", "New project");
    browser.fill("textbox", "Name", "Not in the personal one");
    browser.click("button", "Make the project");
    browser.find("heading", "Not in the personal one");
    let made = call("svc_getProjects", json!({"query": "Not in the personal"}));
    assert_eq!(made["items"][0]["organizationId"], oldest);

    browser.open(&format!("{at}/projects/{}", project.as_str().unwrap()));
    browser.says("50 of 120");
    reach(&browser, 3, "App 000");
    browser.fill("searchbox", "Name, identifier or id of an app", "app 007");
    browser.click("button", "Filter");
    browser.click("link", "App 007");

    // "Make a backend" of an app keeps the app.
    browser.click("link", "Make a backend");
    let id =
        call("listApps", json!({"projectId": project, "query": "app 007"}))["items"][0].clone();
    assert_eq!(json!(browser.value("combobox", "App")), id["id"]);

    // Releases are found by channel and state.
    let app = id["id"].as_str().unwrap();
    let artifact = service.upload(&ada, &id["id"], "sample.apk", "1.4.2")["id"].clone();
    make(60, |n| {
        let channel = format!("channel-{n:02}");
        let params = json!({"appId": app, "artifactIds": [artifact], "channel": channel});
        drop(call("svc_createRelease", params));
    });
    browser.open(&format!("{at}/apps/{app}/releases"));
    browser.says("50 of 60");
    browser.click("link", "Show older ones");
    browser.says("channel-00");
    browser.fill("searchbox", "Channel", "channel-59");
    browser.choose("State", "draft");
    browser.click("button", "Filter");
    browser.says("channel-59");
    assert!(!browser.text().contains("channel-00"));
    judge.page(&browser, "releases-many");
    // Lists that nobody filters say how long they are, too.
    make(60, |n| {
        let name = format!("{n}.apk");
        let opening =
            json!({"appId": app, "platform": "android", "fileName": name, "version": "2"});
        assert_eq!(service.post(Some(&ada), "upload-url", &opening).status, 201);
        let params = json!({"name": format!("Token {n:02}"), "scopes": ["deploy"], "appId": app});
        drop(call("svc_createDeployToken", params));
    });
    for (page, size) in [("artifacts", 61), ("access", 60)] {
        browser.open(&format!("{at}/apps/{app}/{page}"));
        browser.says(&format!("50 of {size}"));
        browser.click("link", "Show older ones");
        browser.says(&format!("{} of {size}", size - 50));
        browser.find("link", "Back to the newest");
    }
    browser.open(&format!("{at}/artifacts/{}", artifact.as_str().unwrap()));
    browser.fill("combobox", "Channel", "one-more");
    browser.click("button", "Release it");
    browser.find("heading", "1.4.2 one-more");
}

/// Makes a person a member of an organization.
fn join(service: &Service, owner: &Person, who: &Person, organization: &Value) {
    let params = json!({"organizationId": organization, "email": who.email, "role": "supervisor"});
    let invited = service.call(Some(owner), "inviteMember", params).ok();
    let token = json!({"token": invited["acceptToken"]});
    service.call(Some(who), "acceptInvitation", token).ok();
}

#[test]
fn a_name_of_a_hundred_letters_breaks_no_page() {
    let Some((browser, judge)) = start("a_name_of_a_hundred_letters_breaks_no_page") else {
        return;
    };
    let service = Service::start();
    let (at, ada) = (service.dashboard(), service.register("ada"));
    let call = |function: &str, params: Value| service.call(Some(&ada), function, params).ok();
    let long = "x".repeat(100);
    let id = |made: Value| made["id"].as_str().unwrap().to_owned();
    call("updateProfile", json!({"name": long, "company": long}));
    let organization = id(call("createOrganization", json!({"name": long})));
    let params = json!({"organizationId": organization, "name": long, "description": long});
    let project = id(call("svc_createProject", params));
    let identifier = format!("com.{}", &long[..90]);
    let params = json!({"projectId": project, "name": long, "bundleId": identifier});
    let app = id(call("createApp", params));
    let url = format!("https://hooks.example.com/{long}");
    let params = json!({"organizationId": organization, "url": url, "description": long});
    let webhook = call("svc_createWebhook", params)["webhook"].clone();
    let webhook = webhook["id"].as_str().unwrap().to_owned();
    let params = json!({"name": long, "scopes": ["artifact:upload"], "appId": app});
    call("svc_createDeployToken", params);
    let email = format!("{}@{}.example.com", &long[..60], &long[..60]);
    let params = json!({"organizationId": organization, "email": email, "role": "client"});
    call("inviteMember", params);
    let id = json!(app);
    let artifact = service.upload(&ada, &id, "sample.apk", "1.4.2")["id"].clone();
    let params = json!({"appId": app, "artifactIds": [artifact], "channel": "x".repeat(60)});
    let release = call("svc_createRelease", params)["id"].clone();

    sign_in(&browser, &service, &ada.email, PASSWORD);
    let pages = [
        "".to_owned(),
        "projects".to_owned(),
        "activity".to_owned(),
        "organizations".to_owned(),
        format!("organizations/{organization}"),
        format!("organizations/{organization}/webhooks"),
        format!("webhooks/{webhook}"),
        format!("projects/{project}"),
        format!("projects/{project}/settings"),
        format!("projects/{project}/instances"),
        format!("apps/{app}"),
        format!("apps/{app}/access"),
        format!("apps/{app}/artifacts"),
        format!("apps/{app}/releases"),
        format!("artifacts/{}", artifact.as_str().unwrap()),
        format!("releases/{}", release.as_str().unwrap()),
        "account".to_owned(),
        "account/tokens".to_owned(),
        "account/webhooks".to_owned(),
    ];
    for page in pages {
        browser.open(&format!("{at}/{page}"));
        judge.page(&browser, &format!("long-{}", page.rsplit('/').next().unwrap_or_default()));
    }
}

/// The addresses in the sources of the pages that take forms, and those that are pages.
fn addresses(folder: &Path, forms: &mut Vec<String>, pages: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            addresses(&path, forms, pages);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        for route in source.split(".route(\"").skip(1) {
            let (address, rest) = route.split_once("\", web::").unwrap_or_default();
            let list = if rest.starts_with("post()") { &mut *forms } else { &mut *pages };
            list.push(address.to_owned());
        }
    }
}

#[test]
fn the_address_of_each_form_leads_to_its_page() {
    let service = Service::start();
    let (client, at) = (client(), service.dashboard());
    let (mut forms, mut pages) = (Vec::new(), Vec::new());
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/dashboard/src/pages");
    addresses(&sources, &mut forms, &mut pages);
    assert!(forms.len() > 50 && pages.len() > 30, "{forms:?} {pages:?}");
    for form in forms.iter().filter(|form| !pages.contains(form)) {
        let path = form.replace(['{', '}'], "");
        let answer = sent(client.get(format!("{at}{path}")));
        assert_eq!(answer.status(), 303, "{path}");
        let to = answer.headers()[LOCATION].to_str().unwrap();
        assert!(path.starts_with(to) && to != path, "{path} leads to {to}");
    }
    assert_eq!(sent(client.get(format!("{at}/no/such/page"))).status(), 404);
}
