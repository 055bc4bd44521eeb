//! The functions of the family: what users pay for: checkouts, subscriptions and the channels of shops.

pub mod checkouts;
pub mod commerce_channels;
pub mod subscriptions;
