//! The pages of operators, while something goes wrong.

use super::{PASSWORD, client, sent, sign_in, start, unlimited};
use crate::support::service::{Person, Service, administrator, eventually};
use reqwest::header::COOKIE;
use serde_json::{Value, json};

/// Panics in the owner of a project until the owner gives up.
fn park(service: &Service, (ada, admin): (&Person, &Person), project: &Value) {
    let panic = json!({"projectId": project, "place": "owner", "message": "</td><script>oh no"});
    let state = || {
        let params = json!({"query": project, "kind": "project"});
        service.call(Some(admin), "svc_admin_getActors", params).ok()["items"][0]["state"].clone()
    };
    for _ in 0..30 {
        if state() == "gaveUp" {
            return;
        }
        service.call(Some(ada), "svc_test_panic", panic.clone());
    }
    panic!("restarts are not bounded");
}

/// A page without scripts, as its HTML.
pub fn html(service: &Service, who: &Person, path: &str) -> String {
    let session = format!("__Host-svc-session={}", who.token.replace(':', "%3A"));
    let page = client().get(format!("{}{path}", service.dashboard())).header(COOKIE, session);
    sent(page).text().unwrap()
}

#[test]
fn a_parked_actor_asks_for_attention_and_is_restarted_on_the_page() {
    let test = "a_parked_actor_asks_for_attention_and_is_restarted_on_the_page";
    let Some((browser, judge)) = start(test) else { return };
    let service = Service::start();
    let (ada, admin) = (service.register("ada"), service.administrator());
    unlimited(&service, &admin);
    let name = "Shop \"&<script>alert(1)</script>";
    let project = service.call(Some(&ada), "svc_createProject", json!({"name": name})).ok();
    let id = project["id"].as_str().unwrap();

    // Only superadmins see them.
    sign_in(&browser, &service, &ada.email, PASSWORD);
    assert!(!browser.text().contains("Operations"));
    browser.open(&format!("{}/operations", service.dashboard()));
    browser.find("heading", "Not allowed");
    browser.click("button", "Sign out");
    browser.find("heading", "Sign in");

    let (email, password) = (administrator()["email"].clone(), administrator()["password"].clone());
    sign_in(&browser, &service, email.as_str().unwrap(), password.as_str().unwrap());
    browser.click("link", "Operations");
    browser.find("heading", "Needs attention");
    let restart = format!("Restart {id}");
    assert!(!browser.text().contains("Parked actor"));

    // It appears on the open page by itself, first of all that an operator can mend.
    park(&service, (&ada, &admin), &project["id"]);
    browser.find("button", &restart);
    browser.says("Parked actor");
    browser.says("</td><script>oh no");
    // What appears moves what is below it. The page is judged as it loads.
    browser.open(&browser.url());
    browser.says("Parked actor");
    judge.page(&browser, "operations");
    let plain = html(&service, &admin, "/operations");
    assert!(plain.contains("Parked actor") && plain.contains("&#60;script&#62;oh no"), "{plain}");

    // A terminal shows the same.
    let login = ["login", "--email", &admin.email, "--password-stdin", "--application-id"];
    let login = [&login[..], &[&service.application_id, "--api-url", &service.url]].concat();
    assert!(service.cli_with(&login, &[], password.as_str().unwrap()).status.success());
    let told = service.cli_json(&["top"], &[]);
    let entry = &told["attention"].as_array().unwrap().iter();
    let entry = entry.clone().find(|entry| entry["subject"] == *id).unwrap();
    assert_eq!(
        (&entry["reason"], &entry["action"]),
        (&json!("actorGaveUp"), &json!("restartActor"))
    );
    assert_eq!(told["readiness"]["status"], "degraded");
    assert!(told["disk"]["freeBytes"].as_u64().unwrap() > 0, "{told}");
    let shown = String::from_utf8(service.cli(&["top", "--once"]).stdout).unwrap();
    assert!(shown.contains("Parked actor"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "a pipe gets no colours: {shown}");

    // The search finds the actor, and its filters stay.
    browser.fill("searchbox", "Id contains", id);
    browser.choose("State", "parked");
    browser.click("button", "Search");
    browser.says("1 found.");
    browser.find("button", &format!("Restart the actor {id}"));
    assert_eq!(browser.value("searchbox", "Id contains"), id);

    browser.click("button", &restart);
    browser.says(&format!("The actor {id} is restarted."));
    eventually("the entry goes", || !browser.text().contains("Parked actor"));
    assert!(!browser.text().contains("Crash loop"), "the operator knows of it: {}", browser.text());
    let renamed = json!({"projectId": id, "name": "Shop"});
    service.call(Some(&ada), "svc_updateProject", renamed).ok();
}

#[test]
fn an_announcement_stands_on_every_page() {
    let Some((browser, judge)) = start("an_announcement_stands_on_every_page") else { return };
    let service = Service::start();
    let (ada, admin) = (service.register("ada"), service.administrator());
    let announce = |text: &str, tone: &str| {
        let params = json!({"text": text, "tone": tone});
        service.call(Some(&admin), "svc_createAnnouncement", params).ok()["id"].clone()
    };
    announce("Builds of iOS are back.", "info");
    let maintenance = announce("Maintenance <b>at 20:00</b>", "warning");
    sign_in(&browser, &service, &ada.email, PASSWORD);
    browser.says("Maintenance <b>at 20:00</b>");
    browser.says("Builds of iOS are back.");
    judge.page(&browser, "announcements");
    for path in ["/account", "/templates", "/no-such-page"] {
        assert!(html(&service, &ada, path).contains("Builds of iOS are back."), "{path}");
    }
    let maintenance = json!({"announcementId": maintenance});
    service.call(Some(&admin), "svc_deleteAnnouncement", maintenance).ok();
    assert!(!html(&service, &ada, "/account").contains("Maintenance"));
    // Who is not signed in is told nothing.
    browser.click("button", "Sign out");
    browser.find("heading", "Sign in");
    assert!(!browser.text().contains("Builds of iOS are back."));
}

#[test]
fn an_operator_finds_people_and_what_they_did() {
    let Some((browser, judge)) = start("an_operator_finds_people_and_what_they_did") else {
        return;
    };
    let service = Service::start();
    let admin = service.administrator();
    unlimited(&service, &admin);
    let ada = service.register_free("ada");
    service.call(Some(&ada), "createOrganization", json!({"name": "A&B <script>"})).ok();
    let password = administrator()["password"].clone();
    sign_in(&browser, &service, &admin.email, password.as_str().unwrap());
    browser.click("link", "Operations");

    browser.click("link", "Users");
    browser.fill("searchbox", "E-mail, name or id", &ada.email);
    browser.click("button", "Search");
    browser.choose(&format!("Tier of {}", ada.email), "developer");
    judge.page(&browser, "operations-users");
    browser.click("button", &format!("Set the tier of {}", ada.email));
    browser.says("ada@example.com has the tier developer.");

    // An account for somebody else: the link stands on one page, and works once.
    browser.fill("textbox", "Name", "Grace \"&<b>");
    browser.fill("textbox", "E-mail", "ada@example.com");
    browser.click("button", "Make the account");
    browser.says("an account with this e-mail exists");
    assert_eq!(browser.value("textbox", "Name"), "Grace \"&<b>");
    browser.fill("textbox", "E-mail", "grace@example.com");
    browser.click("button", "Make the account");
    browser.says("/reset-password?token=");
    judge.page(&browser, "user-made");
    let text = browser.text();
    let link = text.split_whitespace().find(|word| word.contains("?token=")).unwrap().to_owned();
    browser.click("link", "I have passed it on");
    browser.find("button", "Make the account");
    assert!(!browser.text().contains("?token="));
    browser.open(&link);
    browser.fill("textbox", "New password", PASSWORD);
    browser.click("button", "Set the password");
    browser.find("heading", "Sign in");
    let grace = json!({"email": "grace@example.com", "password": PASSWORD});
    assert_eq!(service.call(None, "loginWithEmail", grace).ok()["user"]["name"], "Grace \"&<b>");
    sign_in(&browser, &service, &admin.email, password.as_str().unwrap());
    browser.click("link", "Operations");

    browser.click("link", "All organizations");
    browser.find("searchbox", "Name or id");
    browser
        .open(&format!("{}/operations/organizations?query=%26b%20%3Cscript", service.dashboard()));
    browser.find("link", "A&B <script>");

    browser.click("link", "Usage");
    browser.choose("Quota", "Members");
    browser.click("button", "Show");
    browser.find("link", "A&B <script>");
    judge.page(&browser, "operations-usage");
    browser.click("link", "A&B <script>");
    browser.find("heading", "Quotas");
    judge.page(&browser, "organization-quotas");
    browser.click("link", "Operations");

    browser.click("link", "Audit log");
    browser.fill("searchbox", "Function", "svc_admin_setTier");
    browser.fill("searchbox", "Object id", &ada.id);
    browser.click("button", "Search");
    browser.find("link", &ada.id);
    judge.page(&browser, "operations-audit");
    // What is refused stays in the form, with the reason at its field.
    browser.fill("searchbox", "User id", "nobody <b>");
    browser.click("button", "Search");
    browser.find("alert", "");
    assert_eq!(browser.value("searchbox", "User id"), "nobody <b>");
    assert_eq!(browser.value("searchbox", "Function"), "svc_admin_setTier");
}
