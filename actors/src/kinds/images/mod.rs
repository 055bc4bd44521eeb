//! Registered container images. Templates and deployments use them.

mod handlers;
mod registries;
mod resolve_digest;
mod rules;

pub use registries::Registries;
pub use resolve_digest::{resolve_digest, usable};
pub use rules::{Command, ImageClaim, ImageIndex, Images};
