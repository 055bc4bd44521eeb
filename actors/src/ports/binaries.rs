//! The bytes of artifacts.

use super::PortError;
use crate::runtime::turns::Tenant;
use async_trait::async_trait;
use bytes::Bytes;
use contract::{
    ArtifactId, Sha256,
    artifacts::{AppProfile, ArtifactKind, Signer},
};

/// The bytes of artifacts: staged during the upload, kept once they are verified.
#[async_trait]
pub trait Binaries: Send + Sync {
    /// How many bytes are staged. `None`: nothing is staged.
    async fn staged(&self, id: ArtifactId) -> Result<Option<u64>, PortError>;
    /// Fails if the store of kept bytes does not answer.
    async fn reach(&self, id: ArtifactId) -> Result<(), PortError>;
    /// Reads all staged (or already kept) bytes: their size, hash and content. Waits for a turn;
    /// the artifacts of one tenant do not block those of others.
    async fn examine(
        &self,
        tenant: Tenant,
        id: ArtifactId,
        kind: ArtifactKind,
    ) -> Result<Examined, PortError>;
    /// Moves the staged bytes to the store of kept bytes. Idempotent.
    async fn keep(&self, id: ArtifactId, examined: &Examined) -> Result<(), PortError>;
    /// Reads some of the kept bytes.
    async fn part(&self, id: ArtifactId, offset: u64, length: u64) -> Result<Bytes, PortError>;
    /// Deletes all bytes of an artifact. Idempotent.
    async fn discard(&self, id: ArtifactId) -> Result<(), PortError>;
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
