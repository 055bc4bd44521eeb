//! Webhooks: addresses that get the events of an organization.
//!
//! The change of a resource and its events are written together ([`outbox`]). The
//! [fan-out](crate::background::fan_out) makes a delivery of each event for each webhook that wants
//! it, and the owners of the [deliveries](super::deliveries) send them.

pub mod outbox;
mod payload;
mod receiver_turns;
mod rules;
pub mod signature;
mod subscribers;

pub use payload::{Payload, PayloadDelta};
pub use rules::{Command, FAILS_AT_MOST, PreviousSecret, Webhook, WebhookIndex, Webhooks};
pub use subscribers::Subscribers;
