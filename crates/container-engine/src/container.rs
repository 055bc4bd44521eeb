//! Containers: their specification and their observed state.

use crate::Labels;
use contract::Timestamp;
use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, fmt, time::Duration};

/// The specification of a container.
///
/// Everything else is the same for all containers, and safe: no capabilities but those listed, no
/// new privileges, ports on 127.0.0.1 only, an init process, bounded logs, no restarts by the
/// engine.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct ContainerSpec {
    /// At most 63 characters of `[a-z0-9-]`.
    pub name: String,
    /// A reference that always names the same image: by digest, or the id of an image built here.
    pub image: String,
    /// Replaces the image's own command.
    pub command: Option<Vec<String>>,
    /// May hold secrets.
    pub env: BTreeMap<String, String>,
    pub network: String,
    /// The host name of the container on its network.
    pub alias: String,
    /// Published on 127.0.0.1, under a number that the engine chooses.
    pub port: Option<u16>,
    pub mounts: Vec<Mount>,
    /// In-memory folders. With a read-only root, only these and the mounts are writable.
    pub scratch: Vec<String>,
    /// Whether the root file system is read-only.
    pub read_only: bool,
    /// `None`: the user of the image.
    pub user: Option<String>,
    pub capabilities: Vec<Capability>,
    pub limits: Limits,
    /// `None`: no health check, even if the image has one.
    pub health: Option<HealthCommand>,
    /// How long the container may take to end before it is killed.
    pub grace: Duration,
    /// The hash of the spec is added.
    pub labels: Labels,
}

impl fmt::Debug for ContainerSpec {
    /// Omits the environment, which holds secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerSpec")
            .field("name", &self.name)
            .field("image", &self.image)
            .finish_non_exhaustive()
    }
}

impl ContainerSpec {
    /// The label with the hash of the spec that a container was created from.
    pub const HASH_LABEL: &str = "svc.spec";

    /// SHA-256 of the whole spec, in hex.
    pub fn hash(&self) -> String {
        // A spec always serializes: the keys of its maps are text.
        let canonical = serde_json::to_vec(self).unwrap_or_default();
        HEXLOWER.encode(&Sha256::digest(canonical))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mount {
    pub volume: String,
    /// The folder in the container.
    pub path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Bytes. No memory is swapped out.
    pub memory: u64,
    /// Thousandths of a processor.
    pub cpu_millis: u32,
    /// Processes and threads.
    pub pids: u32,
}

/// What the entry points of databases need to hand their files to the user that they run as, and
/// what the init process needs to signal that user's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Capability {
    Chown,
    DacOverride,
    Fowner,
    Kill,
    SetGid,
    SetUid,
}

/// A program in the container that exits with 0 while the container is healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HealthCommand {
    /// The program and its arguments, run without a shell.
    pub command: Vec<String>,
    pub interval: Duration,
    /// How long one check may take.
    pub timeout: Duration,
    /// Consecutive failures that make the container unhealthy.
    pub retries: u32,
    /// Failures within this time after the start do not count.
    pub start_period: Duration,
}

/// A container as the engine reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    pub name: String,
    pub id: String,
    pub labels: Labels,
    /// The id of its image, `sha256:…`.
    pub image: String,
    pub phase: Phase,
    /// The result of the health command. `None`: the container has none, or does not run.
    pub health: Option<Health>,
    /// The port on 127.0.0.1. Every start changes it.
    pub port: Option<u16>,
    /// In whole seconds if it comes from an inventory.
    pub created_at: Timestamp,
    /// When the container was last started. Unknown in an inventory.
    pub started_at: Option<Timestamp>,
}

impl Container {
    /// The hash of the spec that the container was created from.
    pub fn spec_hash(&self) -> Option<&str> {
        self.labels.get(ContainerSpec::HASH_LABEL).map(String::as_str)
    }

    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Never started.
    Created,
    Running,
    /// In an inventory the code may be unknown.
    Exited {
        /// 137 if the container was killed.
        code: Option<i64>,
        /// The container exceeded its memory limit.
        out_of_memory: bool,
    },
    /// Neither running nor ended: the engine is changing the container, or has lost it.
    Between,
}

/// The result of a health command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// No result yet.
    Starting,
    Healthy,
    Unhealthy,
}

/// The usage of a running container. Processor and network are counters: a rate needs two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub at: Timestamp,
    /// When the run started. Counters of different runs cannot be compared.
    pub started_at: Timestamp,
    /// Processor time in nanoseconds.
    pub cpu_nanos: u64,
    /// Bytes, without file cache that the kernel frees on demand.
    pub memory: u64,
    /// Bytes.
    pub memory_limit: u64,
    /// Bytes.
    pub received: u64,
    /// Bytes.
    pub sent: u64,
    /// Processes and threads.
    pub pids: u64,
}
