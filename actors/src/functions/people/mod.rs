//! The functions about people and what they own: accounts, organizations, projects, apps and deploy tokens;
//! and what the operators tell all of them.

pub mod accounts;
pub mod activity;
pub mod announcements;
pub mod apps;
pub mod home;
mod mails;
pub mod organizations;
pub mod projects;
mod reach;
pub mod search;
pub mod tokens;
mod usage;
