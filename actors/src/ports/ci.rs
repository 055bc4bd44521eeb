//! The CI of repositories, in which the service begins builds.

use async_trait::async_trait;
use contract::{
    Timestamp, WebUrl,
    text::{AccessToken, GitUrl, HostId, RepositoryName},
};
use std::{collections::BTreeMap, time::Duration};

/// The CI of a host of repositories, as an application that owners of repositories install there.
#[async_trait]
pub trait Ci: Send + Sync {
    /// The repository at an address, if this is its host.
    fn repository(&self, url: &GitUrl) -> Option<RepositoryName>;
    /// The repository of the operator whose CI builds apps, if there is one.
    fn central(&self) -> Option<&Central>;
    /// Opens a repository for reading. `None`: the application is not installed there.
    async fn open(&self, repository: &RepositoryName) -> Result<Option<OpenedRepository>, CiError>;
    /// Begins a run of a workflow. `None`: the host began it and does not say which it is.
    async fn dispatch(
        &self,
        repository: &RepositoryName,
        wanted: &RunRequest,
    ) -> Result<Option<BegunRun>, CiError>;
    /// The runs of a workflow that were dispatched since a time, by the clock of the host.
    async fn runs_since(
        &self,
        repository: &RepositoryName,
        workflow: &str,
        since: Timestamp,
    ) -> Result<Vec<BegunRun>, CiError>;
    /// Reads a run. `None`: nothing changed since the reply with this tag.
    async fn look(
        &self,
        repository: &RepositoryName,
        run: u64,
        seen: Option<&str>,
    ) -> Result<Option<RunProgress>, CiError>;
    /// Asks the host to cancel a run. It may go on for a while, and one that has ended stays as it
    /// is. `force` ends also steps that run in any case.
    async fn cancel(
        &self,
        repository: &RepositoryName,
        run: u64,
        force: bool,
    ) -> Result<(), CiError>;
}

/// A repository that the service may read.
pub struct OpenedRepository {
    pub installation: HostId,
    /// Reads this repository for at most an hour.
    pub token: AccessToken,
    /// `.svc/config.json` of the default branch.
    pub config: Option<String>,
    /// The clock of the host.
    pub now: Timestamp,
}

/// A run that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    /// The file of the workflow.
    pub workflow: &'static str,
    /// A branch or tag.
    pub git_ref: String,
    pub inputs: BTreeMap<&'static str, String>,
}

/// The repository of the operator whose CI builds apps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Central {
    pub repository: RepositoryName,
    /// The branch or tag whose workflow is used.
    pub git_ref: String,
}

/// A run of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunRun {
    pub id: u64,
    /// Its page.
    pub url: Option<WebUrl>,
    /// The name that the workflow gives to the run.
    pub title: String,
    /// The branch or tag.
    pub git_ref: Option<String>,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunProgress {
    /// Identifies this reply, so that the next one tells only changes.
    pub tag: Option<String>,
    pub phase: Phase,
    /// The commit that the run builds.
    pub commit: String,
    /// The finished steps of all jobs, such as `build / Upload: success`.
    pub steps: Vec<String>,
}

/// The phase of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    Running,
    Succeeded,
    Cancelled,
    /// In the words of the host, such as `failure`.
    Failed(String),
}

impl Phase {
    /// Whether the run has ended.
    pub fn is_final(&self) -> bool {
        match self {
            Phase::Waiting | Phase::Running => false,
            Phase::Succeeded | Phase::Cancelled | Phase::Failed(_) => true,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CiError {
    /// The host refuses. Another attempt would fail too.
    #[error("{0}")]
    Refused(String),
    /// The host did nothing. Another attempt after this time may succeed.
    #[error("{why}")]
    Busy { why: String, after: Duration },
    /// The host did not answer, and may have done it.
    #[error("{0}")]
    Unclear(String),
}
