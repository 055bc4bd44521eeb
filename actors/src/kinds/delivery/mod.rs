//! From a repository to a store: repositories, builds, artifacts, releases, publications, and the keys for
//! them.

pub mod artifacts;
pub mod builds;
pub mod credentials;
pub mod publications;
pub mod releases;
pub mod repositories;
pub mod trusted_publishers;
