//! Deployments: each replaces a service of an instance with a new version.

use crate::{
    AppId, BoundedSet, DeploymentId, FieldProblem, ImageId, InstanceId, Page, Sha256, Timestamp,
    UserId, VersionName,
    env::Env,
    page::*,
    templates::SemanticVersion,
    text::{ContextPath, EnvName, GitRef, GitUrl},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Deployments";

    /// Deploy a new version of a service of an app.
    ///
    /// The call returns at once. A service has one running deployment at a time; others wait. The
    /// old version serves until the new one is healthy. If the new version does not become healthy,
    /// the old one continues to serve.
    "triggerDeployment": TriggerDeployment {
        app_id: AppId,
        /// The default is the server of the app's only instance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<DeploymentTarget>,
        /// What is deployed: exactly one of an image version, a repository, a folder and a template
        /// version.
        source: DeploymentSource,
        /// Replaces the environment of the service, at most 128 KiB of names and values. By default, the
        /// environment stays as it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        env: Option<Env>,
    } -> Deployment { who: Member of (app_id), effect: Change, scope: Deploy,
        errors: [NotFound "the app has no such service", NotNow "the image version is deprecated, the instance is stopped, the folder was not sent, or such sources are not built here"] }

    /// Read a deployment.
    "getDeployment": GetDeployment { deployment_id: DeploymentId } -> Deployment
    { who: Member of (deployment_id), effect: Read, scope: Deploy }

    /// List the deployments of an app.
    "listDeployments": ListDeployments {
        app_id: AppId,
        /// Return only deployments of this service.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<DeploymentTarget>,
        /// Return only deployments in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<DeploymentState>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Deployment> { who: Member of (app_id), effect: Read, scope: Deploy }

    /// Cancel a deployment that does not serve yet.
    "cancelDeployment": CancelDeployment { deployment_id: DeploymentId } -> Deployment
    { who: Member of (deployment_id), effect: Change, scope: Deploy, errors: [NotNow "it serves, or has ended"] }

    /// Roll back to an earlier version without a build.
    ///
    /// This creates a new deployment of what the earlier deployment ran. The version that the
    /// instance was created with counts as the first deployment.
    "rollbackDeployment": RollbackDeployment {
        app_id: AppId,
        /// The default is the target of `toDeploymentId`, or the server of the app's only instance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<DeploymentTarget>,
        /// One of the last 50 deployments that served. The default is the last one that was not
        /// rolled back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_deployment_id: Option<DeploymentId>,
    } -> Deployment { who: Member of (app_id), effect: Change, scope: Deploy, errors: [NotNow "there is nothing to go back to, or its image was removed"] }

    /// Read the log of a deployment from its beginning, even while the deployment runs.
    "getDeploymentLogs": GetDeploymentLogs {
        deployment_id: DeploymentId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> DeploymentLogs { who: Member of (deployment_id), effect: Read, scope: Deploy }
}

records! {
    /// An attempt to replace the running version of a service.
    pub struct Deployment {
        id: DeploymentId,
        app_id: AppId,
        instance_id: InstanceId,
        /// The service that the deployment replaces.
        target: DeploymentTarget,
        /// What is deployed. A rollback has the source of what it restores.
        source: DeploymentSource,
        /// Where the deployment stands. At most one of a service is `live`.
        state: DeploymentState,
        /// The image that the deployment runs, once known.
        image_ref: Option<String>,
        /// The deployment that served before this one.
        previous_deployment_id: Option<DeploymentId>,
        /// The deployment that this one rolls back.
        rollback_of: Option<DeploymentId>,
        /// The id of the user who started it, in person or with a deploy token. Null for the master
        /// key.
        started_by: Option<UserId>,
        /// All six steps in their order, also those that have not begun.
        steps: Vec<DeploymentStep>,
        /// Why the deployment failed. It is there before the state is `failed`, while the failure
        /// is undone.
        error: Option<String>,
        created_at: Timestamp,
        /// When it began to serve, failed or was cancelled. Null before that.
        finished_at: Option<Timestamp>,
    }

    /// One step of a deployment. Its times are null until it begins and ends.
    pub struct DeploymentStep {
        /// Which of the six steps it is.
        name: StepName,
        /// How far the step is.
        state: StepState,
        started_at: Option<Timestamp>,
        finished_at: Option<Timestamp>,
    }

    /// A part of a deployment's log.
    pub struct DeploymentLogs {
        lines: Vec<DeploymentLine>,
        /// The position after the last line. It stays the same until there are new lines.
        next_cursor: Option<Cursor>,
        /// Whether the log is complete.
        done: bool,
    }

    /// A line of a deployment's log.
    pub struct DeploymentLine {
        at: Timestamp,
        /// The step during which the line was written.
        step: StepName,
        /// The line without its line break, at most 2,000 characters.
        text: String,
    }
}

/// The source of a deployment: an image version, a git repository, a folder or a template version.
/// Give exactly one of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeploymentSource {
    /// A registered image. It needs `version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_id: Option<ImageId>,
    /// The version of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionName>,
    /// A repository with a Dockerfile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<AppSource>,
    /// A folder of the caller, which was sent before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<FolderSource>,
    /// A version of the instance's template: its image, and its other settings for the service.
    /// Databases stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_version: Option<SemanticVersion>,
    /// Arguments of the Dockerfile of a repository or a folder. Everybody with the image can read them, so they
    /// must not contain secrets. They have at most 128 KiB of names and values together.
    #[serde(default, skip_serializing_if = "Env::is_none")]
    pub build_args: Env,
    /// Variables of the service, which such a Dockerfile reads as secrets: `RUN --mount=type=secret,id=NAME` puts
    /// the value of `NAME` into `/run/secrets/NAME` for that step. The image does not contain it, and the log of
    /// the build shows it masked. Nothing of the template counts.
    #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
    pub build_secrets: BoundedSet<EnvName, 0, 20>,
}

impl DeploymentSource {
    /// A field that is given and that only a Dockerfile reads.
    pub fn of_a_dockerfile(&self) -> Option<&'static str> {
        if !self.build_args.is_none() {
            Some("source.buildArgs")
        } else if !self.build_secrets.is_none() {
            Some("source.buildSecrets")
        } else {
            None
        }
    }

    /// What is wrong with the fields together.
    pub fn problem(&self) -> Option<FieldProblem> {
        if let Some(field) = self.of_a_dockerfile()
            && self.git.is_none()
            && self.folder.is_none()
        {
            let problem = "needs git or folder, where a Dockerfile reads it".into();
            return Some(FieldProblem { field: field.into(), problem });
        }
        let image = self.image_id.is_some() && self.version.is_some();
        let half = self.image_id.is_some() != self.version.is_some();
        let given =
            [image, self.git.is_some(), self.folder.is_some(), self.template_version.is_some()];
        let one = given.iter().filter(|given| **given).count() == 1 && !half;
        (!one).then(|| FieldProblem {
            field: "source".into(),
            problem: "must be one of {imageId, version}, {git}, {folder} and {templateVersion}"
                .into(),
        })
    }
}

/// A folder with a Dockerfile, or with the cloud code of a Parse Server in `cloud/main.js`. Cloud
/// code is put onto the image that the service runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FolderSource {
    /// The hash of the archive that was sent to the URL of `POST /api/v1/apps/{appId}/sources`.
    pub sha256: Sha256,
}

/// A git repository of an app. Its token is used if this is the app's connected repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppSource {
    /// The address of the repository. The default is the app's connected repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<GitUrl>,
    /// A branch, tag or commit. The default is the connected branch, or else the default branch.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<GitRef>,
    /// The path of the Dockerfile. The default is `Dockerfile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dockerfile: Option<ContextPath>,
}

/// A git repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitSource {
    /// The address of the repository.
    pub url: GitUrl,
    /// A branch, tag or commit. The default is the default branch.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<GitRef>,
    /// The path of the Dockerfile. The default is `Dockerfile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dockerfile: Option<ContextPath>,
}

/// The service that a deployment replaces.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum DeploymentTarget {
    /// The server of the backend instance.
    Backend,
    /// The server of the market instance.
    MarketServer,
    /// The dashboard of the market instance.
    MarketDashboard,
    /// The storefront of the market instance.
    MarketStorefront,
}

/// Where a deployment stands. At most one of a service is `live`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeploymentState {
    /// Another deployment of the service is running.
    Queued,
    /// The image is being built or pulled.
    Building,
    /// The container is being created.
    Deploying,
    /// The new container starts beside the one that serves.
    Verifying,
    /// The deployment serves.
    Live,
    /// A later deployment serves.
    Superseded,
    /// The deployment failed. The previous version serves.
    Failed,
    /// The service removes what the deployment created.
    Cancelling,
    /// The deployment was cancelled.
    Cancelled,
    /// The deployment served and was rolled back.
    RolledBack,
}

/// The steps of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StepName {
    /// Wait for other deployments of the service.
    Queue,
    /// Build or pull the image.
    Build,
    /// Create and start the container.
    Start,
    /// Wait until the container is healthy.
    Health,
    /// Send new requests to the new container.
    Switch,
    /// Let the old container finish its requests, then remove it.
    Drain,
}

/// How far a step is. All but `pending` and `running` are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StepState {
    /// The step has not begun.
    Pending,
    /// The step began, and has not ended.
    Running,
    /// The step is done.
    Succeeded,
    /// The step ended with an error, and the deployment with it.
    Failed,
    /// The step was not needed or was not reached.
    Skipped,
}
