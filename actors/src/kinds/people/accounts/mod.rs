//! Accounts: people, with their sessions, passwords and tiers.

mod effects;
pub(crate) mod rules;
pub(crate) mod session;

pub use rules::{Account, AccountClaim, Accounts, Cause, Command, Registration, Reset};
pub use session::{Session, SessionClaim, SessionIndex, digest, keyed_digest};
