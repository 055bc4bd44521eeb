//! Folders of callers that deployments build: each is sent as one archive, before the deployment.

use crate::{AppId, Sha256, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest archive of a folder, in bytes.
pub const MAX_ARCHIVE: u64 = 64 << 20;
/// The most bytes that the files of a folder may have together.
pub const MAX_UNPACKED: u64 = 512 << 20;
/// The most files of a folder.
pub const MAX_FILES: u64 = 20_000;

endpoints! {
    group Folders "Folders";

    /// Get the URL to which the archive of a folder is sent.
    ///
    /// Send the archive to `uploadUrl`, then deploy it: `triggerDeployment` with the source
    /// `{"folder": {"sha256": …}}`. The service keeps an archive for a day after it was sent or
    /// deployed last, and the last 20 of an app.
    "createSourceUrl": Post "/api/v1/apps/{appId}/sources"
    => CreateSourceUrl { app_id: AppId = "app" } -> SourceUrl
    {
        body: SourceUrlRequest,
        who: Member of (app_id),
        effect: Read,
        scopes: [Deploy],
        done: "The URL, or that the service has the archive already.",
        errors: [TooLarge "the archive exceeds 64 MiB"],
    }
}

edge_endpoints! {
    group FolderArchives "Archives of folders";

    /// Send the archive of a folder: a tar file, compressed with gzip.
    ///
    /// It holds regular files with relative paths, at most 20,000 of them with 512 MiB together,
    /// and no links. At its root is a `Dockerfile`, or the cloud code of a Parse Server in
    /// `cloud/main.js`. The archive is on the disk when the answer comes.
    "putSource": Put "/api/v1/sources/{appId}/{sha256}/content" => PutSource
    {
        access: SignedAddress,
        body: Media("application/gzip"),
        answers: [200 Json(SourceStored) "The archive is stored."],
        errors: [
            Invalid "the folder cannot be deployed, or the archive is damaged, dangerous or has another hash",
            Unauthenticated "the URL's signature is wrong or has expired",
            TooLarge "the archive exceeds 64 MiB",
            RequestTimeout "the bytes did not arrive in time",
        ],
    }
}

/// `POST /api/v1/apps/{appId}/sources`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SourceUrlRequest {
    /// The hash of the archive.
    pub sha256: Sha256,
    /// The size of the archive in bytes.
    pub size: u64,
}

/// The reply of `POST /api/v1/apps/{appId}/sources`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceUrl {
    /// The URL for a `PUT` of the archive. Missing if the service has the archive already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_url: Option<String>,
    /// When the URL expires.
    pub expires_at: Timestamp,
}

/// The reply of a `PUT` of an archive.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceStored {
    /// The hash of the archive, which names it in `triggerDeployment`.
    pub sha256: Sha256,
}
