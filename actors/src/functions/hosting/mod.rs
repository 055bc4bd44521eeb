//! The functions about what runs in containers: images, templates, instances, deployments and backups.

pub mod backup_schedules;
pub mod backups;
mod certificates;
pub mod deployments;
mod domains;
mod engines;
pub mod image_builds;
pub mod images;
pub mod instances;
pub mod templates;
