//! Releases: artifacts that go to a channel together.

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
    /// Where the channel has a release of this version, artifacts of another platform join it with
    /// `svc_updateRelease`.
    "svc_createRelease": CreateRelease {
        app_id: AppId,
        /// One or more verified artifacts of the app, each of the release's version.
        artifact_ids: BoundedSet<ArtifactId, 1, 20>,
        /// The artifacts' version, which it is where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<VersionName>,
        channel: Channel,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Notes>,
    } -> Release { who: Member of (app_id), effect: Change, scope: ReleaseCreate,
        errors: [Exists "this channel has a release of this version", NotNow "an artifact is not verified"] }

    /// Add artifacts to a release, or change its notes.
    ///
    /// Added are artifacts of a platform that the release does not hold yet. Where it is published,
    /// they are published to the same targets, and the reply comes when those have answered. An
    /// artifact that it holds already changes nothing.
    "svc_updateRelease": UpdateRelease {
        release_id: ReleaseId,
        /// Verified artifacts of the app, each of the release's version.
        #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
        add_artifact_ids: BoundedSet<ArtifactId, 0, 20>,
        /// Replaces the release notes; null clears them.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        notes: Patch<Notes>,
    } -> Release { who: Member of (release_id), effect: Change, scope: ReleaseCreate,
        errors: [Exists "it holds another artifact of this platform", NotNow "an artifact is not verified, or the release was superseded or rolled back"] }

    /// Delete a draft, or a release that no target took. Its version and its artifacts are free again.
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

    /// Publish a release. It becomes the current one of its channel; the one before is superseded.
    ///
    /// Answers when every target has taken it or refused it.
    "svc_publishRelease": PublishRelease {
        release_id: ReleaseId,
        targets: BoundedSet<Target, 1, 5>,
        /// Replaces the release notes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Notes>,
    } -> Release { who: Member of (release_id), effect: Change, scope: ReleasePublish or own ReleaseCreate,
        errors: [NotNow "its state does not allow it, or the target is not configured"] }

    /// Take the current release of a channel back, and make an earlier one current again.
    ///
    /// Answers the release that is current now.
    "svc_rollbackRelease": RollbackRelease {
        /// The current release.
        release_id: ReleaseId,
        /// The one that was current before where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_release_id: Option<ReleaseId>,
    } -> Release { who: Member of (release_id), effect: Change, scope: ReleasePublish,
        errors: [NotNow "it is not the current release, or there is none to go back to"] }

    /// Find the current release of a channel.
    "svc_getLatestRelease": GetLatestRelease {
        app_id: AppId,
        channel: Channel,
        platform: Platform,
        /// What the caller runs; the reply then says whether that is out of date.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        current_version: Option<VersionName>,
    } -> LatestRelease { who: Public of (app_id), effect: Read, errors: [NotFound "nothing is published"] }
}

records! {
    /// A bundle of artifacts in a channel.
    pub struct Release {
        id: ReleaseId,
        app_id: AppId,
        version: VersionName,
        channel: Channel,
        notes: Option<Notes>,
        artifact_ids: Vec<ArtifactId>,
        state: ReleaseState,
        publications: Vec<Publication>,
        /// The release that became current when this one was taken back.
        rolled_back_to: Option<ReleaseId>,
        /// Null where the master key alone stands behind it.
        created_by: Option<UserId>,
        created_at: Timestamp,
        published_at: Option<Timestamp>,
    }

    /// One artifact on its way to one target.
    pub struct Publication {
        id: PublicationId,
        release_id: ReleaseId,
        artifact_id: ArtifactId,
        target: Target,
        state: PublicationState,
        /// What the target calls it.
        remote_id: Option<String>,
        /// Where people find it.
        url: Option<String>,
        error: Option<String>,
        /// What happened, a sentence each.
        log: Vec<String>,
        updated_at: Timestamp,
    }

    /// The current release of a channel, for one platform.
    pub struct LatestRelease {
        release: PublicRelease,
        artifact: PublicArtifact,
        /// Good for one hour.
        download_url: String,
        /// The install page.
        install_url: Option<String>,
        /// Whether `currentVersion` is another version; null where none was given.
        update_available: Option<bool>,
    }

    /// What anyone may know of a release.
    pub struct PublicRelease {
        id: ReleaseId,
        app_id: AppId,
        version: VersionName,
        channel: Channel,
        notes: Option<Notes>,
        published_at: Option<Timestamp>,
    }

    /// What anyone may know of an artifact.
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

    /// The release that was deleted.
    pub struct DeletedRelease { deleted: ReleaseId }
}

/// Where a release can be published.
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
    /// An install page with a QR code on the service itself.
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

    /// Its name on the wire.
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
    /// Not published yet.
    Draft,
    /// On its way to its targets.
    Publishing,
    /// Every target has it; it is the current one of its channel.
    Published,
    /// Some targets have it.
    PartiallyPublished,
    /// No target took it.
    Failed,
    /// A later release became current.
    Superseded,
    /// Taken back.
    RolledBack,
}

/// The states of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PublicationState {
    /// Waiting.
    Queued,
    /// Bytes are on their way.
    Uploading,
    /// The target works on it.
    Processing,
    /// People at the target look at it.
    InReview,
    /// Users can get it.
    Live,
    /// The target refused it.
    Failed,
    /// Taken back.
    Halted,
}
