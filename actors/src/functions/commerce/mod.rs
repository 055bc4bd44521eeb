//! The functions about payments: checkouts, subscriptions and the channels of shops.

pub mod checkouts;
pub mod commerce_channels;
pub mod subscriptions;
