//! Backups of instances' databases.

pub(crate) mod begin;
pub(crate) mod effects;
pub(crate) mod restore_check;
mod retention;
pub(crate) mod rules;

pub use begin::{Begin, begin, databases};
pub(crate) use restore_check::turns as restore_check_turns;
pub use rules::{BackupClaim, BackupIndex, Backups, Command, Effect, Outcome, State};
