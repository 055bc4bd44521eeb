//! Backups of instances' databases. A dump counts only once its tool ended well, the whole of it was
//! written and hashed, and its end is the end that such a dump has.

mod dump;
mod effects;
mod machine;
mod schedule;
mod serve;
mod trial;

pub use dump::TAIL;
pub use machine::{Backups, Command, Effect, Outcome, State};
pub use schedule::{Schedule, run_due};
