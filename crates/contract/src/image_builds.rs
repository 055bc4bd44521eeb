//! Builds of image versions from git repositories.

use crate::{
    ImageId, JobId, Page, Timestamp, VersionName,
    env::Env,
    page::*,
    text::{ContextPath, GitRef, GitUrl, ImageDigest},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Image builds";

    /// Build a new version of an image from a git repository.
    ///
    /// The service pushes the result to the image's registry and adds the version to the image. The
    /// call returns at once. At most three builds run at the same time, two of one tenant, including builds of
    /// deployments; others wait.
    "triggerDockerBuild": TriggerDockerBuild {
        image_id: ImageId,
        /// The name of the new version. It becomes the tag in the image's registry.
        version: VersionName,
        /// The repository to build, its Dockerfile, and build arguments.
        source: BuildSource,
    } -> BuildJob { who: SuperAdmin, effect: Change, errors: [Exists "the image has this version", Invalid "the version is no tag"] }

    /// Read a build and the end of its log.
    "getBuildJobStatus": GetBuildJobStatus { job_id: JobId } -> BuildJobStatus
    { who: SuperAdmin, effect: Read }

    /// Read the log of a build from its beginning, even while the build runs. The first 10,000
    /// lines are kept.
    "getBuildJobLogs": GetBuildJobLogs {
        job_id: JobId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> BuildJobLogs { who: SuperAdmin, effect: Read }

    /// List the builds of registered images.
    "listBuildJobs": ListBuildJobs {
        /// Return only builds of this image.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image_id: Option<ImageId>,
        /// Return only builds in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<BuildJobState>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<BuildJob> { who: SuperAdmin, effect: Read }

    /// Cancel a build before the push begins.
    "cancelDockerBuild": CancelDockerBuild { job_id: JobId } -> BuildJob
    { who: SuperAdmin, effect: Change, errors: [NotNow "it is being pushed, or has ended"] }
}

records! {
    /// A build of an image: of a new version from a repository, or of a version from a recipe, when an
    /// instance needs it.
    pub struct BuildJob {
        id: JobId,
        image_id: ImageId,
        /// The version of the image that is built.
        version: VersionName,
        /// Where the build stands. `succeeded`, `failed` and `cancelled` are final.
        state: BuildJobState,
        /// Progress, in percent.
        progress: u8,
        /// The digest in the registry. An image from a recipe has none.
        digest: Option<ImageDigest>,
        /// Why the build failed. Null unless it did.
        error: Option<String>,
        created_at: Timestamp,
        started_at: Option<Timestamp>,
        finished_at: Option<Timestamp>,
    }

    /// A build and the end of its log.
    pub struct BuildJobStatus {
        id: JobId,
        image_id: ImageId,
        /// The version of the image that is built.
        version: VersionName,
        /// Where the build stands. `succeeded`, `failed` and `cancelled` are final.
        state: BuildJobState,
        /// Progress, in percent.
        progress: u8,
        /// The digest in the registry. An image from a recipe has none.
        digest: Option<ImageDigest>,
        /// Why the build failed. Null unless it did.
        error: Option<String>,
        created_at: Timestamp,
        started_at: Option<Timestamp>,
        finished_at: Option<Timestamp>,
        /// The last 100 lines.
        log_tail: Vec<String>,
    }

    /// A part of a build's log.
    pub struct BuildJobLogs {
        lines: Vec<BuildJobLine>,
        /// The position after the last line. It stays the same until there are new lines.
        next_cursor: Option<Cursor>,
        /// Whether the log is complete.
        done: bool,
    }

    /// A line of a build's log.
    pub struct BuildJobLine {
        at: Timestamp,
        /// The line without its line break, at most 2,000 characters.
        text: String,
    }
}

impl BuildJobStatus {
    /// The status of a build whose log ends with these lines.
    pub fn of(job: BuildJob, log_tail: Vec<String>) -> BuildJobStatus {
        let BuildJob { id, image_id, version, state, progress, digest, error, .. } = job;
        let BuildJob { created_at, started_at, finished_at, .. } = job;
        BuildJobStatus {
            id,
            image_id,
            version,
            state,
            progress,
            digest,
            error,
            created_at,
            started_at,
            finished_at,
            log_tail,
        }
    }
}

/// What an image is built from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildSource {
    /// The repository to build.
    pub git: BuildRepository,
    /// The path of the Dockerfile. The default is `Dockerfile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dockerfile: Option<ContextPath>,
    /// Build arguments. Everybody with the image can read them, so they must not contain secrets.
    #[serde(default)]
    pub build_args: Env,
}

/// The git repository that is the context of a build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildRepository {
    /// The address of the repository.
    pub url: GitUrl,
    /// A branch, tag or commit. The default is the default branch.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub git_ref: Option<GitRef>,
    /// Another place for `dockerfile` of [`BuildSource`]. Stored builds of earlier versions have it;
    /// calls must not, and it is left out of the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub dockerfile: Option<ContextPath>,
}

/// Where a build of an image stands. `succeeded`, `failed` and `cancelled` are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BuildJobState {
    /// The build waits for other builds.
    Queued,
    /// The image is being built.
    Building,
    /// The image is being pushed to its registry.
    Pushing,
    /// The image has the new version. An image from a recipe is on the machine of the engine.
    Succeeded,
    /// The image could not be built or pushed.
    Failed,
    /// The build was cancelled.
    Cancelled,
}
