//! The world outside, shaped by our need. Adapters live at the edge and are handed in.

mod clock;
#[cfg(feature = "nothing")]
mod manual_clock;
pub mod parse;
pub mod sealed;
#[cfg(feature = "nothing")]
pub mod unavailable;

pub use clock::{Clock, Time};
#[cfg(feature = "nothing")]
pub use manual_clock::ManualClock;

use crate::{
    kinds::images::Registries,
    ports::{parse::ParseServers, sealed::Sealer},
};
use async_trait::async_trait;
use bytes::Bytes;
use container_engine::Engine;
use contract::{
    AppId, ArtifactId, BackupId, Email, Id, InstanceId, Password, PasswordAttempt, Sha256,
    Timestamp,
    artifacts::{ArtifactKind, Signer},
    deployments::GitSource,
    instances::InstanceKind,
    releases::{Publication, Release, Target},
};
use futures_util::stream::BoxStream;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use ulid::Ulid;

/// Everything that the platform needs of the world.
#[derive(Clone)]
pub struct Ports {
    /// The time.
    pub clock: Clock,
    /// Ids and secrets.
    pub random: Random,
    /// Hashing of passwords, off the request threads.
    pub passwords: Arc<dyn Passwords>,
    /// The bytes of artifacts.
    pub binaries: Arc<dyn Binaries>,
    /// Mail to people.
    pub mail: Arc<dyn Mail>,
    /// Where releases can be published.
    pub publishers: Arc<HashMap<Target, Arc<dyn Publisher>>>,
    /// Where containers run.
    pub engine: Arc<dyn Engine>,
    /// The servers in those containers.
    pub upstream: Arc<dyn Upstream>,
    /// Parse Servers among them.
    pub parse: Arc<dyn ParseServers>,
    /// What deployments are built of.
    pub sources: Arc<dyn Sources>,
    /// The bytes of backups.
    pub dumps: Arc<dyn Dumps>,
    /// Where images come from.
    pub registries: Arc<Registries>,
    /// Secrets at rest.
    pub sealer: Sealer,
    /// Which installation this is.
    pub site: Arc<Site>,
}

/// Which installation this is, and where it is reached.
#[derive(Debug, Clone)]
pub struct Site {
    /// Tells objects of the container engine from those of other installations.
    pub installation: String,
    /// Where clients reach the service, without a slash at the end.
    pub api_url: String,
    /// Whether repositories of users are built here. Builds are not isolated from this machine.
    pub builds_repositories: bool,
}

impl Site {
    /// Where the server of an instance is reached.
    pub fn instance_url(&self, id: InstanceId, app: AppId, kind: InstanceKind) -> String {
        match kind {
            InstanceKind::Backend => format!("{}/instances/{app}", self.api_url),
            InstanceKind::Market => format!("{}/instances/{id}", self.api_url),
        }
    }
}

/// Ids that sort by the time they were made, and secrets that cannot be guessed.
#[derive(Clone, Default)]
pub struct Random(Arc<Mutex<Option<Ulid>>>);

/// The operating system gave no random bytes. Nothing secret can be made.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gives no random bytes: {0}")]
pub struct NoRandomness(String);

impl Random {
    /// A new id, higher than all before it.
    pub fn id<I: Id>(&self, now: Timestamp) -> I {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let next = match *last {
            // the same millisecond, or a clock that went back: count on
            Some(before) if before.timestamp_ms() >= millis => after(before),
            _ => Ulid::from_parts(millis, Ulid::generate().random()),
        };
        *last = Some(next);
        I::of(next)
    }

    /// So many letters and digits, each of 62, for `prefix`.
    pub fn secret(&self, prefix: &str, length: usize) -> Result<String, NoRandomness> {
        const LETTERS: &[u8; 62] =
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut secret = String::from(prefix);
        let mut bytes = [0_u8; 64];
        while secret.len() < prefix.len() + length {
            getrandom::fill(&mut bytes).map_err(|e| NoRandomness(e.to_string()))?;
            // the bytes past 247 would make some letters likelier than others
            let letters =
                bytes.iter().filter(|b| **b < 248).filter_map(|b| LETTERS.get(usize::from(b % 62)));
            secret
                .extend(letters.take(prefix.len() + length - secret.len()).map(|b| char::from(*b)));
        }
        Ok(secret)
    }

    /// A session token: `r:` and 32 hexadecimal digits.
    pub fn session_token(&self) -> Result<String, NoRandomness> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(|e| NoRandomness(e.to_string()))?;
        Ok(format!("r:{:032x}", u128::from_be_bytes(bytes)))
    }
}

/// A later id of the same millisecond. The step is random: who knows one id cannot guess the next.
fn after(before: Ulid) -> Ulid {
    let step = Ulid::generate().random() >> 32;
    let next = before.random().saturating_add(step).saturating_add(1);
    if next < 1 << 80 {
        Ulid::from_parts(before.timestamp_ms(), next)
    } else {
        before.increment().unwrap_or(before)
    }
}

/// Something outside failed; trying again may help.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PortError(pub String);

/// Hashing of passwords.
#[async_trait]
pub trait Passwords: Send + Sync {
    /// The hash to store.
    async fn hash(&self, password: Password) -> Result<String, PortError>;
    /// Whether the password made this hash. Without a hash it takes as long, and answers no.
    async fn verify(
        &self,
        password: PasswordAttempt,
        hash: Option<String>,
    ) -> Result<bool, PortError>;
}

/// The bytes of artifacts: staged while they come in, kept once they are verified.
#[async_trait]
pub trait Binaries: Send + Sync {
    /// How many staged bytes there are; `None`: never any.
    async fn staged(&self, id: ArtifactId) -> Result<Option<u64>, PortError>;
    /// Whether kept bytes can be reached now.
    async fn reach(&self, id: ArtifactId) -> Result<(), PortError>;
    /// Reads the staged (or already kept) bytes whole: their size, hash, and what is inside.
    /// Waits for its turn: the bytes of one app do not keep those of others waiting.
    async fn examine(
        &self,
        app: AppId,
        id: ArtifactId,
        kind: ArtifactKind,
    ) -> Result<Examined, PortError>;
    /// Moves the staged bytes to where they are kept. Done already: fine.
    async fn keep(&self, id: ArtifactId, examined: &Examined) -> Result<(), PortError>;
    /// Removes all bytes of an artifact. There are none: fine.
    async fn discard(&self, id: ArtifactId) -> Result<(), PortError>;
}

/// What the bytes of an artifact are.
#[derive(Debug, Clone, PartialEq)]
pub struct Examined {
    /// Bytes.
    pub size: u64,
    /// Of all bytes.
    pub sha256: Sha256,
    /// What is inside, or why that is not what its kind needs.
    pub content: Result<Content, String>,
}

/// What an app's file says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Bundle identifier or package name.
    pub identifier: String,
    /// `CFBundleShortVersionString` or `versionName`, which an Android app may leave out.
    pub version: Option<String>,
    /// `CFBundleVersion` or `versionCode`.
    pub build_number: Option<String>,
    /// The certificate that signed it.
    pub signer: Option<Signer>,
}

/// What deployments are built of.
#[async_trait]
pub trait Sources: Send + Sync {
    /// A repository as it is at a branch, tag or commit.
    async fn checkout(&self, git: &GitSource, within: Duration) -> Result<Checkout, SourceError>;
}

/// A repository at one commit.
pub struct Checkout {
    /// The commit.
    pub commit: String,
    /// Its files as a tar archive.
    pub context: BoxStream<'static, std::io::Result<Bytes>>,
}

/// Why there is no checkout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// There is no such repository, branch or file, or it may not be opened.
    #[error("{0}")]
    Refused(String),
    /// The host does not answer.
    #[error("{0}")]
    Unreachable(String),
}

/// The bytes of backups: compressed, hashed, and there only once they are kept.
#[async_trait]
pub trait Dumps: Send + Sync {
    /// Writes a dump to where it is not seen yet. An error of the stream leaves nothing.
    async fn write(
        &self,
        id: BackupId,
        plain: BoxStream<'static, std::io::Result<Bytes>>,
    ) -> Result<Written, DumpError>;
    /// Makes what was written the backup, durably. Done already: fine.
    async fn keep(&self, id: BackupId) -> Result<(), DumpError>;
    /// The dump as it was written, once the whole file was found to have this hash.
    async fn read(
        &self,
        id: BackupId,
        sha256: &Sha256,
    ) -> Result<BoxStream<'static, std::io::Result<Bytes>>, DumpError>;
    /// Removes all of it. There is none: fine.
    async fn discard(&self, id: BackupId) -> Result<(), DumpError>;
}

/// A dump that was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Bytes of the file.
    pub size: u64,
    /// Of the file.
    pub sha256: Sha256,
    /// The first bytes of the dump itself.
    pub head: Vec<u8>,
    /// Its last bytes, at most 4 KiB.
    pub tail: Vec<u8>,
}

/// Why there is no dump.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// What was to be written ended with an error.
    #[error("{0}")]
    Source(String),
    /// The disk refused, or has not what it should.
    #[error("{0}")]
    Disk(String),
}

/// The servers in containers of ours, at ports of the loopback address.
#[async_trait]
pub trait Upstream: Send + Sync {
    /// Whether this path answers in time, with a status from 200 to 399.
    async fn is_healthy(&self, port: u16, path: &str, within: Duration) -> bool;
}

/// Mail to people.
#[async_trait]
pub trait Mail: Send + Sync {
    /// Sends a message, or hands it to whoever delivers it.
    async fn send(&self, to: &Email, subject: &str, text: &str) -> Result<(), PortError>;
}

/// A place where releases are published.
#[async_trait]
pub trait Publisher: Send + Sync {
    /// Makes the artifact of this publication available. Done already: the same answer.
    async fn publish(
        &self,
        release: &Release,
        publication: &Publication,
    ) -> Result<Published, PortError>;
}

/// How a target took a publication.
#[derive(Debug, Clone, PartialEq)]
pub enum Published {
    /// Users can get it.
    Live {
        /// Where.
        url: Option<String>,
    },
    /// The target refused it, for this reason.
    Refused(String),
}
