//! Releases: artifacts that go to a channel together.

use crate::{
    AppId, ArtifactId, Channel, Few, Notes, Page, PublicationId, ReleaseId, Timestamp, UserId,
    VersionName, apps::Platform, artifacts::Artifact, page::*,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Releases";

    /// Create a release from verified artifacts of an app.
    "svc_createRelease": CreateRelease {
        app_id: AppId,
        /// One or more verified artifacts of the app, each of the release's version.
        artifact_ids: Few<ArtifactId, 1, 20>,
        version: VersionName,
        channel: Channel,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Notes>,
    } -> Release { who: Member of (app_id), effect: Change, scope: ReleaseCreate, person: required,
        errors: [Exists "this channel has a release of this version", NotNow "an artifact is not verified"] }

    /// List the releases of an app.
    "svc_getReleases": GetReleases {
        app_id: AppId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
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
        targets: Few<Target, 1, 5>,
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
        created_by: UserId,
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
        release: Release,
        artifact: Artifact,
        /// Good for one hour.
        download_url: String,
        /// The install page.
        install_url: Option<String>,
        /// Whether `currentVersion` is another version; null where none was given.
        update_available: Option<bool>,
    }
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
