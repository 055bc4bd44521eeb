//! Registered container images. Templates and deployments use them.

mod resolve_digest;
mod rules;

pub use resolve_digest::{outdated, recipe_of, resolve_digest, usable};
pub use rules::{Command, ImageClaim, ImageIndex, Images, has_version};
