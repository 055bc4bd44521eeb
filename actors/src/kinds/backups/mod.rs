//! Backups of instances' databases.

mod effects;
mod handlers;
mod restore_check;
mod rules;
mod schedule;

pub(crate) use handlers::{can_be_verified, no_database};
pub(crate) use restore_check::turns as restore_check_turns;
pub use rules::{BackupClaim, BackupIndex, Backups, Begin, Command, Effect, Outcome, State};
pub use schedule::{begin, databases};
