//! The endpoints that are not cloud functions: uploads and downloads of artifacts, and what
//! operators watch. Their bodies, and what the OpenAPI document says of them.

use crate::{
    AppId, ArtifactId, Channel, Few, Name, Notes, Sha256, Timestamp, VersionName, WebUrl,
    apps::Platform,
    artifacts::{ArtifactState, ProvenancePath},
    releases::Target,
    text::FileName,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    #[serde(default, skip_serializing_if = "Few::is_none")]
    pub publish: Few<Target, 0, 5>,
}

/// `GET /readyz`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// `ready`, `degraded` or `starting`.
    pub status: ReadyState,
    /// Each part with its state.
    pub checks: Checks,
    /// The version of the program.
    pub version: String,
    /// Milliseconds since it started.
    pub uptime_ms: u64,
}

/// Whether calls are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadyState {
    /// Everything works.
    Ready,
    /// Calls are answered, but some actor gave up.
    Degraded,
    /// Not yet, or no more.
    Starting,
}

/// The parts of [`Readiness`].
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checks {
    /// The store.
    pub store: StoreCheck,
    /// The actors.
    pub actors: ActorsCheck,
    /// The container engine.
    pub engine: EngineCheck,
}

/// The state of the container engine.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EngineCheck {
    /// Whether it answers.
    pub ok: bool,
    /// Why it does not.
    pub error: Option<String>,
    /// Since when it does not.
    pub since: Option<Timestamp>,
    /// Containers of this installation that no instance knows. They are removed after a day.
    pub orphans: u64,
}

/// The state of the store.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoreCheck {
    /// Whether it takes changes.
    pub ok: bool,
    /// How long the last flush took.
    pub flush_ms: Option<f64>,
}

/// The state of the actors.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActorsCheck {
    /// Whether none gave up and none is stuck.
    pub ok: bool,
    /// How many pause after a panic.
    pub restarting: u64,
    /// How many gave up.
    pub gave_up: u64,
}
