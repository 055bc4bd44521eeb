//! Channels of shops in which checkouts build their orders.

pub(crate) mod access;
pub(crate) mod rules;

pub use access::{of_store, open};
pub use rules::{Command, CommerceChannels, New, State};
