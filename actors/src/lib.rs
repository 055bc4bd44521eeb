//! What the platform does: supervised actors that own its resources, and the functions they serve.
//!
//! [`runtime`] is what all owners share. Each kind of resource has a folder: its rules are in
//! `machine.rs`, pure; what it does to the world is in `effects.rs`; how its functions use it is
//! in `serve.rs`. [`router`] is the way in, [`gate`] decides who may.

pub mod accounts;
pub mod apps;
pub mod artifacts;
pub mod audit;
pub mod authority;
pub mod backups;
pub mod builds;
pub mod call;
pub mod deployments;
pub mod due;
pub mod gate;
pub mod housekeeping;
pub mod image_builds;
pub mod images;
pub mod instances;
pub mod limiter;
pub mod listing;
pub mod log;
#[cfg(feature = "nothing")]
pub mod nothing;
pub mod operators;
pub mod organizations;
pub mod place;
pub mod platform;
pub mod ports;
pub mod projects;
pub mod releases;
pub mod replay;
pub mod router;
pub mod runtime;
#[cfg(feature = "sabotage")]
mod sabotage;
pub mod sealed;
pub mod templates;
pub mod tokens;
pub mod uses;
pub mod world;
