//! The pictures of the README, of a team's server. `make pictures` takes them again.

use super::{PASSWORD, sign_in};
use crate::support::{
    browser::Browser,
    service::{Person, Service, administrator},
};
use serde_json::{Value, json};
use std::path::Path;

#[test]
#[ignore = "writes docs/screenshots: see `make pictures`"]
fn pictures_of_the_readme() {
    let Some(browser) = Browser::start("pictures_of_the_readme") else { return };
    let service = Service::start();
    let mira = service.register("mira");
    service.call(Some(&mira), "updateProfile", json!({"name": "Mira Okafor"})).ok();
    let app = team(&service, &mira);
    sign_in(&browser, &service, &mira.email, PASSWORD);
    let at = service.dashboard();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/screenshots");
    let take = |name: &str, page: &str, width: u32, scheme: &str| {
        browser.prefer(scheme);
        browser.set_size(width, 800);
        browser.open(&format!("{at}/{page}"));
        browser.picture(&folder.join(format!("{name}.png")), 800);
    };
    for (name, page, width, scheme) in [
        ("app", format!("apps/{app}"), 1280, "light"),
        ("app-phone", format!("apps/{app}"), 390, "dark"),
        ("home", String::new(), 1280, "dark"),
        ("release", format!("apps/{app}/releases/new"), 1280, "light"),
        ("activity", "activity".to_owned(), 1280, "light"),
    ] {
        take(name, &page, width, scheme);
    }
    browser.set_size(1280, 800);
    browser.click("button", "Sign out");
    let admin = service.administrator();
    sign_in(&browser, &service, &admin.email, administrator()["password"].as_str().unwrap());
    take("operations", "operations", 1280, "light");
}

/// Two apps of a team, the first with a release in three channels. Returns that app.
fn team(service: &Service, mira: &Person) -> String {
    let call = |function: &str, params: Value| service.call(Some(mira), function, params).ok();
    let organization = call("createOrganization", json!({"name": "Café Zürich"}))["id"].clone();
    let project = json!({"name": "Café Zürich", "organizationId": organization});
    let project = call("svc_createProject", project)["id"].clone();
    let apps = ["Röstlade", "Barista Academy", "Bestellen"]
        .map(|name| call("createApp", json!({"projectId": project, "name": name}))["id"].clone());
    let [market, academy, orders] = &apps;
    let release = |app: &Value, files: &[&str], version: &str, channel: &str, targets: &[&str]| {
        let artifacts =
            files.iter().map(|file| service.upload(mira, app, file, version)["id"].clone());
        let artifacts: Vec<_> = artifacts.collect();
        let params = json!({"appId": app, "artifactIds": artifacts, "channel": channel,
            "notes": "Gift cards at checkout, and a faster start."});
        let release = call("svc_createRelease", params)["id"].clone();
        if !targets.is_empty() {
            call("svc_publishRelease", json!({"releaseId": release, "targets": targets}));
        }
    };
    release(market, &["sample.apk"], "1.4.2", "production", &["ota"]);
    release(academy, &["sample-1.5.0.apk"], "1.5.0", "beta", &["ota"]);
    release(orders, &["sample.apk", "sample.ipa"], "1.4.2", "production", &["ota"]);
    release(orders, &["sample-1.5.0.apk", "sample-1.5.0.ipa"], "1.5.0", "internal", &["ota"]);
    release(orders, &["sample-1.5.0.apk", "sample-1.5.0.ipa"], "1.5.0", "beta", &["ota"]);
    release(orders, &["sample-1.5.0.apk", "sample-1.5.0.ipa"], "1.5.0", "production", &[]);
    orders.as_str().unwrap().to_owned()
}
