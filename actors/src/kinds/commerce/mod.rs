//! What users pay for: checkouts, subscriptions and the channels of shops.

pub mod checkouts;
pub mod commerce_channels;
pub mod notice_limit;
pub mod provider_key;
pub mod subscriptions;
