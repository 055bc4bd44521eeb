//! What the events of providers are about.

use super::{About, Notice, NoticeRefused};
use serde_json::Value;

/// The longest id of a provider that is passed on, in bytes.
const LONGEST_ID: usize = 255;

fn parsed(body: &[u8]) -> Result<Value, NoticeRefused> {
    serde_json::from_slice(body).map_err(|e| NoticeRefused::Unreadable(format!("no JSON: {e}")))
}

fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str().filter(|text| (1..=LONGEST_ID).contains(&text.len()))
}

/// An id, also of an object that is expanded in place of its id.
fn id<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    text(value, pointer).or_else(|| text(value.pointer(pointer)?, "/id"))
}

fn reference(text: Option<&str>) -> Option<About> {
    text?.parse().ok().map(About::Payment)
}

fn notice(
    value: &Value,
    pointer: &str,
    about: fn(&str, &Value) -> About,
) -> Result<Notice, NoticeRefused> {
    let event = text(value, pointer);
    let event = event.ok_or_else(|| NoticeRefused::Unreadable("it names no event".into()))?;
    Ok(Notice { event: event.to_owned(), about: about(event, value) })
}

/// Source: "Types of events" in "Webhooks" of Paystack's documentation.
pub(super) fn paystack(body: &[u8]) -> Result<Notice, NoticeRefused> {
    notice(&parsed(body)?, "/event", |event, value| {
        let found = match event {
            // The number of the transaction is the only name of it that some disputes have.
            _ if event.starts_with("charge.dispute.") => {
                reference(text(value, "/data/transaction/reference")).or_else(|| {
                    let number = value.pointer("/data/transaction/id")?.as_u64()?;
                    Some(About::PaymentId(number.to_string()))
                })
            }
            _ if event.starts_with("refund.") => {
                reference(text(value, "/data/transaction_reference"))
            }
            // The charge of a renewal has a reference of Paystack: `invoice.update` tells about it.
            _ if event.starts_with("charge.") => reference(text(value, "/data/reference")),
            // Its data is a list of cards, and no subscription has changed.
            "subscription.expiring_cards" => None,
            _ if event.starts_with("subscription.") => {
                subscription(text(value, "/data/subscription_code"))
            }
            _ if event.starts_with("invoice.") => {
                subscription(text(value, "/data/subscription/subscription_code"))
            }
            _ => None,
        };
        found.unwrap_or(About::Nothing)
    })
}

/// Source: "The Event object" and "Types of events" of Stripe's API reference. What an event is about
/// follows from the object that it carries. The account chooses the version of the API in which
/// events come, so both places of the subscription of an invoice are read.
pub(super) fn stripe(body: &[u8]) -> Result<Notice, NoticeRefused> {
    notice(&parsed(body)?, "/type", |_, value| {
        let Some(object) = value.pointer("/data/object") else { return About::Nothing };
        let named = || reference(text(object, "/metadata/reference"));
        let payment = |pointer| Some(About::PaymentId(id(object, pointer)?.to_owned()));
        let found = match text(object, "/object").unwrap_or_default() {
            "checkout.session" => reference(text(object, "/client_reference_id")).or_else(named),
            "payment_intent" => named().or_else(|| payment("/id")),
            "charge" | "dispute" | "refund" => named().or_else(|| payment("/payment_intent")),
            "subscription" => subscription(text(object, "/id")),
            "invoice" => subscription(
                id(object, "/subscription")
                    .or_else(|| id(object, "/parent/subscription_details/subscription")),
            ),
            _ => None,
        };
        found.unwrap_or(About::Nothing)
    })
}

fn subscription(id: Option<&str>) -> Option<About> {
    Some(About::Subscription(id?.to_owned()))
}
