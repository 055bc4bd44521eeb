//! The rules of a build: `queued → dispatched → running → succeeded | failed`, `cancelled`,
//! `timedOut`.
//!
//! A queued build is first planned: the service reads the repository. Then it is begun in the CI of
//! the repository ([`CiRun`]), or it waits for a runner. A runner that gets the build holds it by a
//! lease, which each report extends. When a lease ends, the build is queued once more; after a
//! second lost runner it fails.

use super::{
    ci::{CiRun, Destination, RunOutcome},
    waiting::Waiting,
};
use crate::{
    kinds::{people::apps::Apps, world::World},
    runtime::{
        entries::InState,
        event::Event,
        resource::{Child, Moment, Resource, Retry, Step, Unique, Work},
        uses::Uses,
    },
};
use contract::{
    AppId, ArtifactId, BuildId, EventId, Fault, Name, OrganizationId, Timestamp,
    builds::{Build, BuildState},
    quotas::Quota,
    repositories::RepositoryMode,
    retention::Retention,
    text::GitUrl,
    webhooks::EventType,
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use store::{Entries, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Builds;

/// How long a build waits for a runner.
pub const WAITS_FOR_RUNNER: Duration = Duration::from_secs(24 * 3600);
/// How long a runner may be silent.
pub const LEASE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The part that callers see.
    pub build: Build,
    /// `None`: a version of the program that did not note it triggered the build.
    #[serde(default)]
    pub organization: Option<OrganizationId>,
    /// How long an attempt may take, in seconds.
    pub limit_seconds: u32,
    #[serde(default)]
    pub place: BuildPlace,
    /// What is built; `None` until the repository was read.
    pub plan: Option<BuildPlan>,
    /// When the repository is read, if not at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_at: Option<Timestamp>,
    /// The deadline of the state `queued`.
    pub queued_until: Timestamp,
    /// `None` while no runner has the build.
    pub lease: Option<Lease>,
    /// `None` unless the build is one for a CI.
    #[serde(default)]
    pub run: Option<CiRun>,
    /// The log is being removed, or was.
    #[serde(default)]
    pub removing_log: bool,
    /// The log was removed.
    pub log_removed: bool,
    /// The size of what runners reported and the log keeps.
    #[serde(default)]
    pub log_bytes: u64,
    /// The app is being deleted, and this record with it.
    pub removing: bool,
}

/// Where a build is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BuildPlace {
    /// In the CI of the repository if the service can begin runs there, else as `Hosted`.
    #[default]
    Any,
    /// In the CI of the repository.
    Ci,
    /// In the CI of the operator's repository if there is one, else on a runner.
    Hosted,
    Runner,
}

/// What is built, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuildPlan {
    pub url: GitUrl,
    pub mode: RepositoryMode,
    /// A branch, tag or commit.
    pub git_ref: String,
    pub commit: String,
    /// The shell command that builds.
    pub command: String,
    /// The path of the built file in the repository.
    pub artifact: String,
}

/// A runner has the build until its lease ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// The digest of the runner's key.
    pub runner: String,
    pub until: Timestamp,
    /// The deadline of the attempt, whatever the runner reports.
    pub ends_by: Timestamp,
    /// How many lines the runner has reported.
    pub lines: u32,
    /// The size of those that are kept.
    pub bytes: u64,
    /// Whether no further line is kept.
    #[serde(default)]
    pub is_full: bool,
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Give the build to this runner.
    Claim {
        runner: String,
        name: Name,
    },
    /// The runner works on the build and has new lines.
    Report {
        runner: String,
        /// The number of the first line.
        from: u32,
        lines: Vec<String>,
        /// How many bytes more the logs of the organization may have.
        room: u64,
        /// The key of the record of these lines.
        key: EventId,
    },
    /// The runner verified an artifact, or says why there is none.
    Finish {
        runner: String,
        made: Result<ArtifactId, String>,
    },
    /// The host reports a change of this run.
    RunChanged {
        run: u64,
    },
    Cancel,
    /// Delete the build together with its app.
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Read the repository.
    Plan,
    /// Find out what became of a build whose runner is silent.
    FindOut,
    /// Remove a batch of the log.
    Forget,
    /// Begin a run in the CI.
    Dispatch,
    /// Find the run that the CI may have begun.
    Find,
    /// See how far the run is.
    Follow,
    /// Tell the CI to end a run that nobody wants any more.
    CancelRun,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The plan, and the CI in which the build is to run.
    Planned(Box<BuildPlan>, Option<Destination>),
    Run(RunOutcome),
    /// The build is impossible, for this reason.
    Impossible(String),
    /// The runner gets another lease: the service itself was away, or verifies the artifact.
    Patience,
    /// The runner verified this artifact before it fell silent.
    Made(ArtifactId),
    Lost,
    /// Whether the whole log is removed.
    Forgotten(bool),
}

impl Resource for Builds {
    const INDEX: u16 = 4;
    const TIME_LIMIT: Duration = Duration::from_secs(120);
    type New = State;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(_: &Moment<Self>, state: State) -> Result<Step<Self>, Fault> {
        Ok(Step::put(state))
    }

    fn on_command(state: State, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        state.on_command(at, command)
    }

    fn on_outcome(state: State, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        state.on_outcome(at, outcome)
    }

    fn is_deleted(state: &State) -> bool {
        state.removing
    }

    fn accepts_deleted(command: &Command) -> bool {
        matches!(command, Command::Remove)
    }

    fn index(state: &State) -> Entries<Self> {
        let Build { app_id: app, platform, .. } = state.build;
        let platform = || platform.name().to_owned();
        let under_way = (!state.removing && !state.build.state.is_final()).then_some(());
        let waiting = state.waits_for_runner().then_some(());
        let entries = Entries::default()
            .and(InState::<Apps>::new(app, state.build.state))
            .and_all(under_way.map(|()| BuildIndex::UnderWay { app }));
        match state.organization {
            Some(organization) => entries
                .and_all(under_way.map(|()| BuildIndex::UnderWayIn { organization }))
                .and_all(
                    waiting.map(|()| BuildIndex::WaitingIn { organization, platform: platform() }),
                )
                .and_all(waiting.map(|()| BuildIndex::WaitingOf { app, platform: platform() })),
            None => entries.and_all(waiting.map(|()| BuildIndex::Waiting { platform: platform() })),
        }
    }

    /// An earlier attempt, or another node, may have asked the host for the run.
    fn unanswered(effect: &Effect, _: &State) -> Option<Outcome> {
        (*effect == Effect::Dispatch).then_some(Outcome::Run(RunOutcome::Unclear))
    }

    fn reports(command: &Command) -> bool {
        matches!(command, Command::Report { .. })
    }

    fn uses(state: &State) -> Uses {
        let uses = Uses::default().and(Quota::LogBytes, state.log_bytes);
        if state.build.state.is_final() { uses } else { uses.and(Quota::Builds, 1) }
    }

    fn written(id: BuildId, before: Option<&State>, after: &State, world: &World) {
        if after.waits_for_runner() && !before.is_some_and(State::waits_for_runner) {
            world.waiting_builds.announce(Waiting {
                id,
                app: after.build.app_id,
                organization: after.organization,
            });
        }
    }

    /// `Stale`: the call is decided again, and finds the build that the runner has. The search for a
    /// run is repeated, and finds another one.
    fn claims(state: &State) -> Vec<Unique<Self>> {
        if state.removing {
            return Vec::new();
        }
        let runner = |lease: &Lease| BuildClaim::Runner { runner: lease.runner.clone() };
        let run = |name| BuildClaim::Run { run: name };
        let runner = state.lease.as_ref().map(runner);
        let run = state.run.as_ref().and_then(CiRun::name).map(run);
        runner.into_iter().chain(run).map(|claim| Unique::new(claim, || Fault::Stale)).collect()
    }

    fn next(state: &State) -> Option<Work<Effect>> {
        if let Some(run) = state.unwanted_run() {
            return Some(run.work(Effect::CancelRun));
        }
        if state.removing {
            return Some(Work::now(Effect::Forget));
        }
        if state.build.finished_at.is_some() {
            let goes_on = state.removing_log && !state.log_removed;
            return goes_on.then(|| Work::now(Effect::Forget));
        }
        Some(match (&state.lease, &state.run, &state.plan) {
            (Some(lease), ..) => Work::at(lease.until, Effect::FindOut).until(Some(lease.ends_by)),
            (None, Some(run), _) => run.work(Effect::Follow),
            (None, None, None) => {
                let plan = Work { at: state.planned_at, ..Work::now(Effect::Plan) };
                plan.until(Some(state.queued_until))
            }
            (None, None, Some(_)) => Work::wait(state.queued_until),
        })
    }

    fn on_due(state: State, at: &Moment<Self>) -> Step<Self> {
        state.overdue(at)
    }

    fn retained(state: &State) -> Vec<(Retention, Timestamp)> {
        let Some(ended) = state.build.finished_at else { return Vec::new() };
        let log = (!state.removing_log && !state.log_removed).then_some(Retention::BuildLogs);
        log.into_iter().chain([Retention::Builds]).map(|retention| (retention, ended)).collect()
    }

    fn on_retention_over(
        state: State,
        at: &Moment<Self>,
        retention: Retention,
    ) -> Result<Step<Self>, Fault> {
        match retention {
            Retention::BuildLogs => Ok(Step::put(State { removing_log: true, ..state })),
            _ => state.on_command(at, Command::Remove),
        }
    }

    fn events(_: &Moment<Self>, before: Option<&State>, after: &State, _: &World) -> Vec<Event> {
        let build = &after.build;
        if before.is_some_and(|before| before.build.state == build.state) {
            return Vec::new();
        }
        let kind = match build.state {
            BuildState::Queued | BuildState::Dispatched => return Vec::new(),
            BuildState::Running => EventType::BuildStarted,
            BuildState::Succeeded => EventType::BuildSucceeded,
            BuildState::Failed => EventType::BuildFailed,
            BuildState::Cancelled => EventType::BuildCancelled,
            BuildState::TimedOut => EventType::BuildTimedOut,
        };
        vec![Event::new(kind, build.app_id, build)]
    }

    fn perform(
        effect: Effect,
        id: BuildId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, kept, world))
    }
}

impl Child for Builds {
    fn parent(state: &State) -> Option<AppId> {
        Some(state.build.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

store::entries! {
    pub enum BuildIndex of Builds {
        /// The builds of an app that have not ended.
        UnderWay { app: AppId } = "underWay",
        /// The builds of an organization that have not ended.
        UnderWayIn { organization: OrganizationId } = "underWayIn",
        /// The builds of an organization that wait for a runner.
        WaitingIn { organization: OrganizationId, platform: String } = "waitingIn",
        /// The builds of an app that wait for a runner.
        WaitingOf { app: AppId, platform: String } = "waitingOf",
        /// The builds that wait for a runner, and do not know their organization.
        Waiting { platform: String } = "waiting",
    }
}

store::claims! {
    pub enum BuildClaim of Builds {
        /// A runner has one build at a time.
        Runner { runner: String } = "runner",
        /// A run in a CI belongs to one build.
        Run { run: String } = "run",
    }
}
