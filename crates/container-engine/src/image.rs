//! Images: on this machine, in registries, and under construction.

use crate::Labels;
use contract::Timestamp;
use std::{collections::BTreeMap, fmt};

/// An image on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The digest of its configuration, `sha256:…`. It always names the same image.
    pub id: String,
    /// Names such as `repository:tag`.
    pub tags: Vec<String>,
    /// Names in registries, such as `repository@sha256:…`.
    pub digests: Vec<String>,
    /// Labels that the build set.
    pub labels: Labels,
    /// Bytes, shared layers included.
    pub size: u64,
    pub created_at: Timestamp,
}

/// Credentials for a registry.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryLogin {
    pub username: String,
    /// The password or token.
    pub password: String,
}

impl fmt::Debug for RegistryLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RegistryLogin({:?}, ••••••••)", self.username)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSpec {
    /// The name of the new image, `repository:tag`.
    pub tag: String,
    /// The path of the Dockerfile in the context.
    pub dockerfile: String,
    /// The image's history shows these arguments: they must hold no secrets.
    pub args: BTreeMap<String, String>,
    /// Labels of the image. They override those of the Dockerfile and of the base image.
    pub labels: Labels,
    /// Look for base images in their registries, even if they are on this machine. An image that
    /// only this machine knows, by name or by id, then cannot be a base image.
    pub pull: bool,
    /// Bytes of memory that a build step may use.
    pub memory: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildEvent {
    /// A line of output.
    Line(String),
    /// The build succeeded. Always the last event.
    Built(Built),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The id of the image, `sha256:…`.
    pub image: String,
}
