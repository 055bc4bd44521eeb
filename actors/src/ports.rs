//! The world outside, shaped by our need. Adapters live at the edge and are handed in.

use async_trait::async_trait;
use contract::{
    ArtifactId, Email, Id, Password, Sha256, Timestamp,
    artifacts::{ArtifactKind, Signer},
    releases::{Publication, Release, Target},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
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
}

/// The time, as a function: tests hand in their own.
#[derive(Clone, Copy)]
pub struct Clock(pub fn() -> Timestamp);

impl Clock {
    /// The time now.
    pub fn now(self) -> Timestamp {
        (self.0)()
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
    async fn verify(&self, password: Password, hash: Option<String>) -> Result<bool, PortError>;
}

/// The bytes of artifacts: staged while they come in, kept once they are verified.
#[async_trait]
pub trait Binaries: Send + Sync {
    /// How many staged bytes there are; `None`: never any.
    async fn staged(&self, id: ArtifactId) -> Result<Option<u64>, PortError>;
    /// Whether kept bytes can be reached now.
    async fn reach(&self, id: ArtifactId) -> Result<(), PortError>;
    /// Reads the staged (or already kept) bytes whole: their size, hash, and what is inside.
    async fn examine(&self, id: ArtifactId, kind: ArtifactKind) -> Result<Examined, PortError>;
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
    /// `CFBundleShortVersionString` or `versionName`.
    pub version: String,
    /// `CFBundleVersion` or `versionCode`.
    pub build_number: Option<String>,
    /// The certificate that signed it.
    pub signer: Option<Signer>,
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
