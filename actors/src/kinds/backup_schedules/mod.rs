//! Schedules that back up a database again and again.

mod carry_over;
mod cron;
mod effects;
mod handlers;
mod rules;

pub(crate) use carry_over::carry_over;
pub use rules::{BackupScheduleClaim, BackupSchedules, Command, Effect, Outcome};
