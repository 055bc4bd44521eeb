//! Artifacts: uploaded binaries, verified before they count. The three upload endpoints themselves
//! are in [`endpoint`](crate::endpoint).

use crate::{
    AppId, ArtifactId, Name, Page, Sha256, Timestamp, UserId, VersionName, WebUrl,
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
        #[serde(default, skip_serializing_if = "Option::is_none")]
        platform: Option<Platform>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<VersionName>,
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

    /// Get an address that downloads a verified artifact, good for one hour.
    "svc_getArtifactDownloadUrl": GetArtifactDownloadUrl { artifact_id: ArtifactId } -> DownloadUrl
    { who: Member of (artifact_id), effect: Read, errors: [NotNow "it is not verified"] }

    /// Delete an artifact and its bytes. Refused while a release holds it.
    "svc_deleteArtifact": DeleteArtifact { artifact_id: ArtifactId } -> DeletedArtifact
    { who: OwnerOrAdmin of (artifact_id), effect: Change, errors: [NotNow "a release holds it"] }
}

records! {
    /// An uploaded binary.
    pub struct Artifact {
        id: ArtifactId,
        app_id: AppId,
        platform: Platform,
        kind: ArtifactKind,
        file_name: FileName,
        /// Bytes; known once declared or verified.
        size: Option<u64>,
        sha256: Option<Sha256>,
        /// The version in the file; until it is verified, the one that was declared.
        version: Option<VersionName>,
        /// `CFBundleVersion` or `versionCode`.
        build_number: Option<String>,
        /// Bundle identifier or package name, as the file says.
        identifier: Option<StoreIdentifier>,
        provenance: Provenance,
        trust: Trust,
        /// Who signed the file, where it is signed.
        signer: Option<Signer>,
        state: ArtifactState,
        /// Why it was rejected.
        problem: Option<String>,
        created_at: Timestamp,
        finalized_at: Option<Timestamp>,
    }

    /// Which execution path produced an artifact.
    pub struct Provenance {
        path: ProvenancePath,
        /// Null where the master key alone stands behind it.
        uploaded_by: Option<UserId>,
        #[serde(default)]
        repository: Option<String>,
        #[serde(default)]
        commit: Option<String>,
        #[serde(default, rename = "ref")]
        git_ref: Option<String>,
        #[serde(default)]
        run_url: Option<WebUrl>,
        #[serde(default)]
        profile: Option<Name>,
    }

    /// The certificate that signed a file.
    pub struct Signer {
        /// Of the certificate's DER.
        sha256: Sha256,
        subject: String,
    }

    /// An address with its own authority.
    pub struct DownloadUrl { url: String, expires_at: Timestamp }

    /// The artifact that was deleted.
    pub struct DeletedArtifact { deleted: ArtifactId }
}

/// What kind of file an artifact is.
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
    /// From the end of a file's name, in any case.
    pub fn of_file_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "ipa" => Some(ArtifactKind::Ipa),
            "apk" => Some(ArtifactKind::Apk),
            "aab" => Some(ArtifactKind::Aab),
            _ => None,
        }
    }

    /// The platform that files of this kind are for.
    pub fn platform(self) -> Platform {
        match self {
            ArtifactKind::Ipa => Platform::Ios,
            ArtifactKind::Apk | ArtifactKind::Aab => Platform::Android,
        }
    }

    /// What a file of this kind ends in, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            ArtifactKind::Ipa => "ipa",
            ArtifactKind::Apk => "apk",
            ArtifactKind::Aab => "aab",
        }
    }
}

/// The execution paths of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProvenancePath {
    /// Triggered in the dashboard.
    DashboardTrigger,
    /// Triggered with the command line.
    CliTrigger,
    /// Built on a developer's machine and published from there.
    LocalPublish,
    /// Uploaded by some other CI.
    ExternalCi,
    /// Uploaded by hand.
    ManualUpload,
}

/// How far the origin of an artifact is proven.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Uploaded by a person.
    Unverified,
    /// Uploaded with a deploy token.
    Token,
    /// Uploaded by a CI run that proved who it is.
    Oidc,
    /// Its build attestation was verified.
    Attested,
}

/// The states of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArtifactState {
    /// Waiting for its bytes.
    Pending,
    /// Its bytes are being checked.
    Verifying,
    /// Its bytes are what was declared.
    Verified,
    /// Its bytes are not what was declared; a new upload is needed.
    Rejected,
    /// Its bytes never came.
    Expired,
    /// Removed.
    Deleted,
}
