//! Registered container images: what templates and deployments are made of.

mod handlers;
mod registries;
mod resolve_digest;
mod rules;

pub use registries::Registries;
pub use resolve_digest::{settle, usable};
pub use rules::{Command, ImageClaim, ImageIndex, Images};
