//! Schedules that back up a database again and again.

mod carry_over;
pub(crate) mod cron;
mod effects;
mod rules;

pub(crate) use carry_over::carry_over;
pub use rules::{BackupScheduleClaim, BackupSchedules, Command, Effect, Outcome};
