//! The folders of callers that deployments build.

use super::PortError;
use async_trait::async_trait;
use bytes::Bytes;
use contract::{AppId, Sha256};
use futures_util::stream::BoxStream;
use repository::folder::FolderKind;
use std::{io, time::Duration};

/// An archive is removed when nobody has sent or deployed it for this long.
pub const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
/// The archives of an app that are kept at the same time.
pub const KEPT_OF_APP: usize = 20;

/// The archives of folders, by app and hash. Only checked archives are here.
#[async_trait]
pub trait Folders: Send + Sync {
    /// How the folder is built; the archive is then kept for another [`KEPT_FOR`]. `None`: the
    /// archive is not here.
    async fn renew(&self, app: AppId, sha256: &Sha256) -> Result<Option<FolderKind>, PortError>;
    /// The files of the build, as a tar archive. Cloud code comes with a Dockerfile of the service,
    /// which takes the argument `BASE_IMAGE`.
    async fn context(
        &self,
        app: AppId,
        sha256: &Sha256,
        kind: FolderKind,
    ) -> Result<BoxStream<'static, io::Result<Bytes>>, PortError>;
    /// Removes the archives whose time has passed, and returns their number.
    async fn forget(&self) -> Result<u64, PortError>;
}
