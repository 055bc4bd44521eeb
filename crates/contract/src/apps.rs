//! Apps, which own artifacts, releases and instances.

use crate::{
    AppId, BoundedSet, Channel, InstanceId, Name, NewName, Page, ProjectId, Sha256, Timestamp,
    artifacts::Trust,
    page::*,
    patch::Patch,
    repositories::Repository,
    text::{Query, StoreIdentifier, WorkflowPath},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Apps";

    /// Create an app in a project.
    "createApp": CreateApp {
        project_id: ProjectId,
        /// What people call the app. It need not be unique.
        name: NewName,
        /// The default is both platforms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        platforms: Option<BoundedSet<Platform, 1, 2>>,
        /// The iOS bundle identifier. Without one, the first verified iOS upload sets it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bundle_id: Option<StoreIdentifier>,
        /// The Android package name. Without one, the first verified Android upload sets it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        package_name: Option<StoreIdentifier>,
    } -> App { who: Member of (project_id), effect: Change }

    /// Read an app.
    "getApp": GetApp { app_id: AppId } -> App { who: Member of (app_id), effect: Read }

    /// Change an app.
    ///
    /// Clearing an identifier also clears the signing certificate that uploads must match.
    "updateApp": UpdateApp {
        app_id: AppId,
        /// The new name. Without it, the name stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<NewName>,
        /// Replaces the platforms for which builds and uploads are accepted. Without it, they stay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        platforms: Option<BoundedSet<Platform, 1, 2>>,
        /// The iOS bundle identifier. Null clears it; the next verified iOS upload then sets it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        bundle_id: Patch<StoreIdentifier>,
        /// The Android package name. Null clears it; the next verified Android upload then sets it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        package_name: Patch<StoreIdentifier>,
    } -> App { who: Member of (app_id), effect: Change }

    /// Say which artifacts the releases of a channel may have.
    ///
    /// The whole policy of the channel is replaced; without a condition, it ends. It holds for
    /// artifacts that join a release of the channel, and for releases that are published there. A
    /// rollback to an earlier release is always possible.
    "svc_setChannelPolicy": SetChannelPolicy {
        app_id: AppId,
        channel: Channel,
        /// The least trust.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        minimum_trust: Option<Trust>,
        /// The hash of the certificate with which the file must be signed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signer: Option<Sha256>,
        /// The workflow whose job must have built and attested the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attested_by: Option<WorkflowPath>,
    } -> App { who: OwnerOrAdmin of (app_id), effect: Change,
        errors: [NotNow "the app has 50 channel policies"] }

    /// Delete an app and everything in it.
    ///
    /// The app disappears at once. Its repository, builds, artifacts, releases, publications,
    /// deployments, backups, schedules, credentials, deploy tokens, trusted publishers, checkouts,
    /// subscriptions and commerce channels are deleted afterwards; a restart of the service does not
    /// stop this. Its instances are deleted as `svc_deleteBackendInstance` does it: their volumes are
    /// kept for seven days, in which `svc_undeleteBackendInstance` brings them back into another app.
    "deleteApp": DeleteApp { app_id: AppId } -> DeletedApp { who: OwnerOrAdmin of (app_id), effect: Change,
        errors: [NotNow "a payment is not settled"] }

    /// List the apps of a project.
    "listApps": ListApps {
        project_id: ProjectId,
        /// Return only apps that have this in their name, bundle identifier or package name, in any
        /// case, or the app with this id. A page may then have few or no apps and still a
        /// `nextCursor`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<App> { who: Member of (project_id), effect: Read }
}

records! {
    /// An app of a project: one product, on one platform or on both.
    pub struct App {
        id: AppId,
        project_id: ProjectId,
        /// What people call the app. It need not be unique.
        name: Name,
        /// The platforms for which builds and uploads are accepted.
        platforms: Vec<Platform>,
        /// The bundle id on iOS, such as `com.example.shop`. Null until it is known.
        bundle_id: Option<StoreIdentifier>,
        /// The package name on Android, such as `com.example.shop`. Null until it is known.
        package_name: Option<StoreIdentifier>,
        /// The app's repository, if one is connected.
        repository: Option<Repository>,
        /// Which artifacts the releases of a channel may have.
        #[serde(default)]
        channel_policies: Vec<ChannelPolicy>,
        /// The app's backend instance, if it has one.
        backend_instance_id: Option<InstanceId>,
        /// The app's market server, if it has one.
        market_instance_id: Option<InstanceId>,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// Which artifacts the releases of a channel may have.
    pub struct ChannelPolicy {
        channel: Channel,
        /// The least trust that an artifact must have. Null: there is no such condition.
        minimum_trust: Option<Trust>,
        /// The hash of the certificate with which the file must be signed. Null: there is no such
        /// condition.
        signer: Option<Sha256>,
        /// The workflow whose job must have built and attested the file. Null: there is no such
        /// condition.
        attested_by: Option<WorkflowPath>,
    }

    /// What was deleted with an app.
    pub struct DeletedApp {
        /// How many objects of each kind are deleted.
        deleted: Contents,
        /// The instances whose volumes are kept for seven days.
        kept_instances: Vec<InstanceId>,
    }

    /// The numbers of objects that were deleted.
    #[derive(Default)]
    pub struct Contents {
        /// The number of apps: one, or those of the project.
        apps: u64,
        /// The number of backends and market servers that were not deleted before.
        instances: u64,
        /// The number of backups, also those of instances that were deleted before.
        backups: u64,
        /// The number of deployments in any state.
        deployments: u64,
        /// The number of builds in any state.
        builds: u64,
        /// The number of artifacts in any state.
        artifacts: u64,
        /// The number of releases, also drafts.
        releases: u64,
        /// The number of stored credentials.
        credentials: u64,
        /// The number of deploy tokens that are bound to an app.
        deploy_tokens: u64,
        /// The number of checkouts in any state.
        checkouts: u64,
        /// The number of subscriptions of buyers. They go on at the payment provider.
        subscriptions: u64,
    }
}

/// A mobile platform.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// iPhone and iPad.
    Ios,
    /// Phones and tablets with Android.
    Android,
}

impl Platform {
    /// Every platform once.
    pub const ALL: [Platform; 2] = [Platform::Ios, Platform::Android];

    /// The platform's name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Platform::Ios => "ios",
            Platform::Android => "android",
        }
    }
}
