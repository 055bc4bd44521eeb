//! What runs in containers: images, templates, instances, deployments and backups.

pub mod backup_schedules;
pub mod backups;
pub mod certificates;
pub mod deployments;
pub mod domains;
pub mod engines;
pub mod image_builds;
pub mod images;
pub mod instances;
pub mod names;
pub mod progress_log;
pub mod templates;
