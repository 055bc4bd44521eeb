//! Deployments: how a new version of a service takes the place of the one that serves.

use crate::{
    AppId, DeploymentId, FieldProblem, ImageId, InstanceId, Page, Timestamp, UserId, VersionName,
    env::Env,
    page::*,
    templates::SemanticVersion,
    text::{ContextPath, GitRef, GitUrl},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Deployments";

    /// Deploy a new version of an app's service. Answers at once. One deployment of a service is
    /// under way at a time, the next ones wait; the old version serves until the new one is well,
    /// and goes on if it does not become well.
    "triggerDeployment": TriggerDeployment {
        app_id: AppId,
        /// The server of the app's only instance where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<DeploymentTarget>,
        source: DeploymentSource,
        /// Replaces what was set for the service; what was set stays where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        env: Option<Env>,
    } -> Deployment { who: Member of (app_id), effect: Change,
        errors: [NotFound "the app has no such service", NotNow "the image version is deprecated, or the instance is stopped"] }

    /// Read a deployment.
    "getDeployment": GetDeployment { deployment_id: DeploymentId } -> Deployment
    { who: Member of (deployment_id), effect: Read }

    /// List the deployments of an app.
    "listDeployments": ListDeployments {
        app_id: AppId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<DeploymentState>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Deployment> { who: Member of (app_id), effect: Read }

    /// Cancel a deployment that does not serve yet.
    "cancelDeployment": CancelDeployment { deployment_id: DeploymentId } -> Deployment
    { who: Member of (deployment_id), effect: Change, errors: [NotNow "it serves, or has ended"] }

    /// Go back to an earlier version, without building anything: a new deployment of what that one
    /// ran.
    "rollbackDeployment": RollbackDeployment {
        /// The app; not needed where a deployment is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app_id: Option<AppId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<DeploymentTarget>,
        /// The deployment to take back, which must be the one that serves; it is where nothing is
        /// given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deployment_id: Option<DeploymentId>,
        /// What to go back to; the one that served before where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to_deployment_id: Option<DeploymentId>,
    } -> Deployment { who: Member of (app_id, deployment_id), effect: Change, errors: [NotNow "there is nothing to go back to"] }

    /// Read what a deployment says, from the beginning, while it is being written too.
    "getDeploymentLogs": GetDeploymentLogs {
        deployment_id: DeploymentId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> DeploymentLogs { who: Member of (deployment_id), effect: Read }
}

records! {
    /// One attempt to have a new version serve.
    pub struct Deployment {
        id: DeploymentId,
        app_id: AppId,
        instance_id: InstanceId,
        target: DeploymentTarget,
        source: DeploymentSource,
        state: DeploymentState,
        /// What it runs, once that is settled.
        image_ref: Option<String>,
        /// The deployment that served before it.
        previous_deployment_id: Option<DeploymentId>,
        /// The deployment that it takes back.
        rollback_of: Option<DeploymentId>,
        started_by: Option<UserId>,
        steps: Vec<DeploymentStep>,
        error: Option<String>,
        created_at: Timestamp,
        finished_at: Option<Timestamp>,
    }

    /// One step of a deployment.
    pub struct DeploymentStep {
        name: StepName,
        state: StepState,
        started_at: Option<Timestamp>,
        finished_at: Option<Timestamp>,
    }

    /// What a deployment says.
    pub struct DeploymentLogs {
        lines: Vec<DeploymentLine>,
        /// Where to go on; the same cursor again while nothing new was written.
        next_cursor: Option<Cursor>,
        /// Nothing will be written any more.
        done: bool,
    }

    /// A line of it.
    pub struct DeploymentLine { at: Timestamp, step: StepName, text: String }
}

/// What is deployed: exactly one of an image version, a git repository and a template version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeploymentSource {
    /// A registered image, with `version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_id: Option<ImageId>,
    /// The image's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionName>,
    /// A repository with a Dockerfile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
    /// A version of the instance's template: its image, and all else that it says of the service.
    /// Databases stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_version: Option<SemanticVersion>,
}

impl DeploymentSource {
    /// What is wrong with it as a whole.
    pub fn problem(&self) -> Option<FieldProblem> {
        let image = self.image_id.is_some() && self.version.is_some();
        let half = self.image_id.is_some() != self.version.is_some();
        let given = [image, self.git.is_some(), self.template_version.is_some()];
        let one = given.iter().filter(|given| **given).count() == 1 && !half;
        (!one).then(|| FieldProblem {
            field: "source".into(),
            problem: "must be one of {imageId, version}, {git} and {templateVersion}".into(),
        })
    }
}

/// A git repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitSource {
    /// Where it is.
    pub url: GitUrl,
    /// A branch, tag or commit; its default branch where nothing is given.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<GitRef>,
    /// The path of its Dockerfile; `Dockerfile` where nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dockerfile: Option<ContextPath>,
}

/// Which service a deployment is for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum DeploymentTarget {
    /// The server of the backend instance.
    Backend,
    /// The server of the market server.
    MarketServer,
    /// The dashboard of the market server.
    MarketDashboard,
    /// The storefront of the market server.
    MarketStorefront,
}

/// The states of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeploymentState {
    /// Another one of its service is under way.
    Queued,
    /// Its image is being built or brought here.
    Building,
    /// Its container is being made.
    Deploying,
    /// Its container comes up beside the one that serves.
    Verifying,
    /// It serves.
    Live,
    /// A later one serves.
    Superseded,
    /// It does not serve, and the one before goes on.
    Failed,
    /// What was made is being removed.
    Cancelling,
    /// Somebody cancelled it.
    Cancelled,
    /// It served, and was taken back.
    RolledBack,
}

/// The steps of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StepName {
    /// It waits for its turn.
    Queue,
    /// The image is built, or brought here.
    Build,
    /// The container is made and started.
    Start,
    /// It becomes well.
    Health,
    /// Requests go to it from now on.
    Switch,
    /// The one before finishes what it has, and is removed.
    Drain,
}

/// Where a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StepState {
    /// Not begun.
    Pending,
    /// Under way.
    Running,
    /// Done.
    Succeeded,
    /// It went wrong.
    Failed,
    /// Not needed, or not reached any more.
    Skipped,
}
