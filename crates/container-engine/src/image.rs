//! Images: on this machine, in registries, and under construction.

use crate::Labels;
use contract::Timestamp;
use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

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
    /// Bytes of memory that a build may use.
    pub memory: u64,
    /// The walls around the build. `None`: the engine's own builder makes the image, beside everything
    /// else. That is for steps of the service only, which run no program of others and fetch nothing.
    pub isolation: Option<Isolation>,
}

/// The build argument by which a Dockerfile of the service knows the image that the service chose.
pub const BASE_IMAGE: &str = "BASE_IMAGE";
/// The port of 127.0.0.1 on which the programs of an isolated build find its proxy.
pub const PROXY_PORT: u16 = 3128;

/// The walls around a build. It reaches no other container, and the internet only through a proxy; its base
/// images come from registries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// The owner of the build, in characters of `[A-Za-z0-9_-]`. The builds of an owner may use what earlier
    /// ones left: finished steps, images that they pulled, and what `RUN --mount=type=cache` keeps.
    pub owner: String,
    /// An image of this machine. The Dockerfile knows it as the build argument [`BASE_IMAGE`].
    pub base: Option<String>,
    /// A folder of the engine's machine with a Unix socket `proxy.sock`, where a proxy for HTTP lets the
    /// build out. The programs of a build find it by `http_proxy` and `https_proxy`.
    pub egress: PathBuf,
    /// Ports of the machine's 127.0.0.1 that the build reaches at the same address, if the proxy allows
    /// them.
    pub loopback: Vec<u16>,
    /// Thousandths of a processor.
    pub cpu_millis: u32,
    /// Bytes that a build may write, its image included.
    pub disk: u64,
    /// How long the steps may take.
    pub within: Duration,
    /// Labels of its containers, and of the disk that it leaves.
    pub labels: Labels,
    /// What steps read with `RUN --mount=type=secret,id=NAME`, by names in characters of `[A-Za-z0-9_]`. The image
    /// does not contain it.
    pub secrets: Secrets,
}

/// Secrets by their names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(pub BTreeMap<String, String>);

impl fmt::Debug for Secrets {
    /// Only the names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
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
