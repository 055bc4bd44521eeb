//! From an upload to a rolled-back release.

use super::{PASSWORD, operators::html, register, start, unlimited};
use crate::support::{
    browser::Browser,
    service::{Service, eventually},
};
use serde_json::json;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/fixtures").join(name)
}

#[test]
fn two_platforms_are_released_and_rolled_back() {
    let Some((browser, judge)) = start("two_platforms_are_released_and_rolled_back") else {
        return;
    };
    release(&browser, true, |page| judge.page(&browser, page));
}

#[test]
fn two_platforms_are_released_and_rolled_back_without_scripts() {
    let test = "two_platforms_are_released_and_rolled_back_without_scripts";
    let Some(browser) = Browser::start_without_scripts(test) else { return };
    release(&browser, false, |_| ());
}

#[test]
fn a_newcomer_releases_a_file_on_four_pages() {
    let Some((browser, judge)) = start("a_newcomer_releases_a_file_on_four_pages") else { return };
    begin(&browser, true, |page| judge.page(&browser, page));
}

#[test]
fn a_newcomer_releases_a_file_on_four_pages_without_scripts() {
    let test = "a_newcomer_releases_a_file_on_four_pages_without_scripts";
    let Some(browser) = Browser::start_without_scripts(test) else { return };
    begin(&browser, false, |_| ());
}

#[test]
fn firefox_releases_a_file_and_rolls_back() {
    let test = "firefox_releases_a_file_and_rolls_back";
    let Some(browser) = Browser::start_firefox(test) else { return };
    begin(&browser, true, |_| ());
    drop(browser);
    let Some(browser) = Browser::start_firefox(test) else { return };
    release(&browser, true, |_| ());
}

/// From the printed link to a release that a phone installs, with three forms and no other click.
fn begin(browser: &Browser, scripts: bool, judge: impl Fn(&str)) {
    let service = Service::start();
    browser.open(&service.printed("/first-start?token="));
    browser.fill("textbox", "E-mail", "ada@example.com");
    browser.fill("textbox", "Password", PASSWORD);
    browser.click("button", "Become the administrator");
    browser.find("heading", "Home");
    // What is no app makes none.
    let wrong = service.home.join("note.txt");
    std::fs::write(&wrong, "not an app").unwrap();
    upload(browser, &wrong, scripts);
    browser.says("choose an .apk, .aab or .ipa");
    browser.says("Make the first project");
    upload(browser, &fixture("sample-1.5.0.apk"), scripts);
    browser.find("heading", "sample-1.5.0.apk");
    browser.says("First project");
    judge("first-artifact");
    browser.click("button", "Release it");
    browser.find("heading", "1.5.0 production");
    browser.comes_to_say("Everyone with this address may install the release.");
    // The app is called like its file.
    browser.click("link", "sample");
    browser.find("link", "Roll back 1.5.0 of production");
}

fn release(browser: &Browser, scripts: bool, judge: impl Fn(&str)) {
    let service = Service::start();
    register(browser, &service, "ada@example.com");
    browser.click("link", "Make the first project");
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
    upload(browser, &wrong, scripts);
    browser.says("choose an .apk, .aab or .ipa");
    for (file, version) in
        [("sample.apk", "1.4.2"), ("sample.ipa", "1.4.2"), ("sample-1.5.0.apk", "1.5.0")]
    {
        upload(browser, &fixture(file), scripts);
        browser.find("heading", file);
        browser.says(version);
        browser.says("Verified");
        judge("artifact");
        browser.click("link", "Artifacts");
        browser.find("link", file);
    }
    judge("artifacts");

    // The overview says what comes next. An older version is one click away.
    browser.click("link", "<b>Market</b>");
    browser.says("1.5.0 is verified, and nobody has it yet.");
    judge("app-next");
    browser.click("link", "Release 1.5.0");
    browser.click("link", "1.4.2");
    browser.find("heading", "Release 1.4.2");
    // Both platforms are found by the version.
    browser.says("sample.apk");
    browser.says("sample.ipa");
    browser.fill("combobox", "Channel", "No Channel");
    browser.fill("textbox", "Release notes", "The first \"one\" <script>alert(1)</script>");
    browser.click("button", "Release 1.4.2");
    browser.find("alert", "");
    assert_eq!(
        browser.value("textbox", "Release notes"),
        "The first \"one\" <script>alert(1)</script>"
    );
    judge("release-new-refused");
    browser.fill("combobox", "Channel", "production");
    browser.click("checkbox", "Install link");
    browser.click("button", "Release 1.4.2");
    browser.find("heading", "1.4.2 production");
    judge("release-draft");
    browser.click("checkbox", "Install link");
    browser.click("button", "Publish the release");
    browser.says("1.4.2 is ");
    browser.comes_to_say("Published");
    browser.find("heading", "Install");
    judge("release");

    // From the verified file to the release of its version in one click.
    browser.click("link", "<b>Market</b>");
    browser.click("link", "Artifacts");
    browser.click("link", "sample-1.5.0.apk");
    assert_eq!(browser.value("combobox", "Channel"), "production");
    judge("artifact-release");
    browser.click("button", "Release it");
    browser.find("heading", "1.5.0 production");
    browser.says("1.5.0 is ");
    browser.comes_to_say("Published");
    // The one before is replaced, and stands below the one that users get.
    browser.click("link", "Releases");
    browser.says("Install link: replaced");
    browser.click("link", "Publishing");
    browser.says("Replaced");
    let text = browser.text();
    assert!(text.find("1.5.0, production") < text.find("1.4.2, production"), "{text}");
    browser.click("link", "1.5.0, production");
    // A store without a credential cannot be chosen, and no note says otherwise.
    browser.says("needs a key");
    let text = browser.text();
    assert!(
        !text.contains("live at Google Play") && !text.contains("Publish the release"),
        "{text}"
    );
    browser.click("link", "Roll back");
    browser.find("heading", "Roll back 1.5.0");
    judge("rollback");
    browser.click("button", "Roll back now");
    browser.says("production serves 1.4.2 again. 1.5.0 was rolled back.");
    browser.find("heading", "1.4.2 production");

    // The overview shows what is live in each channel, and the way to the next one.
    browser.click("link", "Releases");
    browser.says("Rolled back");
    for (version, channel) in [("1.4.2", "beta"), ("1.5.0", "internal")] {
        browser.click("link", "New release");
        if version == "1.4.2" {
            browser.click("link", version);
        }
        browser.fill("combobox", "Channel", channel);
        browser.click("button", &format!("Release {version}"));
        browser.find("heading", &format!("{version} {channel}"));
        browser.comes_to_say("Published");
        browser.click("link", "Releases");
    }
    browser.click("link", "<b>Market</b>");
    browser.find("link", "Roll back 1.4.2 of production");
    judge("app-live");
    // An older version, and one that was rolled back there, go on nowhere.
    assert!(!browser.text().contains("Promote to production"), "{}", browser.text());
    browser.click("button", "Promote to beta");
    browser.says("1.5.0 is a draft in beta. Publish it when it is ready.");
    browser.find("heading", "1.5.0 beta");
    // What was rolled back is not released again by mistake.
    browser.click("link", "Releases");
    browser.click("link", "New release");
    browser.fill("combobox", "Channel", "production");
    browser.click("checkbox", "Install link");
    browser.click("button", "Release 1.5.0");
    browser.says("was rolled back");
    browser.click("link", "Home");
    browser.find("heading", "Needs you");
    browser.find("link", "1.4.2");
    judge("home");
    browser.click("link", "All activity");
    browser.says("rolled back");
    judge("activity");
    browser.click("link", "<b>Market</b>");
    browser.click("link", "Releases");
    judge("releases");
    browser.click("link", "Publishing");
    browser.says("Nothing was published there.");
    judge("publishing");

    // The only release of a channel is withdrawn.
    browser.click("link", "1.4.2, beta");
    browser.click("link", "Roll back");
    browser.find("heading", "Withdraw 1.4.2");
    judge("withdraw");
    browser.click("button", "Withdraw it now");
    browser.says("beta has no release any more. 1.4.2 was withdrawn.");
    browser.click("link", "<b>Market</b>");

    // An artifact of a release stays.
    browser.click("link", "Artifacts");
    browser.click("link", "sample.apk");
    browser.fill("textbox", "Name of the file", "sample.apk");
    browser.click("button", "Delete the artifact");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Name of the file"), "sample.apk");
}

/// Sends a file. What is chosen is sent at once, where scripts run.
fn upload(browser: &Browser, file: &Path, scripts: bool) {
    browser.choose_file(file);
    if !scripts {
        browser.click("button", "Upload the file");
    }
}

#[test]
fn the_last_channel_leads_to_production() {
    let service = Service::start();
    let ada = service.register("ada");
    unlimited(&service, &ada);
    for (channel, goes_on) in
        [("beta", true), ("team", true), ("production", false), ("stable", false)]
    {
        let (_, app) = service.project_with_app(&ada, None);
        let apk = service.upload(&ada, &app, "sample.apk", "1.4.2")["id"].clone();
        let wanted = json!({"appId": app, "artifactIds": [apk], "channel": channel});
        let release = service.call(Some(&ada), "svc_createRelease", wanted).ok()["id"].clone();
        let publish = json!({"releaseId": release, "targets": ["ota"]});
        service.call(Some(&ada), "svc_publishRelease", publish).ok();
        eventually("it is published", || {
            let read = json!({"releaseId": release});
            service.call(Some(&ada), "svc_getRelease", read).ok()["state"] == "published"
        });
        for page in [
            format!("/releases/{}", release.as_str().unwrap()),
            format!("/apps/{}", app.as_str().unwrap()),
        ] {
            let shown = html(&service, &ada, &page);
            assert_eq!(shown.contains("Promote to <bdi>production"), goes_on, "{channel}: {shown}");
        }
    }
}
