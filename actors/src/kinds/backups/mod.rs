//! Backups of instances' databases. A dump counts only if its tool exited with code 0, all of it is
//! written and hashed, and it ends as a complete dump does.

mod dump;
mod effects;
mod handlers;
mod restore_check;
mod rules;
mod schedule;

pub use dump::TAIL;
pub(crate) use handlers::can_be_verified;
pub use rules::{BackupClaim, BackupIndex, Backups, Begin, Command, Effect, Outcome, State};
pub use schedule::{begin, databases};
