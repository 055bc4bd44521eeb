//! Accounts: people, with their sessions, passwords and tiers.

mod effects;
mod record;
pub(crate) mod rules;
pub(crate) mod session;

pub use record::{Account, Cause, EmailChange, Reset};
pub use rules::{AccountClaim, Accounts, Command, Registration};
pub use session::{Session, SessionClaim, SessionIndex, digest, keyed_digest};
