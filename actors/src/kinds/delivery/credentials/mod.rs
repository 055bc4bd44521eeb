//! Credentials of apps: what signs them, and what opens the stores that publish them.

pub(crate) mod access;
mod effects;
mod expiry;
mod rules;

pub use access::{Found, Use, newest, newest_facts};
pub use rules::{
    Command, CredentialClaim, CredentialIndex, Credentials, Effect, New, Outcome, State,
};
