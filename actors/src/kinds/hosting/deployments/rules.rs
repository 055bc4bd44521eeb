//! The rules of a deployment:
//! `queued → building → deploying → verifying → live`, later `superseded` or `rolledBack`;
//! `failed`; `cancelling → cancelled`.
//!
//! The containers belong to the instance. A deployment provides an image, offers a revision to the
//! instance, and follows the instance's record, which alone decides whether the deployment serves.

use crate::{
    kinds::{
        hosting::instances::{
            Definition, ServiceImage,
            history::{Created, DeploymentHistory, Earlier},
        },
        people::apps::Apps,
        world::World,
    },
    ports::sealed::Sealed,
    runtime::{
        entries::InState,
        event::Event,
        resource::{Child, Moment, Resource, Retry, Step, Unique, Work},
        uses::Uses,
    },
};
use contract::{
    AppId, DeploymentId, Fault, Timestamp,
    deployments::{Deployment, DeploymentState as S},
    instances::Role,
    quotas::Quota,
    retention::Retention,
    text::EnvName,
    webhooks::EventType,
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use store::{Change, Entries, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Deployments;

/// How much longer than the deployment an attempt at an effect may take: the deadline comes first.
const EFFECT_LONGER: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The part that callers see.
    pub deployment: Deployment,
    pub role: Role,
    /// The variables in addition to the template's. `None`, until the offer: those that the live
    /// revision has by then.
    pub env: Option<BTreeMap<EnvName, Sealed>>,
    /// The definition of a template version. `None`, until the offer: the definition that the live
    /// revision has by then.
    #[serde(default)]
    pub definition: Option<Definition>,
    /// The build sets its reference.
    pub image: ServiceImage,
    /// When the deployment must serve.
    pub deadline: Option<Timestamp>,
    /// How long it may take from its turn until it serves.
    #[serde(default = "limit_of_earlier_versions")]
    pub limit_seconds: u32,
    /// Whether the deployment is under way or waits for its turn. The deployments of a service run
    /// one at a time, in the order of the calls.
    #[serde(rename = "in_lane")]
    pub in_queue: bool,
    /// The app is being deleted, and this record with it.
    pub removing: bool,
    /// The deployment failed and is being undone. Until that is done, callers see the state in
    /// which it failed.
    #[serde(default)]
    pub failing: bool,
    /// What a rollback restores.
    #[serde(default)]
    pub restores: Option<Earlier>,
    /// What the deployment replaces, if no deployment brought that.
    #[serde(default)]
    pub replaces: Option<Box<Created>>,
    /// The image below that of a folder with cloud code.
    #[serde(default)]
    pub base: Option<ServiceImage>,
    /// The size of its log, once it serves or was undone.
    #[serde(default)]
    pub log_bytes: u64,
}

#[derive(Debug, Clone)]
pub enum Command {
    Cancel,
    /// Another deployment serves in place of this one.
    Supersede {
        /// The other deployment is a rollback of this one.
        rolled_back: bool,
    },
    /// Delete the deployment together with its app.
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Check whether the turn of the deployment has come.
    AwaitTurn,
    /// Provide the image on this machine.
    Build,
    /// Offer a revision to the instance.
    Offer,
    /// Read what became of the revision.
    Follow,
    /// Tell the previous deployment, and wait until its container is removed.
    Finish,
    /// Withdraw the revision from the instance.
    Undo,
    /// Remove the log lines.
    Forget,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// What the effect waits for has not come yet.
    Wait,
    Turn,
    /// The image is on this machine.
    Built {
        /// Of the image.
        reference: String,
        /// [`State::replaces`].
        replaces: Option<Box<Created>>,
        /// [`State::base`].
        base: Option<ServiceImage>,
    },
    /// The instance accepted a revision with this definition and these variables. `None`: the
    /// revision is rejected already.
    Offered(Option<(Box<Definition>, BTreeMap<EnvName, Sealed>)>),
    /// The revision serves; this deployment served before.
    Serves(Option<DeploymentId>),
    /// The deployment fails, for this reason.
    Failed(String),
    /// The previous container is removed.
    Finished {
        /// [`State::log_bytes`].
        log_bytes: u64,
    },
    /// Nothing of the deployment is left to undo.
    Undone {
        /// [`State::log_bytes`].
        log_bytes: u64,
    },
    /// The log lines are removed.
    Forgotten,
}

fn limit_of_earlier_versions() -> u32 {
    30 * 60
}

impl State {
    /// How long it may take from its turn until it serves.
    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_seconds.into())
    }

    /// The state that decides: a deployment that fails is undone like one that is cancelled.
    pub(super) fn phase(&self) -> S {
        if self.failing { S::Cancelling } else { self.deployment.state }
    }

    /// The key of its service, of which one deployment is under way at a time.
    pub(super) fn service(&self) -> String {
        DeploymentHistory::key(self.deployment.instance_id, self.deployment.target)
    }

    /// The index entry of the service's queue. A deployment that leaves the queue makes the next
    /// one the first in the same transaction.
    pub fn queue(&self) -> DeploymentIndex {
        DeploymentIndex::Queue { service: self.service() }
    }

    /// Whether the image is still to be built, from a repository or a folder.
    pub fn is_built(&self) -> bool {
        let source = &self.deployment.source;
        self.image.reference.is_none() && (source.git.is_some() || source.folder.is_some())
    }

    /// Whether the deployment serves or has ended.
    pub fn is_decided(&self) -> bool {
        !matches!(
            self.deployment.state,
            S::Queued | S::Building | S::Deploying | S::Verifying | S::Cancelling
        )
    }
}

impl Resource for Deployments {
    const INDEX: u16 = 4;
    type New = State;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn time_limit(state: &State) -> Duration {
        state.limit() + EFFECT_LONGER
    }

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
        !matches!(command, Command::Cancel)
    }

    fn index(state: &State) -> Entries<Self> {
        let Deployment { app_id, state: in_state, .. } = state.deployment;
        Entries::default()
            .and(InState::<Apps>::new(app_id, in_state))
            .and_all(state.in_queue.then(|| state.queue()))
    }

    fn uses(state: &State) -> Uses {
        let uses = Uses::default().and(Quota::LogBytes, state.log_bytes);
        if state.in_queue { uses.and(Quota::Builds, 1) } else { uses }
    }

    /// One deployment of a service is active at a time. The queue alone does not ensure that: which
    /// one is the oldest can change while the oldest is still being written.
    fn claims(state: &State) -> Vec<Unique<Self>> {
        let active = state.in_queue && state.deployment.state != S::Queued;
        let claim = DeploymentClaim::Active { service: state.service() };
        active.then(|| Unique::new(claim, || Fault::Stale)).into_iter().collect()
    }

    fn next(state: &State) -> Option<Work<Effect>> {
        if state.removing {
            return Some(Work::now(Effect::Forget));
        }
        let effect = match state.phase() {
            S::Queued => Effect::AwaitTurn,
            S::Building => Effect::Build,
            S::Deploying => Effect::Offer,
            S::Verifying => Effect::Follow,
            S::Cancelling => Effect::Undo,
            S::Live | S::Superseded | S::RolledBack if state.in_queue => Effect::Finish,
            S::Live | S::Superseded | S::RolledBack | S::Failed | S::Cancelled => return None,
        };
        Some(Work::now(effect).until(state.deadline))
    }

    fn on_due(state: State, _: &Moment<Self>) -> Step<Self> {
        state.overdue()
    }

    fn retained(state: &State) -> Vec<(Retention, Timestamp)> {
        let has_ended = match state.deployment.state {
            S::Superseded | S::RolledBack | S::Failed | S::Cancelled => !state.in_queue,
            S::Live | S::Queued | S::Building | S::Deploying | S::Verifying | S::Cancelling => {
                false
            }
        };
        let ended = state.deployment.finished_at.filter(|_| has_ended);
        ended.map(|ended| (Retention::Deployments, ended)).into_iter().collect()
    }

    fn on_retention_over(
        state: State,
        at: &Moment<Self>,
        _: Retention,
    ) -> Result<Step<Self>, Fault> {
        state.on_command(at, Command::Remove)
    }

    /// A rollback can restore the deployments of the history.
    fn unneeded(id: DeploymentId, state: &State, world: &World) -> Result<Option<Change>, Fault> {
        let history = world.store.get::<DeploymentHistory>(&state.service())?;
        let restores = history.is_some_and(|history| history.latest.contains(&id));
        Ok((!restores).then(Change::new))
    }

    fn events(_: &Moment<Self>, before: Option<&State>, after: &State, _: &World) -> Vec<Event> {
        let deployment = &after.deployment;
        if before.is_some_and(|before| before.deployment.state == deployment.state) {
            return Vec::new();
        }
        let kind = match deployment.state {
            S::Queued | S::Deploying | S::Verifying | S::Superseded | S::Cancelling => {
                return Vec::new();
            }
            S::Building => EventType::DeploymentStarted,
            S::Live => EventType::DeploymentLive,
            S::Failed => EventType::DeploymentFailed,
            S::Cancelled => EventType::DeploymentCancelled,
            S::RolledBack => EventType::DeploymentRolledBack,
        };
        vec![Event::new(kind, deployment.app_id, deployment)]
    }

    fn perform(
        effect: Effect,
        id: DeploymentId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, kept, world))
    }
}

impl Child for Deployments {
    fn parent(state: &State) -> Option<AppId> {
        Some(state.deployment.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

store::entries! {
    pub enum DeploymentIndex of Deployments {
        /// The deployments of one service that are under way or wait for their turn.
        Queue { service: String } = "lane",
    }
}

store::claims! {
    pub enum DeploymentClaim of Deployments {
        /// Held by the deployment of a service that is under way.
        Active { service: String } = "active",
    }
}
