//! Repositories of apps, and the checks of their files.

use crate::{
    AppId, Timestamp,
    ssh::{SshFingerprint, SshPublicKey},
    text::{AccessToken, GitRef, GitUrl, HostId},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Repositories";

    /// Connect a git repository to an app, and check it.
    ///
    /// An earlier repository of the app is replaced, also its token. The service fetches the newest
    /// commit without its history. The reply waits for the check, at most 20 seconds; `checking`
    /// says whether it still runs.
    ///
    /// For an ssh address, the service makes a key pair and shows its public half as `deployKey`: add
    /// it to the repository at its host, with permission to read, and check the repository again. The
    /// same address keeps the key pair. The first check trusts the key of the host, and later ones
    /// accept no other one.
    "svc_connectRepository": ConnectRepository {
        app_id: AppId,
        /// The address of the repository: https, or ssh such as `git@git.example.com:team/app.git`.
        url: GitUrl,
        /// A branch. The default is the repository's own default branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<GitRef>,
        /// A token with which the host lets the service read a private repository. Only a
        /// runner gets it (`svc_claimBuild`). Not with an ssh address, which has a deploy key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<AccessToken>,
        /// The installation of the service's GitHub App that has the repository. The service then
        /// reads the repository without a token, and begins builds in its CI, as long as `app` and
        /// `repository` in the `.svc/config.json` of its default branch name this app and the
        /// repository; where registration is closed, the installation is enough. The default is the
        /// installation that the host names, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        installation_id: Option<HostId>,
        /// The fingerprint of the key that an ssh host must have, such as a host that got another
        /// key. The default is the known key of the same address, or else that of the first check.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host_key: Option<SshFingerprint>,
    } -> Repository { who: Member of (app_id), effect: Change, cost: 5 }

    /// Read the repository of an app, as the last check found it.
    "svc_getRepository": GetRepository { app_id: AppId } -> Repository
    { who: Member of (app_id), effect: Read, errors: [NotFound "the app has no repository"] }

    /// Check the repository of an app again.
    ///
    /// The reply waits for the check, like that of `svc_connectRepository`.
    "svc_checkRepository": CheckRepository { app_id: AppId } -> Repository
    { who: Member of (app_id), effect: Change, cost: 5,
      errors: [NotFound "the app has no repository"] }

    /// Read the address and the secret with which the host of a repository reports pushes.
    ///
    /// Add them to the host as a webhook for pushes, with content type JSON. Each push to the
    /// connected branch then begins a check. A repository that is disconnected and connected again
    /// has another secret.
    "svc_getRepositoryWebhook": GetRepositoryWebhook { app_id: AppId } -> RepositoryWebhook
    { who: Member of (app_id), effect: Read, errors: [NotFound "the app has no repository"] }

    /// Disconnect the repository of an app, and forget its token and its deploy key.
    "svc_disconnectRepository": DisconnectRepository { app_id: AppId } -> DisconnectedRepository
    { who: Member of (app_id), effect: Change, errors: [NotFound "the app has no repository"] }
}

records! {
    /// The repository of an app, as the last check found it.
    pub struct Repository {
        app_id: AppId,
        /// The address at which the service reads the repository.
        url: GitUrl,
        /// The branch that was connected, or else the default branch once it is known.
        branch: Option<String>,
        /// The kind of server that holds the repository.
        host: RepositoryHost,
        /// Whether the service has a token for the repository.
        has_token: bool,
        /// The public key with which the service reads an ssh repository.
        #[serde(default)]
        deploy_key: Option<SshPublicKey>,
        /// The fingerprint of the key of the ssh host, once it is known.
        #[serde(default)]
        host_key: Option<SshFingerprint>,
        /// The installation of the GitHub App through which the service reaches the repository.
        #[serde(default)]
        installation_id: Option<HostId>,
        /// Where its builds run, by the files that the last check found.
        mode: RepositoryMode,
        /// Where a build of the branch runs that names no labels. Null until a check has read the
        /// repository.
        #[serde(default)]
        runs_in: Option<RunsIn>,
        /// The files of a managed repository.
        detected: Vec<DetectedFile>,
        /// What is wrong: errors first. At most 100.
        findings: Vec<Finding>,
        /// The commit that was checked.
        commit: Option<String>,
        /// When the last check read the repository. Null until one could.
        checked_at: Option<Timestamp>,
        /// Whether a check runs.
        checking: bool,
        /// Why the last check could not read the repository. The other fields show the check before
        /// it.
        error: Option<String>,
    }

    /// What the host of a repository needs to report pushes: an address, and the secret that signs.
    pub struct RepositoryWebhook {
        /// The address to which the host reports pushes.
        url: String,
        /// The secret with which the host signs a report, or which it sends with it.
        secret: String,
    }

    /// The answer to a report of a push.
    pub struct PushReceived {
        /// Whether a check begins: the push was to the connected branch.
        checking: bool,
    }

    /// The app whose repository was disconnected.
    pub struct DisconnectedRepository {
        /// The id of the app.
        deleted: AppId,
    }

    /// A file that a managed repository has.
    pub struct DetectedFile {
        /// The path: `package.json`, `.svc/config.json` or `.github/workflows/svc-build.yml`.
        path: String,
        /// Whether the file is there, also if it cannot be read.
        present: bool,
        /// The first error in the file.
        problem: Option<String>,
    }

    /// Something that a check found in a repository.
    pub struct Finding {
        /// The id of the check. It never changes.
        check: String,
        /// How much the finding matters. With an `error`, a build fails.
        severity: Severity,
        /// The path of the file. Null if the finding is about no file.
        path: Option<String>,
        /// The line in the file, from 1.
        line: Option<u32>,
        /// What is wrong, without the name of the file, such as `is missing`.
        problem: String,
        /// What to do about it.
        fix: String,
    }
}

/// Where the builds of a repository run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepositoryMode {
    /// No check has read the repository yet.
    #[default]
    Unclassified,
    /// All three files are there. Builds run in the CI of the repository.
    Managed,
    /// Artifacts are uploaded, or built from the repository elsewhere.
    ArtifactOnly,
}

/// Where builds run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunsIn {
    /// In the CI of the repository.
    ClientCi,
    /// On a machine with `svc runner`.
    Runner,
    /// In the CI of the operator's repository. Builds that the master key triggered run on a runner.
    CentralCi,
}

/// How much a finding matters.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is wrong.
    Info,
    /// Builds work, but perhaps not as intended.
    Warning,
    /// A build fails.
    Error,
}

/// The kind of server that holds a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RepositoryHost {
    /// github.com, or the GitHub of the operator.
    Github,
    /// Any other git server.
    Git,
}

impl RepositoryHost {
    /// The kind of server that an address names.
    pub fn of(url: &GitUrl) -> Self {
        if url.host().eq_ignore_ascii_case("github.com") { Self::Github } else { Self::Git }
    }
}
