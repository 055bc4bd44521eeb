//! The functions about people and what they own: accounts, organizations, projects, apps and deploy tokens.

pub mod accounts;
pub mod apps;
pub mod organizations;
pub mod projects;
pub mod tokens;
