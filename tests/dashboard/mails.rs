//! The links of mails: pages that work, also for people without an account.

use super::{PASSWORD, register, sign_in, start};
use crate::support::{
    mail::{MailServer, arrived, link},
    ports::free_port,
    requires,
    service::Service,
};
use serde_json::json;

#[test]
fn the_links_of_mails_lead_to_pages_that_work() {
    let test = "the_links_of_mails_lead_to_pages_that_work";
    let Some((browser, judge)) = start(test) else { return };
    if !requires::programs(test, &["aiosmtpd"]) {
        return;
    }
    let port = free_port();
    let service = Service::start_with(&[("SVC_MAIL_URL", &format!("smtp://127.0.0.1:{port}"))]);
    let at = service.dashboard();
    let folder = service.home.join("mail");
    let _server = MailServer::start(port, &folder, &[]);
    let ada = register(&browser, &service, "ada@example.com");
    let made = service.call(Some(&ada), "createOrganization", json!({"name": "Acme \"HQ\""}));
    let organization = made.ok()["id"].as_str().unwrap().to_owned();

    browser.open(&format!("{at}/organizations/{organization}"));
    browser.fill("textbox", "E-mail", "grace@example.com");
    browser.click("button", "Send the invitation");
    browser.says("A mail with this link is on its way to them.");
    browser.click("button", "Sign out");

    // Grace has no account yet.
    let invitation = link(&arrived(&folder, "Your invitation"));
    assert!(invitation.starts_with(&format!("{at}/invitations?token=svc_inv_")), "{invitation}");
    browser.open(&invitation);
    browser.find("heading", "Join an organization");
    judge.page(&browser, "invitation");
    browser.click("link", "Make an account");
    browser.fill("textbox", "Name", "Grace");
    browser.fill("textbox", "E-mail", "grace@example.com");
    browser.fill("textbox", "Password", "short");
    browser.click("button", "Make the account");
    browser.find("alert", "");
    browser.fill("textbox", "Password", PASSWORD);
    browser.click("button", "Make the account");
    browser.says("You are signed in as: grace@example.com");
    judge.page(&browser, "invitation-join");
    browser.click("button", "Join");
    browser.says("You are a member of Acme \"HQ\".");
    browser.find("heading", "Acme \"HQ\"");
    browser.click("button", "Sign out");

    // Who is not meant is told so, and keeps the token.
    sign_in(&browser, &service, &ada.email, PASSWORD);
    browser.open(&invitation.replace("svc_inv_", "svc_inv_x"));
    browser.click("button", "Join");
    browser.find("alert", "");
    assert!(browser.value("textbox", "Token of the invitation").starts_with("svc_inv_x"));
    browser.click("button", "Sign out");

    browser.click("link", "I forgot my password");
    browser.fill("textbox", "E-mail", "grace@example.com");
    browser.click("button", "Send the mail");
    browser.says("a mail with a link is on its way to it");
    browser.open(&link(&arrived(&folder, "Your new password")));
    judge.page(&browser, "reset-password");
    browser.fill("textbox", "New password", "another horse");
    browser.click("button", "Set the password");
    browser.find("heading", "Sign in");
    sign_in(&browser, &service, "grace@example.com", "another horse");

    // Another e-mail is hers when she opens the mail to it.
    browser.open(&format!("{at}/account"));
    browser.fill("textbox", "New e-mail", "grace@example.org");
    browser.fill("textbox", "Your password", "a wrong horse");
    browser.click("button", "Change the e-mail");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "New e-mail"), "grace@example.org");
    judge.page(&browser, "account-email-refused");
    browser.fill("textbox", "Your password", "another horse");
    browser.click("button", "Change the e-mail");
    browser.says("Follow the link in the mail to the new address.");
    browser.open(&link(&arrived(&folder, "Confirm your e-mail")));
    judge.page(&browser, "confirm-email");
    browser.click("button", "Confirm your e-mail");
    browser.says("The account has its new e-mail.");
    browser.says("grace@example.org");
    arrived(&folder, "The e-mail of your account was changed");
}
