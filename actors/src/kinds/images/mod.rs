//! Registered container images. Templates and deployments use them.

mod advisories;
mod handlers;
mod recipes;
mod registries;
mod resolve_digest;
mod rules;

pub use advisories::{Advisories, KnownAdvisory, outdated};
pub use recipes::{Recipe, Recipes, repository};
pub use registries::Registries;
pub use resolve_digest::{recipe_of, resolve_digest, usable};
pub use rules::{Command, ImageClaim, ImageIndex, Images, has_version};
