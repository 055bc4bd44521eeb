//! The gallery of templates and the registered images, as superadmins change them.

use super::{register, sign_in, start, unlimited};
use crate::support::service::{Service, administrator};

#[test]
fn templates_and_images_are_shown_and_changed() {
    let test = "templates_and_images_are_shown_and_changed";
    let Some((browser, judge)) = start(test) else { return };
    let service = Service::start();
    // Everybody sees the gallery, and only superadmins can change it.
    register(&browser, &service, "ada@example.com");
    browser.click("link", "Templates");
    browser.fill("searchbox", "Words", "parse");
    browser.click("button", "Search templates");
    judge.page(&browser, "templates");
    assert!(!browser.text().contains("New template"));
    browser.click("link", "Parse Server with PostgreSQL");
    browser.says("svc_createBackendInstance");
    judge.page(&browser, "template");
    assert!(!browser.text().contains("Delete the template"));
    browser.click("button", "Sign out");

    let admin = service.administrator();
    unlimited(&service, &admin);
    sign_in(&browser, &service, &admin.email, administrator()["password"].as_str().unwrap());
    browser.click("link", "Templates");
    let name = "Games \"&<script>alert(1)</script>";
    browser.fill("textbox", "Name", name);
    browser.fill("textbox", "Short name", "no short name");
    browser.fill("textbox", "Category", "games");
    browser.fill("textbox", "Tags", "fast small");
    browser.click("button", "Make the template");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Tags"), "fast small");
    browser.fill("textbox", "Short name", "games");
    browser.click("button", "Make the template");
    browser.find("heading", name);
    browser.says("Draft");

    // An image for it, of which the registry is asked only when a version is added.
    browser.click("link", "Operations");
    browser.click("link", "Images");
    judge.page(&browser, "images");
    browser.fill("textbox", "Name", "games");
    browser.fill("textbox", "Repository", "127.0.0.1:1/games");
    browser.fill("textbox", "Description", "<b>Games</b> for all");
    browser.click("button", "Register the image");
    browser.find("heading", "games");
    browser.says("<b>Games</b> for all");
    browser.fill("textbox", "Version", "1");
    browser.click("button", "Add the version");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Version"), "1");
    browser.fill("textbox", "New version", "2");
    browser.fill("textbox", "Address of the repository", "https://git.example.com/games.git");
    browser.fill("textbox", "Build arguments", "no argument");
    browser.click("button", "Build it");
    browser.says("must have lines such as NAME=value");
    assert_eq!(browser.value("textbox", "New version"), "2");
    // The other forms of the page say what is set, with no problem of this one.
    assert_eq!(browser.value("textbox", "Repository"), "127.0.0.1:1/games");
    browser.fill("textbox", "New version", "no version");
    browser.fill("textbox", "Build arguments", "LEVEL=2");
    browser.click("button", "Build it");
    browser.says("must be a version such as 1.4.2");
    assert_eq!(browser.value("textbox", "New version"), "no version");
    assert_eq!(browser.value("textbox", "Version"), "");
    judge.page(&browser, "image");
    browser.fill("textbox", "Name of the image", "games");
    browser.click("button", "Delete the image");
    browser.says("The image is deleted.");
    browser.click("link", "Image builds");
    browser.says("No images were built yet.");
    judge.page(&browser, "image-builds");

    // A version with the services of a shipped template, from its page.
    browser.open(&format!("{}/templates?kind=backend", service.dashboard()));
    browser.click("link", "Parse Server with PostgreSQL");
    let services = browser.value("textbox", "Services");
    browser.open(&format!("{}/templates/games", service.dashboard()));
    browser.fill("textbox", "Services", "[");
    browser.fill("textbox", "Version", "1.0.0");
    browser.click("button", "Add the version");
    browser.says("is not JSON");
    assert_eq!(browser.value("textbox", "Version"), "1.0.0");
    assert_eq!(browser.value("textbox", "Short name"), "games");
    browser.paste("textbox", "Services", &services);
    browser.click("button", "Add the version");
    browser.find("heading", "Version 1.0.0");
    browser.choose("Status", "Published");
    browser.click("button", "Set the status");
    browser.says("It is published.");
    browser.choose("Payment", "Once");
    browser.fill("textbox", "Amount", "lots");
    browser.fill("textbox", "Currency", "EUR");
    browser.click("button", "Set the price");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Amount"), "lots");
    assert_eq!(browser.value("textbox", "Short name"), "games");
    browser.fill("textbox", "Amount", "1250");
    browser.click("button", "Set the price");
    browser.says("12.50 EUR");
    judge.page(&browser, "template-superadmin");
    // What is refused in another form leaves the price as it is.
    browser.fill("textbox", "Services", "[");
    browser.fill("textbox", "Version", "1.1.0");
    browser.click("button", "Add the version");
    browser.says("is not JSON");
    assert_eq!(browser.value("textbox", "Amount"), "1250");
    browser.fill("textbox", "Name of the template", "games");
    browser.click("button", "Delete the template");
    browser.says("is not the name of the template");
    assert_eq!(browser.value("textbox", "Name of the template"), "games");
    assert_ne!(browser.value("textbox", "Services"), "");
    browser.fill("textbox", "Name of the template", name);
    browser.click("button", "Delete the template");
    browser.says("The template is deleted.");
}
