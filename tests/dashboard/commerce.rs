//! Checkouts and subscriptions, as the people of an app and operators see them.

use super::{PASSWORD, sign_in, start, unlimited};
use crate::support::{
    checkouts::World,
    service::{administrator, eventually},
};
use serde_json::json;

#[test]
fn checkouts_are_seen_and_settled_by_a_person() {
    let test = "checkouts_are_seen_and_settled_by_a_person";
    let Some((browser, judge)) = start(test) else { return };
    let Some(world) = World::new(test, &[]) else { return };
    let (service, at) = (&world.service, world.service.dashboard());
    let app = world.app.as_str().unwrap();
    unlimited(service, &world.ada);
    sign_in(&browser, service, &world.ada.email, PASSWORD);
    browser.open(&format!("{at}/apps/{app}"));
    browser.click("link", "Checkouts");
    browser.says("No checkouts.");
    judge.page(&browser, "checkouts-none");

    // A person tries a checkout, as the app does it for a buyer.
    browser.fill("textbox", "Amount", "nothing");
    browser.click("button", "Open the checkout");
    browser.find("alert", "");
    browser.fill("textbox", "Amount", "450000");
    browser.click("button", "Open the checkout");
    browser.says("The checkout is open.");
    browser.find("link", "Open the payment page");
    judge.page(&browser, "checkout-open");

    // One is paid and settles, the other one is paid with another sum.
    let order = world.order();
    let good = world.opened(&order, "cart-1");
    world.tell(json!({"do": "pay", "reference": good}));
    world.reaches(&good, "settled");
    let wrong = world.opened(&order, "cart-2");
    world.tell(json!({"do": "pay", "reference": wrong, "currency": "GHS"}));
    world.reaches(&wrong, "amountMismatch");
    browser.open(&format!("{at}/apps/{app}/checkouts"));
    browser.says("4500.00 NGN");
    judge.page(&browser, "checkouts");
    browser.choose("State", "amount mismatch");
    browser.click("button", "Show");
    eventually("only the one in that state", || {
        let text = browser.text();
        text.contains(wrong.as_str().unwrap()) && !text.contains(good.as_str().unwrap())
    });

    // An operator sees it among all apps, and decides.
    browser.click("button", "Sign out");
    let admin = service.administrator();
    unlimited(service, &admin);
    sign_in(&browser, service, &admin.email, administrator()["password"].as_str().unwrap());
    browser.click("link", "Operations");
    browser.says("Unsettled payment");
    browser.click("link", "Unsettled checkouts");
    judge.page(&browser, "operations-checkouts");
    browser.click("link", wrong.as_str().unwrap());
    browser.click("button", "Settle now");
    browser.find("alert", "");
    judge.page(&browser, "checkout");
    browser.fill("textbox", "What was done instead", "<b>sent by post</b>");
    browser.click("button", "Count it as settled");
    browser.says("<b>sent by post</b>");
    world.reaches(&wrong, "settled");
    browser.open(&format!("{at}/operations/checkouts"));
    browser.says("All money that arrived is settled.");
    browser.open(&format!("{at}/apps/{app}/subscriptions"));
    browser.fill("searchbox", "E-mail of the buyer", "\"no address\"");
    browser.click("button", "Search");
    browser.find("alert", "");
    assert_eq!(browser.value("searchbox", "E-mail of the buyer"), "\"no address\"");
    judge.page(&browser, "subscriptions-refused");
    browser.fill("searchbox", "E-mail of the buyer", "nobody@example.com");
    browser.click("button", "Search");
    browser.says("No subscriptions.");
    judge.page(&browser, "subscriptions-none");

    // Channels open with the master key only.
    browser.open(&format!("{at}/operations/channels"));
    browser.fill("textbox", "Master key to show them", "wrong");
    browser.click("button", "Show the channels");
    browser.find("alert", "");
    judge.page(&browser, "channels-refused");
    browser.fill("textbox", "Master key to show them", &service.master_key());
    browser.click("button", "Show the channels");
    browser.says("No channels yet.");
    browser.fill("textbox", "Label", "Tea & <b>cake</b>");
    browser.fill("textbox", "App id", app);
    browser.fill("textbox", "Store id", "tea");
    browser.fill("textbox", "Channel token", "tea-token");
    browser.fill("textbox", "Address of the admin API", "http://127.0.0.1:1/admin-api");
    browser.fill("textbox", "Admin token", "an admin token");
    browser.fill("textbox", "Master key to register it", &service.master_key());
    browser.click("button", "Register the channel");
    browser.find("alert", "");
    assert_eq!(browser.value("textbox", "Label"), "Tea & <b>cake</b>");
    browser.fill("textbox", "Token of the channel", "tea & cake");
    browser.fill("textbox", "The token again, to confirm", "tea");
    browser.fill("textbox", "Master key to forget it", &service.master_key());
    browser.click("button", "Forget the channel");
    browser.says("is not the token of this channel");
    assert_eq!(browser.value("textbox", "Token of the channel"), "tea & cake");
    assert_eq!(browser.value("textbox", "Channel token"), "");
}
