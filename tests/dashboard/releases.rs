//! From an upload to a rolled-back release.

use super::{register, start};
use crate::support::{browser::Browser, service::Service};
use std::path::PathBuf;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/fixtures").join(name)
}

#[test]
fn two_platforms_are_released_and_rolled_back() {
    let Some((browser, judge)) = start("two_platforms_are_released_and_rolled_back") else {
        return;
    };
    release(&browser, |page| judge.page(&browser, page));
}

#[test]
fn two_platforms_are_released_and_rolled_back_without_scripts() {
    let test = "two_platforms_are_released_and_rolled_back_without_scripts";
    let Some(browser) = Browser::start_without_scripts(test) else { return };
    release(&browser, |_| ());
}

fn release(browser: &Browser, judge: impl Fn(&str)) {
    let service = Service::start();
    register(browser, &service, "ada@example.com");
    browser.fill("textbox", "Name", "Shop");
    browser.click("button", "Make the project");
    browser.find("heading", "Shop");
    browser.fill("textbox", "Name", "<b>Market</b>");
    browser.click("button", "Make the app");
    browser.find("heading", "<b>Market</b>");

    // What is no app is refused, and nothing of it stays.
    browser.click("link", "Artifacts");
    judge("artifacts-none");
    let wrong = service.home.join("note.txt");
    std::fs::write(&wrong, "not an app").unwrap();
    browser.choose_file(&wrong);
    browser.click("button", "Upload the file");
    browser.says("choose an .apk, .aab or .ipa");
    for (file, version) in
        [("sample.apk", "1.4.2"), ("sample.ipa", "1.4.2"), ("sample-1.5.0.apk", "1.5.0")]
    {
        browser.choose_file(&fixture(file));
        browser.click("button", "Upload the file");
        browser.find("heading", file);
        browser.says(version);
        browser.says("verified");
        judge("artifact");
        browser.click("link", "Artifacts");
        browser.find("link", file);
    }
    judge("artifacts");

    // Both platforms in one release.
    browser.click("link", "Releases");
    browser.click("checkbox", "sample.apk, 1.4.2, android");
    browser.click("checkbox", "sample.ipa, 1.4.2, ios");
    browser.fill("textbox", "Channel", "No Channel");
    browser.fill("textbox", "Release notes", "The first \"one\" <script>alert(1)</script>");
    browser.click("button", "Make the release");
    browser.find("alert", "");
    browser.says("The first \"one\" <script>alert(1)</script>");
    judge("releases-refused");
    browser.fill("textbox", "Channel", "production");
    browser.click("button", "Make the release");
    browser.find("heading", "1.4.2 production");
    judge("release-draft");
    publish(browser);
    browser.find("heading", "Install");
    judge("release");

    browser.click("link", "Releases");
    browser.click("checkbox", "sample-1.5.0.apk, 1.5.0, android");
    browser.click("button", "Make the release");
    browser.find("heading", "1.5.0 production");
    publish(browser);
    browser.says("1.5.0 is live at ota.");
    // The one before is replaced, and stands below the one that users get.
    browser.click("link", "Releases");
    browser.says("ota: replaced");
    browser.click("link", "Publishing");
    browser.says("replaced");
    let text = browser.text();
    assert!(text.find("1.5.0, production") < text.find("1.4.2, production"), "{text}");
    browser.click("link", "1.5.0, production");
    // A store without a credential gets nothing, and no note says otherwise.
    browser.click("checkbox", "google-play");
    browser.click("button", "Publish the release");
    browser.comes_to_say("svc_setCredential");
    assert!(!browser.text().contains("live at google-play"), "{}", browser.text());
    // The address of a refused form leads to its page.
    browser.open(&browser.url());
    browser.find("heading", "1.5.0 production");
    browser.click("link", "Roll back");
    browser.find("heading", "Roll back 1.5.0");
    browser.says("ota");
    judge("rollback");
    browser.click("button", "Roll back now");
    browser.says("production serves 1.4.2 again. 1.5.0 was rolled back.");
    browser.find("heading", "1.4.2 production");
    browser.click("link", "Releases");
    browser.says("rolled back");
    judge("releases");
    browser.click("link", "Publishing");
    browser.says("Nothing was published there.");
    judge("publishing");

    // An artifact of a release stays.
    browser.click("link", "Artifacts");
    browser.click("link", "sample.apk");
    browser.fill("textbox", "Name of the file", "sample.apk");
    browser.click("button", "Delete the artifact");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Name of the file"), "sample.apk");
}

fn publish(browser: &Browser) {
    browser.click("checkbox", "ota");
    browser.click("button", "Publish the release");
    browser.says("published");
}
