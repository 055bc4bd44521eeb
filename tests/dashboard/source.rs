//! The repository of an app, builds that are followed, and credentials.

use super::{PASSWORD, sign_in, start, unlimited};
use crate::support::{
    builds::{World, config},
    credentials::{self, KEYSTORE_PASSWORD},
    service::eventually,
};
use serde_json::json;
use std::path::Path;

/// A command that prints a line, waits until a file is there, and prints another one.
const SLOW: &str = "echo '<b>one</b> & two'; while [ ! -e go ]; do sleep 0.2; done; echo three";

#[test]
fn a_repository_is_connected_built_and_followed() {
    let test = "a_repository_is_connected_built_and_followed";
    let Some((browser, judge)) = start(test) else { return };
    let Some(world) = World::new(test) else { return };
    world.git.commit(&[("package.json", "{}".into()), config(SLOW)]);
    let at = world.service.dashboard();
    unlimited(&world.service, &world.ada);
    sign_in(&browser, &world.service, &world.ada.email, PASSWORD);
    browser.open(&format!("{at}/apps/{}/source", world.app.as_str().unwrap()));
    judge.page(&browser, "source-none");
    browser.fill("textbox", "Branch", "no such branch");
    browser.fill("textbox", "Address", "not an address");
    browser.click("button", "Connect the repository");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Branch"), "no such branch");
    browser.fill("textbox", "Branch", "main");
    browser.fill("textbox", "Address", &world.git.url);
    browser.click("button", "Connect the repository");
    browser.find("heading", "Repository Compatibility");
    browser.says("Artifact-only");
    browser.says(".github/workflows/svc-build.yml");
    judge.page(&browser, "source");
    browser.click("button", "Re-validate");
    browser.says("The repository was read again.");
    browser.click("button", "Show the webhook for pushes");
    browser.says("Secret");
    browser.click("link", "Back to the repository");

    // No runner is there yet, which the note after the trigger and the page of the build say.
    browser.click("link", "Builds");
    browser.click("button", "Trigger Build");
    browser.find("heading", "Android build");
    let warning = "has asked for builds";
    assert_eq!(browser.text().matches(warning).count(), 2, "{}", browser.text());
    // The commit comes to the open page, too, and moves what is below it.
    let id = json!(browser.url().rsplit('/').next());
    eventually("the commit is known", || !world.build(&id)["commit"].is_null());
    browser.open(&browser.url());
    browser.says(warning);
    judge.page(&browser, "build-warned");
    browser.click("button", "Cancel the build");
    browser.says("cancelled");

    // The log grows on the page while the build runs, and the state changes at its end.
    let runner = world.runner("builder", &[]);
    browser.click("link", "Builds");
    browser.says("Artifact-only");
    browser.fill("textbox", "Branch, tag or commit", "not a ref");
    browser.click("button", "Trigger Build");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Branch, tag or commit"), "not a ref");
    browser.fill("textbox", "Branch, tag or commit", "");
    browser.click("button", "Trigger Build");
    browser.find("heading", "Android build");
    browser.says("<b>one</b> & two");
    browser.says("Running");
    browser.open(&browser.url());
    judge.page(&browser, "build");
    browser.click("button", "Cancel the build");
    browser.says("cancelled");
    browser.click("link", "Builds");
    browser.find("button", "Trigger Build");
    judge.page(&browser, "builds");
    drop(runner);

    browser.click("link", "Source");
    browser.fill("textbox", "Address of the repository", "another");
    browser.click("button", "Disconnect the repository");
    browser.says("is not the address of the repository");
    browser.fill("textbox", "Address of the repository", &world.git.url);
    browser.click("button", "Disconnect the repository");
    browser.find("heading", "Connect a repository");
}

#[test]
fn a_credential_is_stored_checked_and_deleted() {
    let test = "a_credential_is_stored_checked_and_deleted";
    let Some((browser, judge)) = start(test) else { return };
    let Some(world) = credentials::World::new(test, &[]) else { return };
    let at = world.service.dashboard();
    unlimited(&world.service, &world.ada);
    sign_in(&browser, &world.service, &world.ada.email, PASSWORD);
    browser.open(&format!("{at}/apps/{}/credentials", world.app.as_str().unwrap()));
    judge.page(&browser, "credentials-none");
    browser.click("link", "Android keystore");
    browser.fill("textbox", "Name", "upload <key>");
    let keystore = world.path("upload.p12");
    browser.choose_file_of("#data", Path::new(&keystore));
    browser.fill("textbox", "Password of the file", "wrong");
    browser.click("button", "Store the credential");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Name"), "upload <key>");
    judge.page(&browser, "credentials-refused");
    browser.choose_file_of("#data", Path::new(&keystore));
    browser.fill("textbox", "Password of the file", KEYSTORE_PASSWORD);
    browser.click("button", "Store the credential");
    browser.says("The credential is stored.");
    judge.page(&browser, "credentials");
    assert!(!browser.text().contains(KEYSTORE_PASSWORD));
    browser.click("button", "Check now upload <key>");
    browser.find("status", "");
    for (name, answer) in [
        ("upload", "is not the name of this credential"),
        ("upload <key>", "The credential is deleted."),
    ] {
        browser.click("DisclosureTriangle", "Delete upload <key>");
        browser.fill("textbox", "Enter upload <key> to delete it", name);
        browser.click("button", "Delete upload <key>");
        browser.says(answer);
    }
}
