//! Channels of shops in which checkouts build their orders.

mod access;
mod handlers;
mod rules;

pub use access::{of_store, open};
pub use rules::{Command, CommerceChannels, New, State};
