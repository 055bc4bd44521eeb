//! Containers: what they are to be, and what they are.

use crate::Labels;
use contract::Timestamp;
use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, fmt, time::Duration};

/// What a container is to be.
///
/// What is not said here is the same for all, and safe: no capability but those listed, no new
/// privileges, ports on 127.0.0.1 only, an init process, bounded logs, no restarts by the engine.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct ContainerSpec {
    /// At most 63 of `[a-z0-9-]`.
    pub name: String,
    /// A reference that names one image for ever: by digest, or the id of an image built here.
    pub image: String,
    /// Replaces the image's own command.
    pub command: Option<Vec<String>>,
    /// Names and values; they hold secrets.
    pub env: BTreeMap<String, String>,
    /// The network it is on.
    pub network: String,
    /// What others on the network call it.
    pub alias: String,
    /// The port that is published on 127.0.0.1, under a number that the engine chooses.
    pub port: Option<u16>,
    pub mounts: Vec<Mount>,
    /// Folders in memory: nothing else can be written where the root is read-only.
    pub scratch: Vec<String>,
    /// Whether its own files can be changed.
    pub read_only: bool,
    /// As whom it runs, where not as the image says.
    pub user: Option<String>,
    /// What it may do beyond a plain program.
    pub capabilities: Vec<Capability>,
    pub limits: Limits,
    /// How the engine finds out whether it is well.
    pub health: Option<HealthCommand>,
    /// How long it may take to end by itself.
    pub grace: Duration,
    /// Whose it is. The spec's hash is added.
    pub labels: Labels,
}

impl fmt::Debug for ContainerSpec {
    /// Without the environment, which holds secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerSpec")
            .field("name", &self.name)
            .field("image", &self.image)
            .finish_non_exhaustive()
    }
}

impl ContainerSpec {
    /// The label that says which spec a container was made of.
    pub const HASH_LABEL: &str = "svc.spec";

    /// SHA-256 of all of it, in hex: two containers of one hash are the same.
    pub fn hash(&self) -> String {
        // A spec always serializes: its maps have text as keys.
        let canonical = serde_json::to_vec(self).unwrap_or_default();
        HEXLOWER.encode(&Sha256::digest(canonical))
    }
}

/// A volume in a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// The name of the volume.
    pub volume: String,
    /// Where the container sees it.
    pub path: String,
}

/// What a container may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Bytes of memory; none is swapped out.
    pub memory: u64,
    /// Thousandths of a processor.
    pub cpu_millis: u32,
    /// Processes and threads.
    pub pids: u32,
}

/// What a container may be allowed beyond a plain program: what the entry points of databases need
/// to hand their files to the user that they run as, and what the init process needs to tell that
/// user's processes to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[allow(missing_docs, reason = "they are the kernel's: see capabilities(7)")]
pub enum Capability {
    Chown,
    DacOverride,
    Fowner,
    Kill,
    SetGid,
    SetUid,
}

/// How the engine finds out whether a container is well: a program inside of it that ends with 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HealthCommand {
    /// The program and its arguments; no shell.
    pub command: Vec<String>,
    pub interval: Duration,
    /// How long it may take.
    pub timeout: Duration,
    /// How many failures in a row make it unhealthy.
    pub retries: u32,
    /// How long after the start failures do not count.
    pub start_period: Duration,
}

/// A container as the engine shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    pub name: String,
    /// What the engine calls it.
    pub id: String,
    pub labels: Labels,
    /// The id of its image, `sha256:…`.
    pub image: String,
    pub phase: Phase,
    /// What its health command says; `None`: it has none.
    pub health: Option<Health>,
    /// Where its port is published on 127.0.0.1 now. It changes with every start.
    pub port: Option<u16>,
    /// When it was made. From an inventory, in whole seconds.
    pub created_at: Timestamp,
    /// When it was last started. Not known from an inventory.
    pub started_at: Option<Timestamp>,
}

impl Container {
    /// The hash of the spec that it was made of.
    pub fn spec_hash(&self) -> Option<&str> {
        self.labels.get(ContainerSpec::HASH_LABEL).map(String::as_str)
    }

    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }
}

/// Whether a container runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It was made and never started.
    Created,
    Running,
    /// It ran. From an inventory the code may be unknown.
    Exited {
        /// What it ended with; 137 where it was killed.
        code: Option<i64>,
        /// It wanted more memory than it may have.
        out_of_memory: bool,
    },
    /// The engine is at work on it, or has lost it: neither running nor ended.
    Between,
}

/// What a health command says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Too early to say.
    Starting,
    Healthy,
    Unhealthy,
}

/// What a running container uses. Processor and network are counters: two samples make a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub at: Timestamp,
    /// Since when the container runs: counters of two runs are not compared.
    pub started_at: Timestamp,
    /// Nanoseconds of processor time used by it.
    pub cpu_nanos: u64,
    /// Bytes of memory, without what the kernel would give back at once.
    pub memory: u64,
    /// Bytes that it may use.
    pub memory_limit: u64,
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Processes and threads.
    pub pids: u64,
}
