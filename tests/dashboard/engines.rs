//! The container engines, as operators add, drain and remove them in a browser.

use super::{sign_in, start, unlimited};
use crate::{
    daemons::Daemon,
    support::service::{Service, administrator, eventually},
};

#[test]
fn an_operator_adds_an_engine_drains_it_and_removes_it() {
    let test = "an_operator_adds_an_engine_drains_it_and_removes_it";
    let Some((browser, judge)) = start(test) else { return };
    let Some(mut daemon) = Daemon::start_with_tls(test) else { return };
    let service = Service::start();
    unlimited(&service, &service.administrator());
    let (email, password) = (administrator()["email"].clone(), administrator()["password"].clone());
    sign_in(&browser, &service, email.as_str().unwrap(), password.as_str().unwrap());
    browser.click("link", "Operations");
    browser.click("link", "Container engines");
    browser.find("heading", "Add an engine");
    browser.says("SVC_DOCKER_HOST");

    browser.fill("textbox", "Name", "second");
    browser.fill("textbox", "Address", &daemon.tls_address());
    browser.fill("textbox", "Private address", "203.0.113.7");
    browser.paste("textbox", "Authority of the engine", &daemon.pem("ca.pem"));
    browser.paste("textbox", "Certificate of the client", &daemon.pem("client.pem"));
    browser.paste("textbox", "Private key of the client", &daemon.pem("client-key.pem"));
    browser.paste("textbox", "Labels", "region=eu");
    browser.click("button", "Add the engine");
    // What was entered stays, but for the key.
    browser.says("must be an address of a private network");
    assert_eq!(browser.value("textbox", "Name"), "second");
    assert_eq!(browser.value("textbox", "Private key of the client"), "");
    browser.fill("textbox", "Private address", "127.0.0.2");
    browser.paste("textbox", "Private key of the client", &daemon.pem("client-key.pem"));
    browser.click("button", "Add the engine");
    browser.says("second is added.");
    eventually("it is reached", || {
        browser.open(&browser.url());
        browser.text().contains("Reachable")
    });
    judge.page(&browser, "operations-engines");

    browser.click("button", "Drain second");
    browser.says("second takes no more instances.");
    browser.click("button", "Take instances again second");
    browser.says("second takes instances again.");
    browser.click("link", "0 Instances on second");
    browser.says("There are none.");
    assert_eq!(browser.value("textbox", "Labels"), "region=eu\n");
    browser.fill("textbox", "Name", "spare");
    browser.paste("textbox", "Certificate of the client", &daemon.pem("client.pem"));
    browser.click("button", "Save");
    browser.says("give the key of the client too");
    browser.paste("textbox", "Certificate of the client", "");
    browser.paste("textbox", "Labels", "region=us");
    browser.click("button", "Save");
    browser.says("spare is changed.");
    browser.says("region=us");
    judge.page(&browser, "operations-engine");
    daemon.end("KILL");
    eventually("it is lost", || {
        browser.open(&browser.url());
        browser.text().matches("Unreachable").count() == 2
    });
    browser.click("DisclosureTriangle", "Remove spare");
    browser.says("if its machine is gone for good");
    browser.click("button", "Remove spare");
    browser.says("The engine is removed.");
    assert!(!browser.text().contains(&daemon.tls_address()));
}
