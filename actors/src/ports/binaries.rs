//! The bytes of artifacts.

use super::PortError;
use crate::runtime::turns::Tenant;
use async_trait::async_trait;
use bytes::Bytes;
use contract::{
    ArtifactId, Sha256,
    artifacts::{AppProfile, ArtifactKind, Signer},
};
use serde::{Deserialize, Serialize};

/// The bytes of artifacts: staged during the upload, kept once they are verified.
#[async_trait]
pub trait Binaries: Send + Sync {
    /// How many of the bytes that the record counts are staged. After a crash, a file may be shorter or longer
    /// than its record says.
    async fn staged(&self, id: ArtifactId, recorded: &Staged) -> Result<u64, PortError>;
    /// Fails if the store of kept bytes does not answer.
    async fn reach(&self, id: ArtifactId) -> Result<(), PortError>;
    /// Is held during a verification. When it is dropped, what this node put together for that is removed: another node
    /// may have taken over.
    fn working_copy(&self, _: ArtifactId) -> Box<dyn Send> {
        Box::new(())
    }
    /// Reads all staged (or already kept) bytes: their size, hash and content. Waits for a turn;
    /// the artifacts of one tenant do not block those of others.
    async fn examine(
        &self,
        tenant: Tenant,
        id: ArtifactId,
        kind: ArtifactKind,
        recorded: &Staged,
    ) -> Result<Examined, PortError>;
    /// Moves the staged bytes to the store of kept bytes. Idempotent.
    async fn keep(&self, id: ArtifactId, examined: &Examined) -> Result<(), PortError>;
    /// Reads some of the kept bytes.
    async fn part(&self, id: ArtifactId, offset: u64, length: u64) -> Result<Bytes, PortError>;
    /// Deletes all bytes of an artifact. Idempotent.
    async fn discard(&self, id: ArtifactId) -> Result<(), PortError>;
}

/// The staged bytes of an artifact, as its record knows them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Staged {
    /// How many bytes are durable.
    pub offset: u64,
    /// Where they are, if nodes share them. Empty: in a file of the only node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Segment>,
}

/// Staged bytes in an object of their own, which any node can read. They follow those of the segment before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// One past its last byte in the file.
    pub end: u64,
    /// The name of the object. It is random: a late writer overwrites nothing that counts.
    pub name: String,
}

/// What [`Binaries::examine`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct Examined {
    /// In bytes.
    pub size: u64,
    pub sha256: Sha256,
    /// The error says why the file is not valid for its kind.
    pub content: Result<AppMetadata, String>,
}

/// The metadata in the file of an app.
#[derive(Debug, Clone, PartialEq)]
pub struct AppMetadata {
    /// Bundle identifier or package name.
    pub identifier: String,
    /// `CFBundleShortVersionString` or `versionName`. An Android app may leave it out.
    pub version: Option<String>,
    /// `CFBundleVersion` or `versionCode`.
    pub build_number: Option<String>,
    /// The certificate that signed it.
    pub signer: Option<Signer>,
    /// The provisioning profile in an iOS app.
    pub profile: Option<AppProfile>,
}
