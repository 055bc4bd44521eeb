//! The pages of the dashboard, in a real browser and as attackers see them.

mod commerce;
mod docs;
mod engines;
mod instances;
mod lists;
mod mails;
mod operators;
mod pictures;
mod releases;
mod settings;
mod source;
mod templates;

use crate::support::{
    browser::Browser,
    pages::Judge,
    service::{Person, Service, person},
};
use fantoccini::key::Key;
use reqwest::{
    blocking::{Client, RequestBuilder, Response},
    header::{ACCEPT, CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE},
    redirect::Policy,
};
use serde_json::json;

const PASSWORD: &str = "correct horse";

/// A browser, and what judges its pages. `None` where a program is missing.
pub fn start(test: &str) -> Option<(Browser, Judge)> {
    Some((Browser::start(test)?, Judge::start(test)?))
}

/// Makes an account on the page, which leads to the start. Its rate limit is taken away: a browser that
/// is driven is faster than people. Returns the person, with another session.
fn register(browser: &Browser, service: &Service, email: &str) -> Person {
    browser.open(&format!("{}/register", service.dashboard()));
    browser.fill("textbox", "Name", "Ada <script>alert(1)</script>");
    browser.fill("textbox", "E-mail", email);
    browser.fill("textbox", "Password", PASSWORD);
    browser.click("button", "Make the account");
    browser.find("heading", "Home");
    let credentials = json!({"email": email, "password": PASSWORD});
    let who = person(&service.call(None, "loginWithEmail", credentials).ok());
    unlimited(service, &who);
    who
}

/// Takes away the rate limit of an account.
fn unlimited(service: &Service, who: &Person) {
    let tier = json!({"userId": who.id, "tier": "enterprise"});
    service.call(Some(&service.administrator()), "svc_admin_setTier", tier).ok();
}

/// Signs in on the page, which leads to the start.
fn sign_in(browser: &Browser, service: &Service, email: &str, password: &str) {
    browser.open(&format!("{}/sign-in", service.dashboard()));
    browser.fill("textbox", "E-mail", email);
    browser.fill("textbox", "Password", password);
    browser.click("button", "Sign in");
    browser.find("heading", "Home");
}

/// Ends all sessions of an account, as its owner does from another machine.
fn end_sessions(service: &Service, email: &str) {
    let credentials = json!({"email": email, "password": PASSWORD});
    let signed_in = service.call(None, "loginWithEmail", credentials).ok();
    let ada = person(&signed_in);
    let change = json!({"currentPassword": PASSWORD, "newPassword": PASSWORD});
    service.call(Some(&ada), "changePassword", change).ok();
}

#[test]
fn the_printed_link_makes_the_first_administrator_once() {
    let test = "the_printed_link_makes_the_first_administrator_once";
    let Some((browser, judge)) = start(test) else { return };
    let service = Service::start();
    let link = service.printed("/first-start?token=");
    browser.open(&link);
    judge.page(&browser, "first-start");
    browser.fill("textbox", "E-mail", "grace@example.com");
    browser.fill("textbox", "Password", "short");
    browser.click("button", "Become the administrator");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "E-mail"), "grace@example.com");
    browser.fill("textbox", "Password", PASSWORD);
    browser.click("button", "Become the administrator");
    browser.find("heading", "Home");
    browser.says("grace");
    // At 127.0.0.1 is the same page, and one administrator is enough.
    browser.open(&link.replace("localhost", "127.0.0.1"));
    browser.says("This server has an administrator.");
    assert_eq!(browser.url(), format!("{}/sign-in", service.dashboard()));
}

#[test]
fn a_team_begins_in_a_browser() {
    let Some((browser, judge)) = start("a_team_begins_in_a_browser") else { return };
    begin(&browser, |page| judge.page(&browser, page));
}

#[test]
fn a_team_begins_without_scripts() {
    let Some(browser) = Browser::start_without_scripts("a_team_begins_without_scripts") else {
        return;
    };
    begin(&browser, |_| ());
}

fn begin(browser: &Browser, judge: impl Fn(&str)) {
    let service = Service::start();
    browser.open(&format!("{}/organizations", service.dashboard()));
    browser.find("heading", "Sign in");
    register(browser, &service, "ada@example.com");
    browser.says("Ada <script>alert(1)</script>");
    judge("home-new");
    browser.click("link", "Make the first project");
    browser.says("Make the first one.");

    // What is refused stays in the form, with the reason at its field.
    browser.fill("textbox", "Description", "Our shop");
    browser.fill("textbox", "Name", &"n".repeat(300));
    browser.click("button", "Make the project");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Description"), "Our shop");
    browser.fill("textbox", "Name", "Shop \"&<b>");
    judge("new-project");
    browser.click("button", "Make the project");
    browser.find("heading", "Shop \"&<b>");
    browser.says("The project is there.");
    browser.fill("textbox", "Name", "Market");
    browser.click("button", "Make the app");
    browser.find("heading", "Market");
    browser.says("Drop a signed file here");
    judge("app");
    browser.click("link", "Artifacts");
    browser.says("No artifacts yet.");

    // A session that ends in the middle of a form loses nothing.
    browser.click("link", "Shop \"&<b>");
    browser.click("link", "Settings");
    browser.fill("textbox", "Description", "Open at night");
    end_sessions(&service, "ada@example.com");
    browser.click("button", "Save");
    browser.says("What you entered is kept");
    browser.fill("textbox", "E-mail", "ada@example.com");
    browser.fill("textbox", "Password", PASSWORD);
    browser.click("button", "Sign in");
    browser.click("button", "Send it");
    browser.says("Open at night");

    // A form of secrets is sent again, and asks for them.
    browser.click("link", "Ada <script>alert(1)</script>");
    browser.fill("textbox", "Current password", PASSWORD);
    browser.fill("textbox", "New password", "another password");
    end_sessions(&service, "ada@example.com");
    browser.click("button", "Change the password");
    browser.fill("textbox", "E-mail", "ada@example.com");
    browser.fill("textbox", "Password", PASSWORD);
    browser.click("button", "Sign in");
    browser.click("button", "Send it");
    browser.find("alert", "");
    browser.find("heading", "Account");

    // The token of an invitation stands on one page, once.
    browser.click("link", "Organizations");
    browser.fill("textbox", "Name", "Acme \"&<b>");
    browser.click("button", "Make the organization");
    browser.find("heading", "Acme \"&<b>");
    browser.fill("textbox", "E-mail", "grace@example.com");
    browser.click("button", "Send the invitation");
    browser.find("heading", "grace@example.com is invited");
    browser.says("This server sends no mail: pass the link on.");
    browser.says("/invitations?token=svc_inv_");
    judge("invited");
    browser.click("link", "Back to the organization");
    browser.click("DisclosureTriangle", "Withdraw the invitation of grace@example.com");
    browser.click("button", "Withdraw the invitation of grace@example.com");
    browser.says("The invitation is withdrawn.");
    browser.fill("textbox", "Name", "Acme & Sons");
    browser.click("button", "Save");
    browser.find("heading", "Acme & Sons");
    judge("organization");

    // Only its name deletes it.
    browser.click("link", "Projects");
    browser.click("link", "Shop \"&<b>");
    browser.click("link", "Settings");
    browser.fill("textbox", "Name of the project", "Shop");
    browser.click("button", "Delete the project");
    browser.says("is not the name of the project");
    browser.fill("textbox", "Name of the project", "Shop \"&<b>");
    browser.click("button", "Delete the project");
    browser.says("The project is deleted.");
    browser.click("button", "Sign out");
    browser.find("heading", "Sign in");
    judge("sign-in");
}

/// A client that is no browser, and follows nothing.
fn client() -> Client {
    Client::builder().redirect(Policy::none()).build().unwrap()
}

fn sent(request: RequestBuilder) -> Response {
    request.send().unwrap()
}

#[test]
fn pages_of_other_sites_and_rebound_names_are_refused() {
    let service = Service::start();
    let (client, at) = (client(), service.dashboard());
    let page = sent(client.get(format!("{at}/sign-in")));
    let said = |header: &str| page.headers()[header].to_str().unwrap().to_owned();
    assert!(!said("x-request-id").is_empty());
    let [limit, left, reset] = ["limit", "remaining", "reset"]
        .map(|name| said(&format!("x-ratelimit-{name}")).parse::<u64>().unwrap());
    assert!(left <= limit && reset > 0, "{left} of {limit}, {reset}");
    // A page counts as one call, and says so.
    let ada = service.register_free("ada");
    let cookie = format!("__Host-svc-session={}", ada.token.replace(':', "%3A"));
    let left = || {
        let page = sent(client.get(&at).header(COOKIE, &cookie).header("X-Request-Id", "page-1"));
        assert_eq!(
            (page.status().as_u16(), page.headers()["x-request-id"].to_str().unwrap()),
            (200, "page-1")
        );
        page.headers()["x-ratelimit-remaining"].to_str().unwrap().parse::<i64>().unwrap()
    };
    let (first, second) = (left(), left());
    assert!((0..=1).contains(&(first - second)), "{first} {second}");
    for (header, part) in [
        ("content-security-policy", "default-src 'none'"),
        ("content-security-policy", "frame-ancestors 'none'"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        let value = page.headers()[header].to_str().unwrap();
        assert!(value.contains(part), "{header}: {value}");
    }
    let html = page.text().unwrap();
    assert!(!html.contains("<script>") && !html.contains(" style="), "{html}");

    let fields = [("email", "ada@example.com"), ("password", PASSWORD), ("formToken", "")];
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    let body = body.extend_pairs(fields).finish();
    let form = || {
        let kind = (CONTENT_TYPE, "application/x-www-form-urlencoded");
        client.post(format!("{at}/register")).header(kind.0, kind.1).body(body.clone())
    };
    for (name, request) in [
        ("no origin", form()),
        ("another origin", form().header(ORIGIN, "https://evil.example")),
        ("another site", form().header(ORIGIN, &at).header("Sec-Fetch-Site", "cross-site")),
        ("an instance's page", form().header(ORIGIN, &service.url)),
        (
            "a rebound name",
            form().header(ORIGIN, "http://evil.example").header(HOST, "evil.example"),
        ),
    ] {
        let refused = sent(request);
        assert_eq!(refused.status(), 400, "{name}");
        assert!(!refused.headers().contains_key(SET_COOKIE), "{name}");
    }
    let own = at.trim_start_matches("http://").to_owned();
    let rebound = || client.get(format!("{at}/sign-in")).header(HOST, "evil.example");
    assert_eq!(sent(rebound()).status(), 400);
    assert_eq!(sent(rebound().header("X-Forwarded-Host", &own)).status(), 400);
    assert_eq!(sent(rebound().header("Forwarded", format!("host={own}"))).status(), 400);
    // What is no cursor is told on a page.
    let cursor = sent(client.get(format!("{at}/account/tokens?cursor=..")));
    assert_eq!(cursor.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
    // The token of the form of somebody else's session.
    let forged = form().header(ORIGIN, &at).header(COOKIE, "__Host-svc-session=r%3Aother");
    assert_eq!(sent(forged).status(), 401);
    // The address of the service leads browsers here, and tells programs that nothing is there.
    let opened = || client.get(format!("{}/", service.url));
    let led = sent(opened().header(ACCEPT, "text/html,application/xhtml+xml,*/*;q=0.8"));
    assert_eq!((led.status().as_u16(), led.headers()[LOCATION].to_str().unwrap()), (303, &*at));
    assert!(led.headers().contains_key("x-request-id"));
    assert_eq!(sent(opened().header(ACCEPT, "*/*")).status(), 404);
    // No page is on the address that forwards to instances.
    assert_eq!(sent(client.get(format!("{}/sign-in", service.url))).status(), 404);
}

#[test]
fn each_function_has_a_page_whose_example_it_understands() {
    let Some((browser, judge)) = start("each_function_has_a_page_whose_example_it_understands")
    else {
        return;
    };
    let service = Service::start();
    let administrator = service.administrator();
    let mut misunderstood = Vec::new();
    // The example of each function has the right form. What it is about does not exist.
    for spec in contract::PUBLISHED.iter().flat_map(|group| group.functions) {
        // The first ends the session. The certificates in the example of the second are none.
        if ["logout", "svc_admin_addEngine"].contains(&spec.name) {
            continue;
        }
        let example = contract::example::params(spec);
        let answer = service.call(Some(&administrator), spec.name, example.clone());
        if !answer.body["details"].is_null() {
            misunderstood.push(format!("{}: {example} {}", spec.name, answer.body["error"]));
        }
    }
    assert_eq!(misunderstood, Vec::<String>::new());

    register(&browser, &service, "grace@example.com");
    browser.click("link", "Reference");
    judge.page(&browser, "reference");
    browser.fill("searchbox", "Search", "create project");
    browser.click("button", "Search functions");
    browser.click("link", "svc_createProject");
    judge.page(&browser, "function");
    browser.fill("textbox", "Parameters", r#"{"name": ""}"#);
    browser.click("button", "Call svc_createProject");
    browser.says("Answer: HTTP 400");
    assert_eq!(browser.value("textbox", "Parameters"), r#"{"name": ""}"#);
    browser.fill("textbox", "Parameters", r#"{"name": "By console"}"#);
    browser.click("button", "Call svc_createProject");
    browser.says("Answer: HTTP 200");
    // The search finds it, with its own page and without.
    browser.click("link", "Search");
    browser.find("dialog", "Search");
    browser.fill("combobox", "Apps, versions, files, people, pages and functions", "no such place");
    browser.says("Nothing found");
    // Enter waits for the newest answer. Arrows leave the focus in the field.
    browser.fill("combobox", "Apps, versions, files, people, pages and functions", "by conso");
    browser.find("option", "By console");
    judge.page(&browser, "palette");
    browser.keys(&Key::Down.to_string());
    browser.keys("le");
    assert_eq!(
        browser.value("combobox", "Apps, versions, files, people, pages and functions"),
        "by console"
    );
    browser.find("option", "By console");
    browser.keys(&format!("{}{}templates\n", Key::Control + "a", Key::Null));
    browser.find("heading", "Templates");
    browser.click("link", "Search");
    browser.fill("combobox", "Apps, versions, files, people, pages and functions", "console\n");
    browser.find("heading", "By console");
    browser.open(&format!("{}/search?q=by+console", service.dashboard()));
    judge.page(&browser, "search");
    browser.click("link", "By console");
    browser.find("heading", "By console");
}
