//! People and what they own: accounts, organizations, projects, apps and deploy tokens; and what the
//! operators tell all of them.

pub mod accounts;
pub mod announcements;
pub mod apps;
pub mod organizations;
pub mod projects;
pub mod responsible;
pub mod tenant;
pub mod tokens;
pub mod usage;
