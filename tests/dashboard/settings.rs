//! The settings of an account: deploy tokens, trusted publishers and webhooks.

use super::{register, start};
use crate::support::{
    browser::Browser,
    requires,
    service::{Person, Service, eventually},
    webhooks::Receiver,
};
use serde_json::{Value, json};

/// The word of the page that begins like this: a secret that is shown once.
fn word(browser: &Browser, begin: &str) -> String {
    browser.says(begin);
    let text = browser.text();
    let found = text.split_whitespace().find(|word| word.starts_with(begin));
    found.unwrap_or_else(|| panic!("no {begin} in {text}")).to_owned()
}

/// Asks for an upload with a deploy token.
fn upload(service: &Service, token: &str, app: &Value) -> (u16, Value) {
    let with_token = Person { id: String::new(), email: String::new(), token: token.to_owned() };
    let opening =
        json!({"appId": app, "platform": "android", "fileName": "a.apk", "version": "1.0.0"});
    let answer = service.post(Some(&with_token), "upload-url", &opening);
    (answer.status, answer.body)
}

#[test]
fn a_deploy_token_is_shown_once_works_and_is_revoked() {
    let Some((browser, judge)) = start("a_deploy_token_is_shown_once_works_and_is_revoked") else {
        return;
    };
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let ada = register(&browser, &service, "ada@example.com");
    let (_, app) = service.project_with_app(&ada, None);

    browser.click("link", "Ada <script>alert(1)</script>");
    browser.says("unlimited");
    judge.page(&browser, "account");
    browser.click("link", "Audit log");
    browser.says("svc_createProject");
    browser.fill("searchbox", "Function", "createApp");
    browser.click("button", "Search the audit log");
    eventually("only what was looked for", || {
        let text = browser.text();
        text.contains("createApp") && !text.contains("svc_createProject")
    });
    judge.page(&browser, "account-audit");
    browser.open(&format!("{}/account", service.dashboard()));
    browser.click("link", "Deploy tokens");
    browser.says("No deploy tokens yet.");
    // Without a scope it is refused, and what was entered stays.
    browser.fill("textbox", "Name", "CI \"<b>&");
    browser.click("button", "Make the token");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Name"), "CI \"<b>&");
    browser.click("checkbox", "artifact:upload uploads artifacts");
    judge.page(&browser, "new-token");
    browser.click("button", "Make the token");
    browser.says("This page shows the token once.");
    judge.page(&browser, "token-made");
    let token = word(&browser, "svc_dt_");
    assert_eq!(upload(&service, &token, &app).0, 201);

    browser.click("link", "I have stored it");
    browser.says("CI \"<b>&");
    assert!(!browser.text().contains(&token));
    judge.page(&browser, "tokens");
    browser.click("DisclosureTriangle", "Revoke CI \"<b>&");
    browser.says("Jobs that have it are refused from now on.");
    judge.page(&browser, "token-revoke");
    assert_eq!(
        upload(&service, &token, &app).0,
        201,
        "nothing is revoked without the second click"
    );
    browser.click("button", "Revoke CI \"<b>&");
    browser.says("The token CI \"<b>& is revoked.");
    assert_eq!(upload(&service, &token, &app).0, 401);

    // A token of the app, and a workflow that needs none.
    browser.open(&format!("{}/apps/{}/access", service.dashboard(), app.as_str().unwrap()));
    browser.fill("textbox", "Repository on GitHub", "no repository");
    browser.fill("textbox", "Workflow", "build.yml");
    browser.fill("textbox", "Branch or tag", "refs/tags/v*");
    browser.fill("textbox", "Events", "no event!, push");
    browser.click("button", "Trust the workflow");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Workflow"), "build.yml");
    assert_eq!(browser.value("textbox", "Events"), "no event!, push");
    browser.fill("textbox", "Repository on GitHub", "acme/app");
    browser.fill("textbox", "Events", "push, release");
    browser.click("button", "Trust the workflow");
    browser.says("The workflow build.yml of acme/app is trusted.");
    browser.says("refs/tags/v*");
    browser.says("push, release");
    browser.fill("textbox", "Name", "of the app");
    browser.click("checkbox", "artifact:upload uploads artifacts");
    browser.click("button", "Make the token");
    let token = word(&browser, "svc_dt_");
    assert_eq!(upload(&service, &token, &json!("app_00000000000000000000000000")).0, 404);
    browser.click("link", "I have stored it");
    judge.page(&browser, "access");
    browser.click("DisclosureTriangle", "Remove build.yml of acme/app");
    browser.click("button", "Remove build.yml of acme/app");
    browser.says("No trusted publishers yet.");
}

#[test]
fn all_other_sessions_end_at_once() {
    let Some((browser, _)) = start("all_other_sessions_end_at_once") else { return };
    let service = Service::start();
    let elsewhere = register(&browser, &service, "grace@example.com");
    browser.open(&format!("{}/account", service.dashboard()));
    browser.click("DisclosureTriangle", "End all other sessions");
    browser.click("button", "End all other sessions");
    browser.says("The other session is over.");
    let refused = service.call(Some(&elsewhere), "getCurrentUser", json!({}));
    assert_eq!(refused.refusal(), (401, 119));
    browser.find("heading", "Sessions");
}

#[test]
fn an_app_is_renamed_gets_a_rule_and_is_deleted() {
    let Some((browser, judge)) = start("an_app_is_renamed_gets_a_rule_and_is_deleted") else {
        return;
    };
    let service = Service::start();
    let ada = register(&browser, &service, "ada@example.com");
    let (_, app) = service.project_with_app(&ada, None);
    let app = app.as_str().unwrap();
    browser.open(&format!("{}/apps/{app}", service.dashboard()));
    browser.click("link", "Settings");
    browser.fill("textbox", "Name", "Market \"&<b>");
    browser.fill("textbox", "Android package name", "com.example.svcsample");
    browser.click("button", "Save");
    browser.find("heading", "Market \"&<b>");
    // A rule is refused with its reason, and what was entered stays.
    browser.fill("textbox", "Channel", "No Channel");
    browser.choose("Least trust", "Uploaded with a deploy token");
    browser.click("button", "Set the rule");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Channel"), "No Channel");
    assert_eq!(browser.value("textbox", "Name"), "Market \"&<b>");
    browser.fill("textbox", "Channel", "production");
    browser.click("button", "Set the rule");
    browser.says("production has this rule now.");
    judge.page(&browser, "app-settings");
    browser.fill("textbox", "Channel", "production");
    browser.click("button", "Set the rule");
    browser.says("production has no rule any more.");

    // The search finds the app by its new name, and its tabs.
    browser.keys("/");
    browser.fill("combobox", "Apps, versions, files, people, pages and functions", "market sett");
    browser.find("option", "Market \"&<b>: Settings");
    judge.page(&browser, "palette-tabs");
    browser.keys("\n");
    browser.fill("textbox", "Name of the app", "Market");
    browser.click("button", "Delete the app");
    browser.says("is not the name of the app");
    browser.fill("textbox", "Name of the app", "Market \"&<b>");
    browser.click("button", "Delete the app");
    browser.says("The app is deleted.");

    // The colours are those that a person chose, on every page.
    browser.click("button", "Dark");
    browser.find("heading", "Shop");
    browser.click("link", "Organizations");
    browser.find("heading", "Organizations");
    let scheme = "arguments[0](getComputedStyle(document.documentElement).colorScheme)";
    assert_eq!(browser.run_async(scheme), "dark");
}

#[test]
fn a_webhook_is_made_tested_and_delivers_again() {
    let test = "a_webhook_is_made_tested_and_delivers_again";
    let Some((browser, judge)) = start(test) else { return };
    if !requires::node_packages(test, "webhooks") {
        return;
    }
    let receiver = Receiver::start();
    let service = Service::start_with(&[("SVC_WEBHOOK_PRIVATE_HOSTS", &receiver.host)]);
    let ada = register(&browser, &service, "ada@example.com");
    let organization = json!({"name": "A&B <script>"});
    service.call(Some(&ada), "createOrganization", organization).ok();

    browser.open(&format!("{}/account/webhooks", service.dashboard()));
    browser.click("link", "Webhooks of A&B <script>");
    browser.says("No webhooks yet.");
    browser.fill("textbox", "Description", "Ours \"&<b>");
    browser.fill("textbox", "Address", "http://hooks.example.com/svc");
    browser.click("button", "Make the webhook");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Description"), "Ours \"&<b>");
    browser.fill("textbox", "Address", &receiver.url("/svc"));
    judge.page(&browser, "new-webhook");
    browser.click("button", "Make the webhook");
    browser.says("This page shows the secret once.");
    let first = word(&browser, "whsec_");
    receiver.verify_with(&json!({"first": first}));
    browser.click("link", "I have stored it");
    browser.says("No deliveries in the last 30 days.");
    assert!(!browser.text().contains("whsec_"));

    browser.click("button", "Send a test");
    browser.find("heading", "Delivery of webhook.test");
    let delivered = |what: &str| {
        eventually(what, || {
            browser.open(&browser.url());
            browser.text().contains("Succeeded")
        });
    };
    delivered("the test arrives");
    judge.page(&browser, "delivery");
    assert_eq!(receiver.wait_for("/svc", 1)[0].verified_by, ["first"]);
    browser.click("button", "Deliver again");
    browser.says("Repeats");
    delivered("it arrives again");
    let received = receiver.wait_for("/svc", 2);
    assert_eq!(received[0].id, received[1].id);

    browser.click("link", "Webhook");
    judge.page(&browser, "webhook");
    browser.click("DisclosureTriangle", "Rotate the secret");
    browser.click("button", "Rotate the secret");
    browser.says("This page shows the secret once.");
    assert_ne!(word(&browser, "whsec_"), first);
    browser.click("link", "I have stored it");
    browser.click("checkbox", "Send events");
    browser.click("button", "Save");
    browser.says("Disabled");

    browser.fill("textbox", "Address of the webhook", "that one");
    browser.click("button", "Delete the webhook");
    browser.says("is not the address of the webhook");
    browser.fill("textbox", "Address of the webhook", &receiver.url("/svc"));
    browser.click("button", "Delete the webhook");
    browser.says("The webhook is deleted.");
}
