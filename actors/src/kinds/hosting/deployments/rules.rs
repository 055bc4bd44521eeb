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
            history::{Created, DeploymentHistory, Earlier, Serving},
        },
        people::apps::Apps,
        world::World,
    },
    ports::sealed::Sealed,
    runtime::{
        entries::{InState, wire_name},
        event::Event,
        resource::{Child, Moment, Resource, Retry, Step, Unique, Work},
    },
};
use contract::{
    AppId, DeploymentId, Fault, Timestamp,
    deployments::{Deployment, DeploymentState, DeploymentStep, StepName, StepState},
    instances::Role,
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
    /// The previous container is removed; after `Forget`, the log lines.
    Finished,
    /// Nothing of the deployment is left to undo.
    Undone,
}

fn limit_of_earlier_versions() -> u32 {
    30 * 60
}

impl State {
    fn limit(&self) -> Duration {
        Duration::from_secs(self.limit_seconds.into())
    }
}

impl Resource for Deployments {
    const INDEX: u16 = 3;
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

use DeploymentState as S;

impl State {
    fn service(&self) -> String {
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

    fn on_command(
        mut self,
        at: &Moment<Deployments>,
        command: Command,
    ) -> Result<Step<Deployments>, Fault> {
        match command {
            Command::Remove | Command::Supersede { .. } if self.removing => Ok(Step::keep()),
            Command::Cancel => match self.phase() {
                S::Queued => Ok(self.end(S::Cancelled, None, at)),
                S::Building | S::Deploying | S::Verifying => Ok(self.cancel()),
                S::Cancelling => Ok(Step::keep()),
                S::Live => Err(Fault::NotNow(
                    "this deployment serves already; go back with rollbackDeployment".into(),
                )),
                state => Err(Fault::NotNow(format!(
                    "this deployment is {}, so there is nothing to cancel",
                    wire_name(state)
                ))),
            },
            Command::Supersede { rolled_back } => {
                if self.deployment.state == S::Live {
                    self.deployment.state = if rolled_back { S::RolledBack } else { S::Superseded };
                    return Ok(Step::put(self));
                }
                Ok(Step::keep())
            }
            Command::Remove => {
                self.removing = true;
                self.in_queue = false;
                Ok(Step::put(self))
            }
        }
    }

    fn overdue(mut self) -> Step<Deployments> {
        match self.phase() {
            S::Building | S::Deploying | S::Verifying => {
                let limit = contract::time::span(self.limit().as_secs());
                self.fail(format!("it was not done within {limit}"))
            }
            _ => {
                self.deadline = None;
                Step::put(self)
            }
        }
    }

    fn on_outcome(mut self, at: &Moment<Deployments>, outcome: Outcome) -> Step<Deployments> {
        if self.removing {
            return match outcome {
                Outcome::Finished => Step::remove(),
                _ => Step::keep(),
            };
        }
        match (self.phase(), outcome) {
            (S::Queued, Outcome::Turn) => {
                self.enter(S::Building, StepName::Build, at);
                self.deadline = Some(at.now + self.limit());
                Step::put(self)
            }
            (S::Building, Outcome::Built { reference, replaces, base }) => {
                self.replaces = replaces;
                self.base = base.or(self.base);
                self.image.reference = Some(reference.clone());
                self.deployment.image_ref = Some(reference);
                self.enter(S::Deploying, StepName::Start, at);
                Step::put(self)
            }
            (S::Deploying, Outcome::Offered(made)) => {
                if let Some((definition, env)) = made {
                    (self.definition, self.env) = (Some(*definition), Some(env));
                }
                self.enter(S::Verifying, StepName::Health, at);
                Step::put(self)
            }
            (S::Verifying | S::Cancelling, Outcome::Serves(previous)) => {
                self.enter(S::Live, StepName::Switch, at);
                self.begin(StepName::Drain, at);
                self.failing = false;
                self.deployment.error = None;
                self.deployment.previous_deployment_id = previous;
                self.deployment.finished_at = Some(at.now);
                self.deadline = None;
                let serving = Serving { id: at.id, created: self.replaces.take() };
                let serves =
                    Change::new().merge::<DeploymentHistory>(&self.service(), Some(serving));
                Step::put(self).also(serves)
            }
            (_, Outcome::Finished) => {
                self.close(StepState::Succeeded, at);
                self.in_queue = false;
                Step::put(self)
            }
            (S::Building | S::Deploying | S::Verifying, Outcome::Failed(why)) => self.fail(why),
            (S::Cancelling, Outcome::Undone) => match self.deployment.error.clone() {
                Some(why) => self.end(S::Failed, Some(why), at),
                None => self.end(S::Cancelled, None, at),
            },
            // What has not come yet, and a late outcome of an effect that was replaced.
            _ => Step::keep(),
        }
    }

    /// The state that decides: a deployment that fails is undone like one that is cancelled.
    fn phase(&self) -> DeploymentState {
        if self.failing { S::Cancelling } else { self.deployment.state }
    }

    /// Undoes the deployment; its state is then `failed`.
    fn fail(mut self, why: String) -> Step<Deployments> {
        self.deployment.error = Some(why);
        self.failing = true;
        Step::put(self)
    }

    /// Undoes the deployment; its state is then `cancelled`.
    fn cancel(mut self) -> Step<Deployments> {
        self.deployment.state = S::Cancelling;
        Step::put(self)
    }

    fn end(
        mut self,
        state: DeploymentState,
        why: Option<String>,
        at: &Moment<Deployments>,
    ) -> Step<Deployments> {
        let ended = if state == S::Failed { StepState::Failed } else { StepState::Skipped };
        self.close(ended, at);
        for step in self.deployment.steps.iter_mut().filter(|s| s.state == StepState::Pending) {
            step.state = StepState::Skipped;
        }
        self.deployment.state = state;
        self.deployment.error = why;
        self.deployment.finished_at = Some(at.now);
        self.deadline = None;
        self.in_queue = false;
        self.failing = false;
        self.replaces = None;
        Step::put(self)
    }

    fn enter(&mut self, state: DeploymentState, step: StepName, at: &Moment<Deployments>) {
        self.deployment.state = state;
        self.begin(step, at);
    }

    /// Ends the step that runs, and begins this one.
    fn begin(&mut self, step: StepName, at: &Moment<Deployments>) {
        self.close(StepState::Succeeded, at);
        if let Some(step) = self.deployment.steps.iter_mut().find(|s| s.name == step) {
            step.state = StepState::Running;
            step.started_at = Some(at.now);
        }
    }

    fn close(&mut self, ended: StepState, at: &Moment<Deployments>) {
        let running = |step: &&mut DeploymentStep| step.state == StepState::Running;
        if let Some(step) = self.deployment.steps.iter_mut().find(running) {
            step.state = ended;
            step.finished_at = Some(at.now);
        }
    }
}
