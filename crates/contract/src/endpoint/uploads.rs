//! The endpoints that open and finalize uploads.

use crate::{
    AppId, ArtifactId, BoundedSet, BuildId, Channel, Name, Notes, Sha256, Timestamp, VersionName,
    WebUrl,
    apps::Platform,
    artifacts::{Artifact, ArtifactState, ProvenancePath},
    releases::Target,
    text::{FileName, RunnerKey},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    group Uploads "Artifact endpoints";

    /// Open an upload, or resume an open one.
    ///
    /// With `size` and `sha256`, the service resumes an open upload of the same bytes, or finds the
    /// app's artifact with these bytes. Send the bytes to `uploadUrl`, then finalize the artifact.
    "createUploadUrl": Post "/api/v1/artifacts/upload-url" => CreateUploadUrl {} -> UploadUrl
    {
        body: UploadUrlRequest,
        who: Member of (body.app_id),
        effect: Change,
        scopes: [ArtifactUpload],
        created: "The upload is open.",
        done: "The same upload is open and is resumed at `offset`, or the app already has these bytes.",
        errors: [TooLarge "the file exceeds the maximum size of an artifact", NotNow "100 uploads of the app are open"],
    }

    /// Verify the uploaded bytes, and create or extend a release on request.
    ///
    /// The call waits for the verification. Another call with the same artifact gets the same
    /// answer.
    "finalizeArtifact": Post "/api/v1/artifacts/{artifactId}/finalize"
    => FinalizeArtifact { artifact_id: ArtifactId = "artifact" } -> Artifact
    {
        body: FinalizeRequest,
        who: Member of (artifact_id),
        effect: Change,
        scopes: [
            ArtifactUpload,
            ReleaseCreate when releases "with `createRelease`",
            ReleasePublish or own ReleaseCreate when publishes "with `createRelease.publish`"
        ],
        limit: 310,
        created: "This call verified the artifact.",
        done: "The artifact was verified before.",
        errors: [
            NotNow "bytes are missing (`offset` is the number of stored bytes), or the release is not possible",
            NotAsDeclared "the bytes are not as declared; open a new upload",
            NoAnswer "the verification takes longer; call again",
        ],
    }
}

/// The size of the parts that clients should send, in bytes.
pub const PART_SIZE: u64 = 8 << 20;

/// `POST /api/v1/artifacts/upload-url`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UploadUrlRequest {
    /// The app that the artifact belongs to.
    pub app_id: AppId,
    /// The platform. It must match the kind of the file.
    pub platform: Platform,
    /// The file's name. Its extension is the kind: `.ipa`, `.apk` or `.aab`.
    pub file_name: FileName,
    /// The expected version in the file. The default is the version in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionName>,
    /// The size in bytes. With `size` and `sha256`, an open upload of the same bytes is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The hash of the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// The expected build number in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_number: Option<Name>,
    /// The name of the build profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Name>,
    /// Where the file comes from. Ignored for the file of a build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<DeclaredProvenance>,
    /// The build that made the file. Only the runner that has the build may name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildOfRunner>,
}

/// A build, with the key of the runner that has it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildOfRunner {
    /// A build that this runner claimed, and that has not ended.
    pub build_id: BuildId,
    /// The key of the runner.
    pub runner: RunnerKey,
}

/// The origin of a file, as its uploader declares it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeclaredProvenance {
    /// How the build was started and uploaded.
    pub path: ProvenancePath,
    /// The source repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<Name>,
    /// The source commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Name>,
    /// The source branch or tag.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<Name>,
    /// The URL of the CI run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_url: Option<WebUrl>,
}

/// The reply of `POST /api/v1/artifacts/upload-url`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadUrl {
    /// The artifact that the upload belongs to.
    pub artifact_id: ArtifactId,
    /// `pending`, or `verifying` or `verified` if the app already has these bytes.
    pub state: ArtifactState,
    /// The number of bytes that are stored durably.
    pub offset: u64,
    /// The URL for the bytes. Missing if the service needs no bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_url: Option<String>,
    /// The HTTP method of the upload: `PUT`.
    pub method: String,
    /// Headers that the upload must have.
    pub headers: std::collections::BTreeMap<String, String>,
    /// The maximum size of an artifact, in bytes.
    pub max_bytes: u64,
    /// When the URL expires.
    pub expires_at: Timestamp,
    /// The size of the parts that clients should send, in bytes.
    #[serde(default)]
    pub part_size: u64,
}

/// The reply of a `PUT` to an upload URL.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Received {
    /// The artifact of the upload URL.
    pub artifact_id: ArtifactId,
    /// The number of bytes that are stored durably.
    pub received: u64,
}

/// `POST /api/v1/artifacts/{artifactId}/finalize`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FinalizeRequest {
    /// The hash of the whole file. It must match the stored bytes.
    pub sha256: Sha256,
    /// The size in bytes. It must match the stored bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The attestation of the build: a Sigstore bundle with SLSA provenance of this file, such as
    /// GitHub's `attest-build-provenance` makes. The run must be one of a trusted publisher of the
    /// app. It can also be given later, by repeating the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<serde_json::Map<String, serde_json::Value>>,
    /// The release that gets the artifact after its verification. The call creates the release, or
    /// adds the artifact if the release exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_release: Option<ReleaseRequest>,
}

impl FinalizeRequest {
    /// The request for a file, and nothing beyond its verification.
    pub fn of(sha256: Sha256, size: Option<u64>) -> Self {
        FinalizeRequest { sha256, size, attestation: None, create_release: None }
    }

    fn releases(&self) -> bool {
        self.create_release.is_some()
    }

    fn publishes(&self) -> bool {
        self.create_release.as_ref().is_some_and(|release| !release.publish.is_empty())
    }
}

/// The release that gets an artifact. A repeated request changes nothing.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReleaseRequest {
    /// The channel of which it becomes the current release, once it is published.
    pub channel: Channel,
    /// The default is the artifact's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionName>,
    /// What is new, for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
    /// The targets to publish the release to. The default is none.
    #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
    pub publish: BoundedSet<Target, 0, 5>,
}
