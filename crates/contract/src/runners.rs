//! Runners: programs that execute builds, and ask the service for them.

use crate::{
    AppId, ArtifactId, BoundedSet, BuildId, Name, OrganizationId,
    apps::Platform,
    builds::{Build, BuildState, Labels},
    ssh::{SshHostKey, SshPrivateKey},
    text::{AccessToken, GitUrl, RunnerKey},
};

/// The most lines of one report.
pub const MOST_LINES: usize = 1_000;
/// How many organizations, and how many apps, one runner may name.
pub const MOST_SERVED: usize = 50;

functions! {
    group "Runners";

    /// Ask for a build.
    ///
    /// The reply contains the oldest build of the named organizations and apps whose labels the
    /// runner has. If there is none, the call waits for one, at most 20 seconds. A runner has one
    /// build at a time: asked again with the same key, the service repeats the build.
    ///
    /// The reply contains the token or the deploy key of the repository. So only owners and admins
    /// of an organization may run its builds; the standing of a superadmin or of a project's
    /// creator does not count.
    ///
    /// The runner must report within a minute, and then at least once a minute. A build of a silent
    /// runner is given to another runner once.
    "svc_claimBuild": ClaimBuild {
        /// Chosen by the runner at random, and known to nobody else: it proves that a later report
        /// comes from the runner that got the build.
        runner: RunnerKey,
        /// The name of the runner, as the build shows it.
        name: Name,
        /// The labels of the runner. A build for a platform needs the label `android` or `ios`.
        #[schemars(extend("examples" = [["android"]]))]
        labels: Labels,
        /// The organizations whose builds the runner executes.
        #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
        organization_ids: BoundedSet<OrganizationId, 0, MOST_SERVED>,
        /// The apps whose builds the runner executes. At least one organization or app is required,
        /// unless the caller's token is bound to an app, which is then the default.
        #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
        #[schemars(extend("examples" = [["app_01J9ZQ8F5W7V3T6M2K4N8R0P1S"]]))]
        app_ids: BoundedSet<AppId, 0, MOST_SERVED>,
    } -> ClaimedBuild
    { who: User, effect: Change, scope: BuildRun, person: true, secret: true,
      errors: [
          NotFound "no such organization or app, or one that the caller may not see",
          Forbidden "the caller is neither owner nor admin of an organization that is named, or of an app's",
      ] }

    /// Report that a build runs, with the next lines of its log.
    "svc_reportBuild": ReportBuild {
        build_id: BuildId,
        /// The key that the runner chose for `svc_claimBuild`.
        runner: RunnerKey,
        /// The number of the first line, from 0. Lines that the service has are ignored, so a
        /// report may be repeated.
        from: u32,
        /// At most 1,000 lines. Longer lines than 2,000 characters are cut.
        lines: Vec<String>,
    } -> BuildReported
    { who: OwnerOrAdmin of (build_id), effect: Change, scope: BuildRun,
      errors: [NotNow "another runner has the build, or lines before these are missing"] }

    /// Report the end of a build: give its verified artifact, or why there is none.
    "svc_finishBuild": FinishBuild {
        build_id: BuildId,
        /// The key that the runner chose for `svc_claimBuild`.
        runner: RunnerKey,
        /// The id of the verified artifact that the build made. Give either this or `error`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        artifact_id: Option<ArtifactId>,
        /// Why there is no artifact. Give either this or `artifactId`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<crate::text::Reason>,
    } -> Build
    { who: OwnerOrAdmin of (build_id), effect: Change, scope: BuildRun,
      errors: [NotNow "another runner has the build, or the artifact is not a verified one of this build"] }
}

records! {
    /// A build for the runner that asked, or nothing.
    pub struct ClaimedBuild {
        /// The build to execute. Null if there was none in time: ask again.
        job: Option<BuildOrder>,
    }

    /// All that a runner needs to execute a build.
    pub struct BuildOrder {
        build_id: BuildId,
        app_id: AppId,
        platform: Platform,
        /// The build profile of `.svc/config.json` that is built.
        profile: Name,
        /// The address of the repository.
        url: GitUrl,
        /// A token with which the host lets the runner read the repository.
        token: Option<AccessToken>,
        /// How the runner reads a repository over ssh.
        #[serde(default)]
        ssh: Option<SshAccess>,
        commit: String,
        /// The branch, tag or commit that was asked for, from which `commit` can be reached.
        #[serde(rename = "ref")]
        git_ref: String,
        /// The shell command that builds, for the root of the repository.
        command: String,
        /// The path of the built file in the repository.
        artifact: String,
        /// How long the build may take, in seconds.
        limit_seconds: u32,
    }

    /// The permission to read a repository over ssh.
    pub struct SshAccess {
        /// The private half of the deploy key, as a file of OpenSSH.
        private_key: SshPrivateKey,
        /// The only key that the host may have.
        host_key: SshHostKey,
    }

    /// The answer to a report.
    pub struct BuildReported {
        /// Any other state than `running` tells the runner to stop.
        state: BuildState,
        /// How many lines the service has.
        lines: u32,
    }
}
