//! Trusted publishers: CI workflows that upload without a stored secret. They prove their identity
//! with a token of their CI (OpenID Connect).

use crate::{
    AppId, BoundedSet, Page, PublisherId, Timestamp, UserId, WebUrl,
    page::*,
    text::{CiEvent, Environment, HostId, RefPattern, RepositoryName, WorkflowFile},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The events of runs that a publisher trusts.
pub type CiEvents = BoundedSet<CiEvent, 0, 20>;

functions! {
    group "Trusted publishers";

    /// Trust a workflow of a repository to upload artifacts of an app, and to create releases.
    ///
    /// Its jobs exchange the identity token of their CI for a deploy token that lives 30 minutes, and
    /// can do what the caller of this function may do as a member. So the caller must be a member of
    /// the app's organization and reach its project: it is not enough to be a superadmin.
    "svc_addTrustedPublisher": AddTrustedPublisher {
        app_id: AppId,
        /// The repository, such as `acme/app`.
        repository: RepositoryName,
        /// The file of the workflow in `.github/workflows` that begins the run.
        workflow: WorkflowFile,
        /// Only jobs of this environment. The default is every job.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        environment: Option<Environment>,
        /// Only runs of this branch or tag, such as `refs/heads/main`, or of those that begin alike, such
        /// as `refs/tags/v*`. The default is every one.
        #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
        git_ref: Option<RefPattern>,
        /// Only runs that these events begin. The default is `push`, `release`, `workflow_dispatch` and
        /// `schedule`, which only people with write access to the repository cause.
        #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
        events: CiEvents,
        /// The id that the host gave to the repository. The default is the id in the first exchange:
        /// until then, a new repository of the same name would be trusted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository_id: Option<HostId>,
        /// The id that the host gave to the owner of the repository, like `repositoryId`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repository_owner_id: Option<HostId>,
        /// Who issues the identity tokens. The default is GitHub. An operator allows others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issuer: Option<WebUrl>,
    } -> TrustedPublisher
    { who: OwnerOrAdmin of (app_id), effect: Change, person: true,
      errors: [Exists "the app trusts this workflow already",
        NotNow "the app has 20 trusted publishers, or the caller reaches it as a superadmin only"] }

    /// List the trusted publishers of an app.
    "svc_getTrustedPublishers": GetTrustedPublishers {
        app_id: AppId,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<TrustedPublisher> { who: Member of (app_id), effect: Read }

    /// Trust a workflow no longer. Tokens that it has already live on for at most 30 minutes.
    "svc_removeTrustedPublisher": RemoveTrustedPublisher {
        /// The id of the trusted publisher, from `svc_getTrustedPublishers`.
        publisher_id: PublisherId,
    } -> RemovedTrustedPublisher
    { who: OwnerOrAdmin of (publisher_id), effect: Change }
}

records! {
    /// A workflow that may upload artifacts of an app.
    pub struct TrustedPublisher {
        id: PublisherId,
        app_id: AppId,
        /// The address of the CI that issues the identity tokens.
        issuer: WebUrl,
        /// The repository, such as `acme/app`. Capital letters make no difference.
        repository: RepositoryName,
        /// The file of the workflow in `.github/workflows` that must begin the run.
        workflow: WorkflowFile,
        /// The environment in which the job must run. Null: it may run in any or none.
        environment: Option<Environment>,
        /// The branch or tag of the run, or the beginning of its name and `*`. Null: it may be any.
        #[serde(rename = "ref", default)]
        git_ref: Option<RefPattern>,
        /// The events of runs that are trusted.
        #[serde(default = "usual_events")]
        events: Vec<CiEvent>,
        /// Null until the first exchange, if it was not given.
        repository_id: Option<HostId>,
        /// The id that the host gave to the owner of the repository, like `repositoryId`.
        repository_owner_id: Option<HostId>,
        /// The user for whom the tokens act.
        created_by: UserId,
        created_at: Timestamp,
    }

    /// The trusted publisher that the call removed.
    pub struct RemovedTrustedPublisher { deleted: PublisherId }

    /// The run of a CI job, as its identity token proves it.
    pub struct CiRun {
        issuer: WebUrl,
        repository: String,
        repository_id: String,
        repository_owner_id: String,
        /// The workflow that began the run, with its repository and the reference.
        workflow_ref: String,
        /// The workflow that contains the job, if that is another one.
        #[serde(default)]
        job_workflow_ref: Option<String>,
        #[serde(default)]
        environment: Option<String>,
        event: String,
        run_id: String,
        #[serde(default)]
        run_attempt: Option<String>,
        commit: String,
        #[serde(rename = "ref")]
        git_ref: String,
        #[serde(default)]
        actor: Option<String>,
    }
}

/// The events that are trusted unless others are named.
pub fn usual_events() -> Vec<CiEvent> {
    let usual = ["push", "release", "workflow_dispatch", "schedule"];
    usual.iter().filter_map(|event| event.parse().ok()).collect()
}

/// GitHub, the default issuer of identity tokens. Source: "OpenID Connect reference" of GitHub
/// Actions.
pub const GITHUB: &str = "https://token.actions.githubusercontent.com";

impl CiRun {
    /// The page of the run, if its host is known.
    pub fn run_url(&self) -> Option<WebUrl> {
        let url = format!("https://github.com/{}/actions/runs/{}", self.repository, self.run_id);
        (self.issuer.as_str() == GITHUB).then(|| url.parse().ok()).flatten()
    }
}

/// `POST /api/v1/oidc/exchange`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IdentityExchange {
    /// The identity token of the CI job. Its audience is the address of the service, or
    /// `{address}/apps/{appId}`: then the token is good for this app only.
    pub token: crate::text::IdentityToken,
    /// The app. It is needed unless the audience names the app, or the job is one of the operator's own
    /// workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_id: Option<AppId>,
}

/// The reply of `POST /api/v1/oidc/exchange`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExchangedToken {
    /// A deploy token with the scopes `artifact:upload` and `release:create`; for a build, only the
    /// first.
    pub token: String,
    /// The app that the token is bound to.
    pub app_id: AppId,
    /// When the token expires.
    pub expires_at: Timestamp,
    /// What to build, if the job is one of the operator's own workflow.
    #[serde(default)]
    pub build: Option<crate::runners::BuildOrder>,
}
