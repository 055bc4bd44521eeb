//! The endpoints: what is served beside the cloud functions, each at an address of its own. Opening
//! and finalizing uploads, which the platform serves, stands here; what the edge answers itself has
//! a file for each group.

#[macro_use]
mod declaration;
pub mod files;
pub mod install;
pub mod instances;
pub mod operators;
pub mod session_routes;

pub use declaration::*;
pub use operators::{ActorsCheck, Checks, EngineCheck, Readiness, ReadyState, StoreCheck};

use crate::{
    AppId, ArtifactId, BoundedSet, Channel, Name, Notes, Route, Sha256, Timestamp, VersionName,
    WebUrl,
    apps::Platform,
    artifacts::{Artifact, ArtifactState, ProvenancePath},
    releases::Target,
    text::FileName,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where functions are called and the session routes are.
pub const BASE_PATH: &str = "/backend";

/// Whether a path is among the functions and session routes.
#[allow(clippy::indexing_slicing, reason = "bounded by the loop; iterators are not const")]
pub const fn is_below_base(path: &str) -> bool {
    let (path, base) = (path.as_bytes(), BASE_PATH.as_bytes());
    let mut i = 0;
    while i < base.len() {
        if i >= path.len() || path[i] != base[i] {
            return false;
        }
        i += 1;
    }
    path.len() > base.len() && path[base.len()] == b'/'
}

/// All endpoints, in the order of the documentation.
pub const GROUPS: &[EndpointGroup] = &[
    OPERATIONS,
    files::GROUP,
    install::GROUP,
    instances::GROUP,
    session_routes::OPERATIONS,
    session_routes::GROUP,
    operators::GROUP,
];

/// Every endpoint there is.
pub fn all() -> impl Iterator<Item = &'static Endpoint> {
    GROUPS.iter().flat_map(|group| group.endpoints)
}

/// A server that serves every endpoint that the platform serves.
pub trait ServesAll: Served + session_routes::Served {}
impl<P: Served + session_routes::Served> ServesAll for P {}

/// The routes of every endpoint that the platform serves.
pub fn all_routes<P: ServesAll>() -> impl Iterator<Item = Route<P>> {
    routes().into_iter().chain(session_routes::routes())
}

endpoints! {
    group "Artifact endpoints";

    /// Open an upload, or find it again.
    ///
    /// With `size` and `sha256` an open upload of the same bytes is resumed where it stopped, and
    /// bytes that the app holds already are found. Send the bytes to `uploadUrl`, then finalize.
    "createUploadUrl": Post "/api/v1/artifacts/upload-url" => CreateUploadUrl {} with UploadUrlRequest => UploadUrl
    {
        who: Member of (body.app_id),
        effect: Change,
        scopes: [ArtifactUpload],
        created: "The upload is open.",
        done: "The same upload is open and is resumed at `offset`, or the bytes are held already.",
        errors: [TooLarge "larger than an artifact may be", NotNow "100 uploads of the app are open"],
    }

    /// Have the bytes verified, and a release made of them where one is asked for.
    ///
    /// Waits for the verification. Finalizing again gives the same answer, whoever asks.
    "finalizeArtifact": Post "/api/v1/artifacts/{artifactId}/finalize" => FinalizeArtifact
    { artifact_id: ArtifactId = "artifact" } with FinalizeRequest => Artifact
    {
        who: Member of (artifact_id),
        effect: Change,
        scopes: [
            ArtifactUpload,
            ReleaseCreate when releases "with `createRelease`",
            ReleasePublish or own ReleaseCreate when publishes "with `createRelease.publish`"
        ],
        limit: 310,
        created: "Verified by this call.",
        done: "Verified before.",
        errors: [
            NotNow "bytes are missing (`offset` says how many are stored), or the release cannot be made",
            NotAsDeclared "the bytes are not what was declared; a new upload is needed",
            NoAnswer "the verification takes longer; ask again",
        ],
    }
}

/// The largest part of an upload that clients are told to send, in bytes.
pub const PART_SIZE: u64 = 8 << 20;

/// `POST /api/v1/artifacts/upload-url`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UploadUrlRequest {
    /// The app that the artifact belongs to.
    pub app_id: AppId,
    /// The platform; must fit the file's kind.
    pub platform: Platform,
    /// Its ending says the kind: `.ipa`, `.apk` or `.aab`.
    pub file_name: FileName,
    /// The version in the file, which finalizing compares. Where it is left out, the file says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionName>,
    /// Bytes. With `size` and `sha256` an open upload is resumed, and held bytes are found again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Of the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// The build number in the file; compared where it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_number: Option<Name>,
    /// The build profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Name>,
    /// Where the file comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<DeclaredProvenance>,
}

/// Where a file comes from, as its uploader says.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeclaredProvenance {
    /// The execution path.
    pub path: ProvenancePath,
    /// The repository it was built from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<Name>,
    /// The commit it was built from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Name>,
    /// The branch or tag it was built from.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<Name>,
    /// The run that built it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_url: Option<WebUrl>,
}

/// The reply of `POST /api/v1/artifacts/upload-url`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadUrl {
    /// The artifact that waits for its bytes.
    pub artifact_id: ArtifactId,
    /// `pending`; `verifying` or `verified` where the app has these bytes already.
    pub state: ArtifactState,
    /// How many bytes are stored durably.
    pub offset: u64,
    /// Where the bytes go; absent where none are needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_url: Option<String>,
    /// `PUT`.
    pub method: String,
    /// Headers to send along.
    pub headers: std::collections::BTreeMap<String, String>,
    /// The largest file taken.
    pub max_bytes: u64,
    /// When the address ends.
    pub expires_at: Timestamp,
    /// The size of the parts that a client should send, in bytes.
    #[serde(default)]
    pub part_size: u64,
}

/// The reply of a `PUT` to an upload address.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Received {
    /// The artifact.
    pub artifact_id: ArtifactId,
    /// How many bytes are stored durably.
    pub received: u64,
}

/// `POST /api/v1/artifacts/{artifactId}/finalize`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FinalizeRequest {
    /// Of the whole file; compared with the stored bytes.
    pub sha256: Sha256,
    /// Bytes; compared where given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The release that the artifact goes to once it is verified: made now, or joined where
    /// another job made it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_release: Option<ReleaseRequest>,
}

impl FinalizeRequest {
    fn releases(&self) -> bool {
        self.create_release.is_some()
    }

    fn publishes(&self) -> bool {
        self.create_release.as_ref().is_some_and(|release| !release.publish.is_empty())
    }
}

/// The release that an artifact goes to. Asking for it again changes nothing.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReleaseRequest {
    /// The channel.
    pub channel: Channel,
    /// The artifact's version where nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionName>,
    /// Release notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
    /// Publish it to these targets.
    #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
    pub publish: BoundedSet<Target, 0, 5>,
}
