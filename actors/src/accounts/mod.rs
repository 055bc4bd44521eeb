//! Accounts: who people are, their sessions, passwords and tiers.

mod lockout;
mod machine;
mod serve;
mod session;

pub use lockout::Lockout;
pub use machine::{Account, Accounts, Command, Registration, Reset, email_claim};
pub use serve::view;
pub use session::{Session, digest, hex};
