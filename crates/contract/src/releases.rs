//! Releases: artifacts that are published to a channel together.

use crate::{
    AppId, ArtifactId, BoundedSet, Channel, Notes, Page, Patch, PublicationId, ReleaseId, Sha256,
    Timestamp, UserId, VersionName, apps::Platform, artifacts::ArtifactKind, page::*,
    text::FileName,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Releases";

    /// Create a release from verified artifacts of an app.
    ///
    /// If the channel already has a release of this version, add artifacts of other platforms with
    /// `svc_updateRelease`.
    "svc_createRelease": CreateRelease {
        app_id: AppId,
        /// Verified artifacts of the app. Each must have the version of the release.
        artifact_ids: BoundedSet<ArtifactId, 1, 20>,
        /// Must equal the version of the artifacts, which is the default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<VersionName>,
        channel: Channel,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Notes>,
    } -> Release { who: Member of (app_id), effect: Change, scope: ReleaseCreate,
        errors: [Exists "this channel has a release of this version", NotNow "an artifact is not verified"] }

    /// Add artifacts to a release, or change its notes.
    ///
    /// Each new artifact must be for a platform that the release does not have yet. If the release
    /// is published, the artifact is published to the same targets, and the call waits for their
    /// answers. Artifacts that the release already has change nothing.
    "svc_updateRelease": UpdateRelease {
        release_id: ReleaseId,
        /// Verified artifacts of the app. Each must have the version of the release.
        #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
        add_artifact_ids: BoundedSet<ArtifactId, 0, 20>,
        /// Replaces the release notes; null clears them.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        notes: Patch<Notes>,
    } -> Release { who: Member of (release_id), effect: Change, scope: ReleaseCreate,
        errors: [Exists "it holds another artifact of this platform", NotNow "an artifact is not verified, or the release was superseded or rolled back"] }

    /// Delete a draft, or a release that every target refused. Its version and artifacts can be
    /// used again.
    "svc_deleteRelease": DeleteRelease { release_id: ReleaseId } -> DeletedRelease
    { who: Member of (release_id), effect: Change, errors: [NotNow "it is neither a draft nor failed"] }

    /// List the releases of an app.
    "svc_getReleases": GetReleases {
        app_id: AppId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<ReleaseState>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Release> { who: Member of (app_id), effect: Read, scope: ReleaseCreate }

    /// Read a release.
    "svc_getRelease": GetRelease { release_id: ReleaseId } -> Release
    { who: Member of (release_id), effect: Read, scope: ReleaseCreate }

    /// Publish a release and make it the current one of its channel.
    ///
    /// The previous current release is superseded. The call waits until every target has accepted
    /// or refused the release.
    "svc_publishRelease": PublishRelease {
        release_id: ReleaseId,
        targets: BoundedSet<Target, 1, 5>,
        /// Replaces the release notes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Notes>,
    } -> Release { who: Member of (release_id), effect: Change, scope: ReleasePublish or own ReleaseCreate,
        errors: [NotNow "its state does not allow it, or the target is not configured"] }

    /// Roll back the current release of a channel to an earlier release.
    ///
    /// The reply is the earlier release, which is current again.
    "svc_rollbackRelease": RollbackRelease {
        /// The current release.
        release_id: ReleaseId,
        /// The default is the release that was current before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_release_id: Option<ReleaseId>,
    } -> Release { who: Member of (release_id), effect: Change, scope: ReleasePublish,
        errors: [NotNow "it is not the current release, or there is none to go back to"] }

    /// Find the current release of a channel for a platform.
    "svc_getLatestRelease": GetLatestRelease {
        app_id: AppId,
        channel: Channel,
        platform: Platform,
        /// The version that the caller runs. The reply then says whether it is out of date.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        current_version: Option<VersionName>,
    } -> LatestRelease { who: Public of (app_id), effect: Read, errors: [NotFound "nothing is published"] }
}

records! {
    /// Artifacts that are published to a channel together.
    pub struct Release {
        id: ReleaseId,
        app_id: AppId,
        version: VersionName,
        channel: Channel,
        notes: Option<Notes>,
        artifact_ids: Vec<ArtifactId>,
        state: ReleaseState,
        publications: Vec<Publication>,
        /// The release that became current when this one was rolled back.
        rolled_back_to: Option<ReleaseId>,
        /// Null if the master key alone created the release.
        created_by: Option<UserId>,
        created_at: Timestamp,
        published_at: Option<Timestamp>,
    }

    /// The publication of one artifact to one target.
    pub struct Publication {
        id: PublicationId,
        release_id: ReleaseId,
        artifact_id: ArtifactId,
        target: Target,
        state: PublicationState,
        /// The target's id of the publication.
        remote_id: Option<String>,
        /// The URL for users of the target.
        url: Option<String>,
        error: Option<String>,
        /// The history of the publication, one sentence each.
        log: Vec<String>,
        updated_at: Timestamp,
    }

    /// The current release of a channel, for one platform.
    pub struct LatestRelease {
        release: PublicRelease,
        artifact: PublicArtifact,
        /// A signed URL of the artifact, valid for one hour.
        download_url: String,
        /// The URL of the install page. Null if the release was not published to `ota`.
        install_url: Option<String>,
        /// Whether `currentVersion` differs from the release's version. Null without
        /// `currentVersion`.
        update_available: Option<bool>,
    }

    /// The public fields of a release.
    pub struct PublicRelease {
        id: ReleaseId,
        app_id: AppId,
        version: VersionName,
        channel: Channel,
        notes: Option<Notes>,
        published_at: Option<Timestamp>,
    }

    /// The public fields of an artifact.
    pub struct PublicArtifact {
        id: ArtifactId,
        platform: Platform,
        kind: ArtifactKind,
        file_name: FileName,
        size: Option<u64>,
        sha256: Option<Sha256>,
        version: Option<VersionName>,
        build_number: Option<String>,
    }

    /// The deleted release.
    pub struct DeletedRelease { deleted: ReleaseId }
}

/// The targets of a publication.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The iOS app store.
    AppStore,
    /// The Android app store.
    GooglePlay,
    /// The iOS beta distribution service.
    Testflight,
    /// The mobile app distribution service.
    FirebaseAppDistribution,
    /// An install page of the service, with a QR code.
    Ota,
}

impl Target {
    /// All targets.
    pub const ALL: [Target; 5] = [
        Target::AppStore,
        Target::GooglePlay,
        Target::Testflight,
        Target::FirebaseAppDistribution,
        Target::Ota,
    ];

    /// The target's name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Target::AppStore => "app-store",
            Target::GooglePlay => "google-play",
            Target::Testflight => "testflight",
            Target::FirebaseAppDistribution => "firebase-app-distribution",
            Target::Ota => "ota",
        }
    }
}

/// The states of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ReleaseState {
    /// The release is not published yet.
    Draft,
    /// The release is being published to its targets.
    Publishing,
    /// Every target has accepted the release. It is the current one of its channel.
    Published,
    /// Some targets have accepted the release.
    PartiallyPublished,
    /// Every target has refused the release.
    Failed,
    /// A later release became current.
    Superseded,
    /// The release was rolled back.
    RolledBack,
}

/// The states of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PublicationState {
    /// The publication has not begun.
    Queued,
    /// The artifact is being uploaded to the target.
    Uploading,
    /// The target processes the artifact.
    Processing,
    /// The target reviews the artifact.
    InReview,
    /// Users can install the artifact.
    Live,
    /// The target refused the artifact.
    Failed,
    /// The publication was withdrawn.
    Halted,
}
