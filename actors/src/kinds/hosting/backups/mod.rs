//! Backups of instances' databases.

pub(crate) mod effects;
pub(crate) mod restore_check;
pub(crate) mod rules;
pub(crate) mod schedule;

pub(crate) use restore_check::turns as restore_check_turns;
pub use rules::{BackupClaim, BackupIndex, Backups, Begin, Command, Effect, Outcome, State};
pub use schedule::{begin, databases};
