//! Accounts: who people are, their sessions, passwords and tiers.

mod handlers;
mod lockout;
mod rules;
mod session;

pub use handlers::view;
pub use lockout::{Guesser, Lockout};
pub use rules::{Account, Accounts, Command, Registration, Reset, email_claim};
pub use session::{Session, digest, hex, keyed_digest};
