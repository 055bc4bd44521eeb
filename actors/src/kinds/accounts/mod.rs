//! Accounts: people, with their sessions, passwords and tiers.

mod effects;
mod handlers;
mod lockout;
mod registration;
mod rules;
mod session;
mod session_routes;

pub use handlers::view;
pub use lockout::{Guesser, Lockout};
pub use rules::{Account, AccountClaim, Accounts, Cause, Command, Registration, Reset};
pub use session::{Session, SessionClaim, SessionIndex, digest, keyed_digest};
