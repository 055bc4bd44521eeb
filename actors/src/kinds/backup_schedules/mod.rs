//! Backups that are made again and again. A schedule makes each backup when its time has come.

pub(crate) mod cron;
mod effects;
mod handlers;
mod rules;

pub use rules::{BackupScheduleClaim, BackupSchedules, Command, Effect, Outcome};
