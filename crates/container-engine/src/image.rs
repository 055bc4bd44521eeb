//! Images: on this machine, in registries, and in the making.

use crate::Labels;
use contract::Timestamp;
use std::{collections::BTreeMap, fmt};

/// An image on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `sha256:…` of its configuration. It names the image for ever.
    pub id: String,
    /// Its names, `repository:tag`.
    pub tags: Vec<String>,
    /// What registries call it, `repository@sha256:…`.
    pub digests: Vec<String>,
    /// What it was labelled with when it was built.
    pub labels: Labels,
    /// Bytes, shared layers included.
    pub size: u64,
    pub created_at: Timestamp,
}

/// How a registry knows us.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub username: String,
    /// The password or token.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({:?}, ••••••••)", self.username)
    }
}

/// What is to be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSpec {
    /// The name of the image, `repository:tag`.
    pub tag: String,
    /// The path of the Dockerfile in the context.
    pub dockerfile: String,
    /// Arguments of the build. They are seen in the image's history: no secrets.
    pub args: BTreeMap<String, String>,
    /// What the image carries, whatever its Dockerfile and its base image say of these labels.
    pub labels: Labels,
    /// Base images are asked for at their registries, also those that are on this machine. What
    /// only this machine knows, by name or by id, cannot be built upon.
    pub pull: bool,
    /// Bytes of memory that a step may use.
    pub memory: u64,
}

/// What a build says on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildEvent {
    /// A line of its output.
    Line(String),
    /// It is done. Always last.
    Built(Built),
}

/// The image that a build made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// `sha256:…`
    pub image: String,
}
