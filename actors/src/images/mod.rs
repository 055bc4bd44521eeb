//! Registered container images: what templates and deployments are made of.

mod machine;
mod registries;
mod serve;
mod settle;

pub use machine::{Command, Images, name_claim};
pub use registries::Registries;
pub use settle::{settle, usable};
