//! Backups of instances' databases. A dump counts only once its tool ended well, the whole of it was
//! written and hashed, and its end is the end that such a dump has.

mod dump;
mod effects;
mod handlers;
mod restore_check;
mod rules;
mod schedule;

pub use dump::TAIL;
pub use rules::{BackupClaim, BackupIndex, Backups, Begin, Command, Effect, Outcome, State};
pub use schedule::{Schedule, run_due};
