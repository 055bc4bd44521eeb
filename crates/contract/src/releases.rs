//! Releases: artifacts that are published to a channel together.

use crate::{
    AppId, ArtifactId, BoundedSet, Channel, Notes, Page, Patch, PublicationId, ReleaseId, Sha256,
    Timestamp, UserId, VersionName,
    apps::Platform,
    artifacts::ArtifactKind,
    page::*,
    publishing::{Percent, RollbackAction, StoreOptions},
    text::FileName,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::targets::Target;

functions! {
    group "Releases";

    /// Create a release from verified artifacts of an app.
    ///
    /// If the channel already has a release of this version, add artifacts of other platforms with
    /// `svc_updateRelease`. An app has releases in at most 100 channels, and at most 100 drafts. At
    /// most 100 releases hold the same artifact.
    "svc_createRelease": CreateRelease {
        app_id: AppId,
        /// Verified artifacts of the app. Each must have the version of the release.
        artifact_ids: BoundedSet<ArtifactId, 1, 20>,
        /// Must equal the version of the artifacts, which is the default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<VersionName>,
        channel: Channel,
        /// What is new for users, in the default language of the app. At most 10,000 characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Notes>,
    } -> Release { who: Member of (app_id), effect: Change, scope: ReleaseCreate,
        errors: [Exists "this channel has a release of this version", NotNow "an artifact is not verified, or the app has releases in 100 channels or 100 drafts"] }

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
        /// Return only releases of this channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
        /// Return only releases in this state.
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

    /// Ask the stores now where the publications of a release stand.
    ///
    /// The service asks by itself too, the less often the longer nothing changes. The call waits for
    /// the answers, at most 10 seconds.
    "svc_checkRelease": CheckRelease { release_id: ReleaseId } -> Release
    { who: Member of (release_id), effect: Change, scope: ReleaseCreate }

    /// Publish a release.
    ///
    /// Each artifact goes to each target that takes it; a publication tells where it stands. The
    /// release becomes the current one of its channel when the first target gives it to users, and
    /// the previous one is superseded. The call waits for `ota`; stores take minutes to days.
    ///
    /// A publication that failed is tried again, and goes on where it stopped.
    "svc_publishRelease": PublishRelease {
        release_id: ReleaseId,
        /// Where the release goes. A target that has the release already stays as it is.
        targets: BoundedSet<Target, 1, 5>,
        /// The share of the users that get the release first, in percent, for `google-play`. For
        /// `app-store` any share below 100 asks for a release in phases. The default is everybody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rollout: Option<Percent>,
        /// Replaces the release notes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notes: Option<Notes>,
        /// The choices for the stores.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        options: Option<StoreOptions>,
    } -> Release { who: Member of (release_id), effect: Change, scope: ReleasePublish or own ReleaseCreate,
        errors: [NotNow "its state does not allow it, or no artifact is for a target"] }

    /// Change the share of the users that get a release from a store.
    ///
    /// A share can only grow. 100 ends the staged rollout; for `app-store`, it also releases a
    /// version that waits after its approval. The call waits for the stores, at most 25 seconds.
    "svc_setRollout": SetRollout {
        release_id: ReleaseId,
        /// The default is every target with a staged rollout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        targets: Option<BoundedSet<Target, 1, 5>>,
        /// The new share of the users, in percent. It must not be less than the present one.
        rollout: Percent,
    } -> Release { who: Member of (release_id), effect: Change, scope: ReleasePublish,
        errors: [NotNow "no such publication has a staged rollout now"] }

    /// Halt the rollout of a release: no more users get it.
    ///
    /// Devices that have the version keep it. The call waits for the stores, at most 25 seconds.
    "svc_haltRollout": HaltRollout {
        release_id: ReleaseId,
        /// The default is every target with a staged rollout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        targets: Option<BoundedSet<Target, 1, 5>>,
    } -> Release { who: Member of (release_id), effect: Change, scope: ReleasePublish,
        errors: [NotNow "no such publication has a staged rollout now"] }

    /// Resume a halted rollout with the share that it had.
    ///
    /// The call waits for the stores, at most 25 seconds.
    "svc_resumeRollout": ResumeRollout {
        release_id: ReleaseId,
        /// The default is every target whose rollout is halted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        targets: Option<BoundedSet<Target, 1, 5>>,
    } -> Release { who: Member of (release_id), effect: Change, scope: ReleasePublish,
        errors: [NotNow "no such publication is halted"] }

    /// Roll back the current release of a channel to an earlier release.
    ///
    /// No store takes a version back from the devices that have it. `plan` says what each target
    /// really does, by the present state of the stores; with `dryRun`, nothing is done. Otherwise
    /// the reply is the earlier release, which is current again, and the call waits for the stores,
    /// at most 25 seconds.
    ///
    /// A release that no user has got yet is withdrawn from its stores, and replies itself. So is the
    /// current one, if `withdraw` says so.
    "svc_rollbackRelease": RollbackRelease {
        /// The current release, or one that is being published.
        release_id: ReleaseId,
        /// The default is the release that was current before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_release_id: Option<ReleaseId>,
        /// Leave the channel without a release, in place of going back to an earlier one.
        #[serde(default)]
        withdraw: bool,
        /// Only show the plan.
        #[serde(default)]
        dry_run: bool,
    } -> Rollback { who: Member of (release_id), effect: Change, scope: ReleasePublish,
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
        /// The version of the artifacts. A channel has one release of each version.
        version: VersionName,
        channel: Channel,
        /// What is new for users. Null if nobody wrote it.
        notes: Option<Notes>,
        artifact_ids: Vec<ArtifactId>,
        /// Where the release stands. It follows from its publications.
        state: ReleaseState,
        /// One publication for each artifact and target. Empty for a draft.
        publications: Vec<Publication>,
        /// The release that became current when this one was rolled back.
        rolled_back_to: Option<ReleaseId>,
        /// Null if the master key alone created the release.
        created_by: Option<UserId>,
        created_at: Timestamp,
        published_at: Option<Timestamp>,
        /// The choices for the stores.
        #[serde(default)]
        options: StoreOptions,
    }

    /// The publication of one artifact to one target.
    pub struct Publication {
        id: PublicationId,
        release_id: ReleaseId,
        artifact_id: ArtifactId,
        /// Where the artifact is published.
        target: Target,
        /// Where the artifact stands in the target.
        state: PublicationState,
        /// The share of the users that get the release, in percent. Null without a staged rollout.
        #[serde(default)]
        rollout: Option<Percent>,
        /// Where the publication stands in the target's own words, such as `WAITING_FOR_REVIEW`.
        #[serde(default)]
        store_state: Option<String>,
        /// The target's id of the publication.
        remote_id: Option<String>,
        /// The URL for users of the target.
        url: Option<String>,
        /// Why the target refused what was last asked of it. Null if it did not.
        error: Option<String>,
        /// The history of the publication, one sentence each.
        log: Vec<String>,
        updated_at: Timestamp,
    }

    /// A rollback, or the plan of one.
    pub struct Rollback {
        /// The release that is current now. With `dryRun` or after a withdrawal, the one to roll back.
        #[serde(flatten)]
        release: Release,
        /// Whether only the plan was asked for.
        dry_run: bool,
        /// What each target does.
        plan: Vec<RollbackStep>,
    }

    /// What a rollback does to one publication.
    pub struct RollbackStep {
        /// The id of the publication, as in `publications` of its release.
        publication_id: PublicationId,
        /// The release of the publication.
        release_id: ReleaseId,
        /// The target of the publication.
        target: Target,
        /// What the target does.
        action: RollbackAction,
        /// What it means for users, and what it cannot do.
        text: String,
    }

    /// The current release of a channel, for one platform.
    pub struct LatestRelease {
        /// The current release of the channel.
        release: PublicRelease,
        /// Its artifact for the platform. An `.aab` only if there is no other, as no device
        /// installs one.
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
        /// The version of the release, such as `1.4.2`.
        version: VersionName,
        channel: Channel,
        /// What is new for users. Null if nobody wrote it.
        notes: Option<Notes>,
        published_at: Option<Timestamp>,
    }

    /// The public fields of an artifact.
    pub struct PublicArtifact {
        id: ArtifactId,
        platform: Platform,
        /// The file format, by the extension of the file name.
        kind: ArtifactKind,
        /// The name of the file as its uploader gave it, without a folder.
        file_name: FileName,
        /// The size of the file, in bytes.
        size: Option<u64>,
        sha256: Option<Sha256>,
        /// The version in the file, or the declared one if the file has none.
        version: Option<VersionName>,
        /// `CFBundleVersion` or `versionCode` in the file. Null if it has none.
        build_number: Option<String>,
    }

    /// The release that the call deleted.
    pub struct DeletedRelease { deleted: ReleaseId }
}

/// Where a release stands. It follows from its publications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ReleaseState {
    /// The release is not published yet.
    Draft,
    /// The release is being published to its targets.
    Publishing,
    /// Every target gives the release to users. It is the current one of its channel.
    Published,
    /// Some targets give the release to users; others failed or are not that far.
    PartiallyPublished,
    /// Every target has refused the release.
    Failed,
    /// A later release became current.
    Superseded,
    /// The release was rolled back.
    RolledBack,
}

/// Where a release stands in one target.
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
