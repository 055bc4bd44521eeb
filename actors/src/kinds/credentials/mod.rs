//! Credentials of apps: what signs them, and what opens the stores that publish them.

mod access;
mod carry_over;
mod effects;
mod expiry;
mod handlers;
mod rules;

pub use access::{Found, Use, newest, newest_facts};
pub(crate) use carry_over::carry_over;
pub use rules::{
    Command, CredentialClaim, CredentialIndex, Credentials, Effect, New, Outcome, State,
};
