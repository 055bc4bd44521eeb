//! The kinds of resources, one folder each.

pub mod accounts;
pub mod apps;
pub mod artifacts;
pub mod backup_schedules;
pub mod backups;
pub mod builds;
mod cascade;
pub mod checkouts;
pub mod commerce_channels;
pub mod credentials;
pub mod deliveries;
pub mod deployments;
pub mod image_builds;
pub mod images;
pub mod instances;
pub mod organizations;
pub mod progress_log;
pub mod projects;
pub mod publications;
pub mod releases;
pub mod repositories;
pub mod subscriptions;
pub mod table;
pub mod templates;
pub mod tokens;
pub mod trusted_publishers;
pub mod webhooks;
