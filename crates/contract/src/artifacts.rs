//! Artifacts: uploaded binaries, which the service verifies. The upload endpoints are in
//! [`endpoint`](crate::endpoint).

use crate::{
    AppId, ArtifactId, BuildId, Name, Page, Sha256, Timestamp, UserId, VersionName, WebUrl,
    apps::Platform,
    page::*,
    text::{FileName, StoreIdentifier},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Artifacts";

    /// List the artifacts of an app.
    "svc_getArtifacts": GetArtifacts {
        app_id: AppId,
        /// Return only artifacts for this platform.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        platform: Option<Platform>,
        /// Return only artifacts of this version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<VersionName>,
        /// Return only artifacts in this state. Deleted artifacts are in no list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<ArtifactState>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Artifact> { who: Member of (app_id), effect: Read, scope: ArtifactUpload }

    /// Read an artifact.
    "svc_getArtifact": GetArtifact { artifact_id: ArtifactId } -> Artifact
    { who: Member of (artifact_id), effect: Read, scope: ArtifactUpload }

    /// Get a URL that downloads a verified artifact. It is valid for one hour.
    "svc_getArtifactDownloadUrl": GetArtifactDownloadUrl { artifact_id: ArtifactId } -> DownloadUrl
    { who: Member of (artifact_id), effect: Read, errors: [NotNow "it is not verified"] }

    /// Delete an artifact and its bytes. The call fails while a release contains the artifact.
    "svc_deleteArtifact": DeleteArtifact { artifact_id: ArtifactId } -> DeletedArtifact
    { who: OwnerOrAdmin of (artifact_id), effect: Change, errors: [NotNow "a release holds it"] }
}

records! {
    /// An uploaded binary.
    pub struct Artifact {
        id: ArtifactId,
        app_id: AppId,
        platform: Platform,
        /// The file format, by the extension of the file name.
        kind: ArtifactKind,
        /// The name of the file as its uploader gave it, without a folder.
        file_name: FileName,
        /// Bytes. Null until the size is declared or verified.
        size: Option<u64>,
        /// The SHA-256 of the file, in lower-case hexadecimal digits. Null until it is declared or
        /// verified.
        sha256: Option<Sha256>,
        /// The version in the file. Until the artifact is verified, this is the declared version.
        version: Option<VersionName>,
        /// `CFBundleVersion` or `versionCode`.
        build_number: Option<String>,
        /// The bundle identifier or package name in the file.
        identifier: Option<StoreIdentifier>,
        /// Where the file comes from. `claimed` tells whether only the uploader says so.
        provenance: Provenance,
        /// How well the origin of the file is proven. A channel may demand a minimum.
        trust: Trust,
        /// Which CI run built the file, as its attestation proves.
        #[serde(default)]
        attestation: Option<Attestation>,
        /// Who signed the file. Null for an unsigned file.
        signer: Option<Signer>,
        /// The provisioning profile in an iOS app: it says which devices install the app, and until
        /// when it opens. Null for Android, without a readable profile, and in records of earlier
        /// versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<AppProfile>,
        /// Where the artifact stands. Only a `verified` one can be released and downloaded.
        state: ArtifactState,
        /// Why the artifact was rejected.
        problem: Option<String>,
        created_at: Timestamp,
        /// When the file was verified or rejected. Null before that, and if the upload expired.
        finalized_at: Option<Timestamp>,
    }

    /// Where an artifact comes from.
    pub struct Provenance {
        /// How the build was started and uploaded.
        path: ProvenancePath,
        /// Null if the master key alone created the artifact.
        uploaded_by: Option<UserId>,
        /// The repository that the file was built from: an address, or a name such as `acme/app`.
        /// Null if it is not known.
        #[serde(default)]
        repository: Option<String>,
        /// The commit that the file was built from. Null if it is not known.
        #[serde(default)]
        commit: Option<String>,
        /// The branch, tag or commit that was built, such as `main` or `refs/tags/v1`. Null if it
        /// is not known.
        #[serde(default, rename = "ref")]
        git_ref: Option<String>,
        /// The page of the CI run that built the file. Null if there was none, or it is not known.
        #[serde(default)]
        run_url: Option<WebUrl>,
        /// The build profile, such as `production`. Null if it is not known.
        #[serde(default)]
        profile: Option<Name>,
        /// The build that made the artifact.
        #[serde(default)]
        build_id: Option<BuildId>,
        /// Whether the uploader says this. False for the artifact of a build: the service triggered
        /// it, and knows.
        #[serde(default = "claimed")]
        claimed: bool,
    }

    /// The CI run that built a file, as its attestation proves (SLSA provenance, signed with
    /// Sigstore).
    pub struct Attestation {
        /// The repository that the run built, such as `acme/app`.
        repository: String,
        /// The id that the host gave to the repository.
        repository_id: String,
        /// The id that the host gave to the owner of the repository.
        repository_owner_id: String,
        /// The workflow that began the run, with its repository and the reference.
        workflow: String,
        /// The workflow that contains the job that built and signed. Another one than `workflow` if
        /// that calls a reusable workflow.
        signer_workflow: String,
        commit: String,
        /// The full name of the branch or tag that the run built, such as `refs/heads/main`.
        #[serde(rename = "ref")]
        git_ref: String,
        /// The page of the run at its host. Null if the attestation names no web address.
        run_url: Option<WebUrl>,
        /// `github-hosted` or `self-hosted`.
        runner_environment: String,
        /// When the attestation was signed, as its earliest verified timestamp says.
        signed_at: Timestamp,
    }

    /// The certificate that signed a file.
    pub struct Signer {
        /// The hash of the certificate in DER.
        sha256: Sha256,
        /// The name in the certificate, such as `C=DE, O=Example, CN=Example App`. Anybody can
        /// write any name.
        subject: String,
    }

    /// The provisioning profile in an iOS app.
    pub struct AppProfile {
        /// Which devices install the app.
        distribution: Distribution,
        /// When the app ceases to open. Apps from the App Store stay.
        expires_at: Timestamp,
        /// The last six characters of the identifiers (UDID) of the devices, of at most 500. Empty
        /// unless `distribution` is `adHoc` or `development`.
        device_endings: Vec<String>,
    }

    /// A signed URL. It needs no other credentials.
    pub struct DownloadUrl {
        /// Where a `GET` request downloads the file, until `expiresAt`.
        url: String,
        expires_at: Timestamp,
    }

    /// The artifact that the call deleted.
    pub struct DeletedArtifact { deleted: ArtifactId }
}

/// Which devices install an iOS app, by its provisioning profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Distribution {
    /// All, through TestFlight and the App Store. Phones refuse the file itself.
    AppStore,
    /// The registered devices.
    AdHoc,
    /// The registered devices, with a debugger.
    Development,
    /// Every device of the company that signed it.
    Enterprise,
}

impl Attestation {
    /// Whether another attestation says the same, except for its time.
    pub fn is_same_run(&self, other: &Attestation) -> bool {
        *self == Attestation { signed_at: self.signed_at, ..other.clone() }
    }
}

/// The origin of artifacts of earlier versions was always what the uploader said.
fn claimed() -> bool {
    true
}

/// The file format of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArtifactKind {
    /// iOS app.
    Ipa,
    /// Android package.
    Apk,
    /// Android App Bundle.
    Aab,
}

impl ArtifactKind {
    /// The kind of a file, by the extension of its name in any case.
    pub fn of_file_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "ipa" => Some(ArtifactKind::Ipa),
            "apk" => Some(ArtifactKind::Apk),
            "aab" => Some(ArtifactKind::Aab),
            _ => None,
        }
    }

    /// The platform of files of this kind.
    pub fn platform(self) -> Platform {
        match self {
            ArtifactKind::Ipa => Platform::Ios,
            ArtifactKind::Apk | ArtifactKind::Aab => Platform::Android,
        }
    }

    /// The file name extension, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            ArtifactKind::Ipa => "ipa",
            ArtifactKind::Apk => "apk",
            ArtifactKind::Aab => "aab",
        }
    }
}

/// How a build was started and uploaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProvenancePath {
    /// Started in the dashboard.
    DashboardTrigger,
    /// Started with the command line.
    CliTrigger,
    /// Built on a developer's machine and published from there.
    LocalPublish,
    /// Uploaded by another CI system.
    ExternalCi,
    /// Uploaded by hand.
    ManualUpload,
}

/// How well the origin of an artifact is proven.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Uploaded by a person.
    Unverified,
    /// Uploaded with a deploy token.
    Token,
    /// Uploaded by a CI run that proved its identity.
    Oidc,
    /// The artifact's build attestation was verified.
    Attested,
}

/// Where an artifact stands, from the announced upload on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArtifactState {
    /// The service waits for the bytes.
    Pending,
    /// The service checks the bytes.
    Verifying,
    /// The bytes are as declared. Only a verified artifact can be released and downloaded.
    Verified,
    /// The bytes are not as declared. Open a new upload.
    Rejected,
    /// The bytes did not arrive in time.
    Expired,
    /// Somebody deleted the artifact, and nobody can download it any more.
    Deleted,
}
