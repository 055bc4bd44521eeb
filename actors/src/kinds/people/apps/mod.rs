//! Apps: the parents of releases, artifacts, deployments, backups, tokens and instances.

mod rules;

pub use rules::{App, AppIndex, Apps, Command, creation};
