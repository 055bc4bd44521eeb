//! Builds of registered images, from a repository to a version that can be run.

use crate::{
    ImageId, JobId, Page, Timestamp, VersionName,
    deployments::GitSource,
    env::Env,
    page::*,
    text::{ContextPath, ImageDigest},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Image builds";

    /// Build a version of an image from a repository, push it to the image's registry, and add it
    /// to the image. Answers at once; at most two builds are under way at a time, the others wait.
    "triggerDockerBuild": TriggerDockerBuild {
        image_id: ImageId,
        version: VersionName,
        source: BuildSource,
    } -> BuildJob { who: SuperAdmin, effect: Change, errors: [Exists "the image has this version", Invalid "the version is no tag"] }

    /// Read a build, with the end of its log.
    "getBuildJobStatus": GetBuildJobStatus { job_id: JobId } -> BuildJobStatus
    { who: SuperAdmin, effect: Read }

    /// List builds.
    "listBuildJobs": ListBuildJobs {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image_id: Option<ImageId>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<BuildJob> { who: SuperAdmin, effect: Read }

    /// Cancel a build that is not being pushed yet.
    "cancelDockerBuild": CancelDockerBuild { job_id: JobId } -> BuildJob
    { who: SuperAdmin, effect: Change, errors: [NotNow "it is being pushed, or has ended"] }
}

records! {
    /// A build of an image.
    pub struct BuildJob {
        id: JobId,
        image_id: ImageId,
        version: VersionName,
        state: BuildJobState,
        /// How far it is, in percent.
        progress: u8,
        digest: Option<ImageDigest>,
        error: Option<String>,
        created_at: Timestamp,
        started_at: Option<Timestamp>,
        finished_at: Option<Timestamp>,
    }

    /// A build, and what it said last.
    pub struct BuildJobStatus {
        job: BuildJob,
        /// Its last 100 lines.
        log_tail: Vec<String>,
    }
}

/// What is built.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildSource {
    /// The repository.
    pub git: GitSource,
    /// The path of its Dockerfile; `Dockerfile` where nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dockerfile: Option<ContextPath>,
    /// Arguments of the build. They can be read in the image: no secrets.
    #[serde(default)]
    pub build_args: Env,
}

/// The states of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BuildJobState {
    /// Others are under way.
    Queued,
    /// Its image is being built.
    Building,
    /// The image goes to its registry.
    Pushing,
    /// The version is there.
    Succeeded,
    /// There is no such version.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}
