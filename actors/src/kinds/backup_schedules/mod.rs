//! Backups that are made again and again. A schedule makes each backup when its time has come.

mod carry_over;
mod cron;
mod effects;
mod handlers;
mod rules;

pub(crate) use carry_over::carry_over;
pub use rules::{BackupScheduleClaim, BackupSchedules, Command, Effect, Outcome};
