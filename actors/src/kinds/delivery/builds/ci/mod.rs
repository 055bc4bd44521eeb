//! Builds in the CI of a repository. The service begins a run there, and follows it.
//!
//! A host has no way to say "begin this run once". So the service writes down that it is about to
//! ask, and asks once. If the host does not say clearly what it did, the service looks for the run
//! among those of the host; it never asks again.

mod effects;
mod transitions;

pub(super) use effects::{cancel, dispatch, find, follow};

use super::rules::{BuildClaim, Builds};
use crate::{
    ports::ci::{BegunRun, RunProgress},
    runtime::store::{Keyed, Store},
};
use contract::{ArtifactId, EventId, Fault, Timestamp, builds::Build, text::RepositoryName};
use serde::{Deserialize, Serialize};
use std::{fmt::Display, time::Duration};

/// The workflow that builds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Workflow {
    /// That of the app's repository.
    #[default]
    Own,
    /// That of the operator's repository. Its job asks the service what to build.
    Central,
}

impl Workflow {
    pub fn file(self) -> &'static str {
        match self {
            Workflow::Own => "svc-build.yml",
            Workflow::Central => "svc-central.yml",
        }
    }
}

/// Where a build is to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    pub workflow: Workflow,
    pub repository: RepositoryName,
    /// The clock of the host.
    pub now: Timestamp,
}

/// The run of a build in a CI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CiRun {
    #[serde(default)]
    pub workflow: Workflow,
    pub repository: RepositoryName,
    /// When the service began to ask for the run.
    pub asked_at: Timestamp,
    /// The same time by the clock of the host.
    pub since: Timestamp,
    /// `None` until the service knows which run it is.
    pub id: Option<u64>,
    /// The deadline of the phase.
    pub until: Timestamp,
    /// Identifies the last reply of the host about the run.
    pub tag: Option<String>,
    /// When the service looks for the run, or at it. `None`: the host was not asked yet to begin it, or
    /// the service looks at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_at: Option<Timestamp>,
    /// How often the service looked in vain since the last change.
    pub looks: u32,
    /// The finished steps that the log has.
    pub steps: Vec<String>,
    /// When the service saw that the run succeeded.
    pub succeeded_at: Option<Timestamp>,
    /// Nothing has to be cancelled: the run has ended, or there is none.
    #[serde(default)]
    pub over: bool,
}

/// The outcome of an effect on the run of a build.
#[derive(Debug, Clone, PartialEq)]
pub enum RunOutcome {
    /// The host began this run.
    Begun(BegunRun),
    /// The host began no run. Another attempt after this time may succeed.
    NotBegun(Duration),
    /// The host may have begun a run.
    Unclear,
    /// The host shows no run that may be the one.
    NotFound,
    /// What changed since the last look.
    Looked(Option<Box<RunReport>>),
    /// The host did not tell. The service asks again after this time.
    Later(Duration),
    /// The host knows no such run, or no longer, for this reason.
    Gone(String),
    /// The host was told to cancel the run, which goes on for now.
    Ending,
    /// The run has ended.
    Ended,
}

/// What the service saw of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    pub progress: RunProgress,
    /// The verified artifact, if the run succeeded.
    pub made: Option<ArtifactId>,
    /// The key of the record of new log lines.
    pub key: EventId,
}

/// The name that the workflows in `ci/` give to the run of a build.
fn title(workflow: Workflow, build: &Build) -> String {
    match workflow {
        Workflow::Own => format!("{TITLED}{} {}", build.platform.name(), build.profile),
        Workflow::Central => format!("{TITLED}{}", build.id),
    }
}
const TITLED: &str = "svc build: ";

/// The run that was asked for, among those that the host shows. A workflow of another author may not
/// name its runs: then only a single one is certain.
fn pick(mut runs: Vec<BegunRun>, title: &str, git_ref: Option<&str>) -> Option<BegunRun> {
    runs.retain(|run| git_ref.is_none() || run.git_ref.as_deref() == git_ref);
    let (mut named, mut others): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|run| run.title.starts_with(TITLED));
    named.retain(|run| run.title == title);
    match (named.pop(), others.pop()) {
        (Some(run), _) => Some(run),
        (None, Some(run)) if others.is_empty() => Some(run),
        _ => None,
    }
}

/// The build that a run belongs to.
pub(crate) fn build_of_run(
    store: &Store,
    repository: &str,
    run: impl Display,
) -> Result<Option<Keyed<Builds>>, Fault> {
    store.held_by(&BuildClaim::Run { run: run_name(repository, run) })
}

/// The name of a run among all hosts' repositories, such as `acme/app/123`.
fn run_name(repository: &str, run: impl Display) -> String {
    format!("{}/{run}", repository.to_ascii_lowercase())
}
