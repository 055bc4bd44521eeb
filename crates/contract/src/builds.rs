//! Builds: each makes an artifact of an app from its repository.

use crate::{
    AppId, ArtifactId, BoundedSet, BuildId, Name, Page, Timestamp, UserId, WebUrl,
    apps::Platform,
    artifacts::ProvenancePath,
    page::*,
    repositories::RepositoryMode,
    text::{GitRef, Slug},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The labels of a runner.
pub type Labels = BoundedSet<Slug, 0, 20>;

/// Declares the group with the functions that begin a build, whose parameters are the same.
macro_rules! builds {
    (
        begun by {$(
            $(#[doc = $doc:literal])+
            $name:literal : $params:ident { $($more:tt)* } errors: [$($error:tt)*]
        )+}
        $($rest:tt)+
    ) => {
        functions! {
            group "Builds";
            $(
                $(#[doc = $doc])+
                $name : $params {
                    app_id: AppId,
                    platform: Platform,
                    /// The build profile of `.svc/config.json`. The default is `production`.
                    #[serde(default, skip_serializing_if = "Option::is_none")]
                    profile: Option<Name>,
                    /// A branch, tag or commit. The default is the connected branch. A CI takes no
                    /// commit.
                    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
                    git_ref: Option<GitRef>,
                    /// Who triggers the build, which `executionPath` then shows. The default is
                    /// `dashboard`.
                    #[serde(default)]
                    trigger: BuildTrigger,
                    $($more)*
                } -> Build {
                    who: Member of (app_id), effect: Change, scope: BuildTrigger,
                    errors: [
                        NotFound "the app has no repository",
                        NotNow "100 builds of the app, or 1,000 of the organization, are under way, or the build would fail, as the last check of the repository knows",
                        $($error)*
                    ]
                }
            )+
            $($rest)+
        }
    };
}

builds! {
    begun by {
        /// Build an app from its repository: in the CI of a managed repository on GitHub that lets
        /// the service do so (`svc_build_dispatch`), else as `svc_triggerMobileWorkflow` does.
        ///
        /// The call returns at once. The service reads the repository again before the build.
        "svc_triggerBuild": TriggerBuild {
            /// The labels that a runner needs in addition to the name of the platform. With labels,
            /// the build is one for a runner.
            #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
            labels: Labels,
        } errors: []

        /// Build an app in the CI of its managed repository.
        ///
        /// The service triggers the workflow `svc-build.yml` through its GitHub App, follows the run,
        /// and ties the artifact of the run to the build.
        "svc_build_dispatch": DispatchBuild {} errors: [
            NotNow "the repository is not managed, or its CI cannot be reached"
        ]

        /// Build an app in the CI of the operator's repository if there is one, else on a runner.
        ///
        /// It is meant for artifact-only repositories, and takes every mode: a managed repository is
        /// built outside its own CI.
        "svc_triggerMobileWorkflow": TriggerMobileWorkflow {
            /// The labels that a runner needs in addition to the name of the platform. With labels,
            /// the build is one for a runner.
            #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
            labels: Labels,
        } errors: []
    }

    /// List the builds of an app.
    "svc_getBuilds": GetBuilds {
        app_id: AppId,
        /// Return only builds for this platform.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        platform: Option<Platform>,
        /// Return only builds in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<BuildState>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Build> { who: Member of (app_id), effect: Read, scope: BuildTrigger }

    /// Read a build.
    "svc_getBuild": GetBuild { build_id: BuildId } -> Build
    { who: Member of (build_id), effect: Read, scope: BuildTrigger }

    /// Cancel a build, and its run in a CI. A runner that works on it stops within 15 seconds, or
    /// after its upload.
    "svc_cancelBuild": CancelBuild { build_id: BuildId } -> Build
    { who: Member of (build_id), effect: Change, scope: BuildTrigger, errors: [NotNow "the build has ended"] }

    /// Read the log of a build from its beginning, even while the build runs.
    ///
    /// The log is removed 30 days after the end of the build, or when the retention of the server says.
    "svc_getBuildLogs": GetBuildLogs {
        build_id: BuildId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> BuildLogs { who: Member of (build_id), effect: Read, scope: BuildTrigger }
}

records! {
    /// A build of an app.
    pub struct Build {
        id: BuildId,
        app_id: AppId,
        platform: Platform,
        /// The build profile of `.svc/config.json` that is built.
        profile: Name,
        /// The trigger of the build. Its artifact shows the same path.
        execution_path: ProvenancePath,
        /// The mode of the repository, as it was last read.
        mode: RepositoryMode,
        /// Where the build stands. A build that a runner lost is `queued` again, once.
        state: BuildState,
        /// The branch, tag or commit that is built. By default, the branch that the repository had
        /// when it was read.
        #[serde(rename = "ref")]
        git_ref: Option<String>,
        /// The commit that is built, as its full hash. Null until the service has read the
        /// repository.
        commit: Option<String>,
        /// The labels that a runner needs in addition to the name of the platform. Empty if none
        /// were asked for.
        labels: Vec<Slug>,
        /// The name of the runner that has the build.
        runner: Option<Name>,
        /// How often the build was given to a runner: 2 if it was lost once.
        attempts: u32,
        /// The page of the run, if the build is one for a CI.
        run_url: Option<WebUrl>,
        /// The id of the artifact that the build made. Null until it has succeeded.
        artifact_id: Option<ArtifactId>,
        /// What was doubtful when the build was triggered, such as that no runner has its labels.
        #[serde(default)]
        warnings: Vec<String>,
        /// Why the build did not succeed.
        error: Option<String>,
        /// The id of the user who triggered the build, in person or with a deploy token. Null for
        /// the master key.
        triggered_by: Option<UserId>,
        created_at: Timestamp,
        started_at: Option<Timestamp>,
        finished_at: Option<Timestamp>,
    }

    /// A part of a build's log.
    pub struct BuildLogs {
        lines: Vec<BuildLine>,
        /// The position after the last line. It stays the same until there are new lines.
        next_cursor: Option<Cursor>,
        /// Whether the log is complete.
        done: bool,
    }

    /// A line of a build's log.
    pub struct BuildLine {
        /// When the service got the line.
        at: Timestamp,
        /// The line that the runner, the CI or the service wrote, without its line break.
        text: String,
    }
}

impl Build {
    /// A build that was triggered just now, of the branch of its repository.
    pub fn queued(
        id: BuildId,
        app_id: AppId,
        platform: Platform,
        profile: Name,
        execution_path: ProvenancePath,
        created_at: Timestamp,
    ) -> Self {
        Build {
            id,
            app_id,
            platform,
            profile,
            execution_path,
            mode: RepositoryMode::Unclassified,
            state: BuildState::Queued,
            git_ref: None,
            commit: None,
            labels: Vec::new(),
            runner: None,
            attempts: 0,
            run_url: None,
            artifact_id: None,
            warnings: Vec::new(),
            error: None,
            triggered_by: None,
            created_at,
            started_at: None,
            finished_at: None,
        }
    }
}

/// Who triggers a build, as the caller says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BuildTrigger {
    /// A person on a page, or another program.
    #[default]
    Dashboard,
    /// The command line.
    Cli,
}

impl From<BuildTrigger> for ProvenancePath {
    fn from(trigger: BuildTrigger) -> Self {
        match trigger {
            BuildTrigger::Dashboard => ProvenancePath::DashboardTrigger,
            BuildTrigger::Cli => ProvenancePath::CliTrigger,
        }
    }
}

/// Where a build stands. All but `queued`, `dispatched` and `running` are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BuildState {
    /// The service reads the repository, or the build waits for a runner.
    Queued,
    /// A runner got the build and has not reported yet, or a CI has the build in its queue.
    Dispatched,
    /// The build runs.
    Running,
    /// The artifact is verified.
    Succeeded,
    /// The build failed, or two runners lost it.
    Failed,
    /// The build was cancelled.
    Cancelled,
    /// Nobody began the build within a day, or it did not end in time.
    TimedOut,
}

impl BuildState {
    /// The name of the state on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            BuildState::Queued => "queued",
            BuildState::Dispatched => "dispatched",
            BuildState::Running => "running",
            BuildState::Succeeded => "succeeded",
            BuildState::Failed => "failed",
            BuildState::Cancelled => "cancelled",
            BuildState::TimedOut => "timedOut",
        }
    }

    /// Whether the build has ended.
    pub fn is_final(self) -> bool {
        use BuildState::{Cancelled, Dispatched, Failed, Queued, Running, Succeeded, TimedOut};
        match self {
            Queued | Dispatched | Running => false,
            Succeeded | Failed | Cancelled | TimedOut => true,
        }
    }
}
