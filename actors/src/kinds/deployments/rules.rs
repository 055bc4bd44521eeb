//! The rules of a deployment:
//! `queued → building → deploying → verifying → live`, later `superseded` or `rolledBack`; `failed`,
//! `cancelling → cancelled`.
//!
//! The containers are the instance's. A deployment has an image made, offers it to the instance, and
//! follows what becomes of it: that the instance serves from the new container is written in the
//! instance's record, and that is the truth of the switch.

use super::history::{Created, DeploymentHistory, Earlier, Serving};
use crate::{
    kinds::instances::{Definition, ServiceImage},
    ports::sealed::Sealed,
    runtime::resource::{Child, Intent, Kept, Moment, Resource, Retry, Step, Unique},
    world::World,
};
use contract::{
    AppId, DeploymentId, Fault, Timestamp,
    deployments::{Deployment, DeploymentState, DeploymentStep, StepName, StepState},
    instances::Role,
    text::EnvName,
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use store::{Change, Entries};

/// The deployments.
#[derive(Debug, Clone, Copy)]
pub struct Deployments;

/// How long a deployment may take from its turn to the switch.
const WITHIN: Duration = Duration::from_secs(30 * 60);
/// How often it looks whether it is its turn, and what became of its container.
const POLL: Duration = Duration::from_millis(500);

/// What is kept of a deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What is shown.
    pub deployment: Deployment,
    /// Which service it is for.
    pub role: Role,
    /// What it sets for the service, as the instance keeps it. Until it is offered, nothing stands
    /// for what the service has by then.
    pub env: Option<BTreeMap<EnvName, Sealed>>,
    /// What the service becomes, where a version of the template says so. Until it is offered,
    /// nothing stands for what it is by then.
    #[serde(default)]
    pub definition: Option<Definition>,
    /// What it runs; its reference is settled by the build.
    pub image: ServiceImage,
    /// The end of a state that must end.
    pub deadline: Option<Timestamp>,
    /// Whether it is under way or waits for its turn. The deployments of one service run one after
    /// the other, in the order in which they were asked for.
    #[serde(rename = "in_lane")]
    pub in_queue: bool,
    /// The app is going, and the record with it.
    pub removing: bool,
    /// It has failed, and what was made is being removed. Until that is done, people see the state
    /// that it failed in.
    #[serde(default)]
    pub failing: bool,
    /// What it restores, where it is a rollback.
    #[serde(default)]
    pub restores: Option<Earlier>,
    /// What it takes the place of, where no deployment brought that.
    #[serde(default)]
    pub replaces: Option<Box<Created>>,
}

/// What can be asked of a deployment.
#[derive(Debug, Clone)]
pub enum Command {
    /// Somebody does not want it any more.
    Cancel,
    /// This one serves in its place; as its rollback, or not.
    Supersede {
        /// It was taken back.
        rolled_back: bool,
    },
    /// A state that must end has not.
    Overdue,
    /// Remove it with its app.
    Remove,
}

/// What a deployment does outside of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Look whether it is its turn.
    AwaitTurn,
    /// Have the image here.
    Build,
    /// Offer it to the instance.
    Offer,
    /// Look what became of it.
    Follow,
    /// Tell the one before, and wait until its container is gone.
    Finish,
    /// Take back what was made.
    Undo,
    /// Remove its lines.
    Forget,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Not yet.
    Wait,
    /// It is its turn.
    Turn,
    /// The image is here, under this reference; and what it is to take the place of, where no
    /// deployment brought that.
    Built(String, Option<Box<Created>>),
    /// The instance brings it up: as what, and with what set. None: it is gone already.
    Offered(Option<(Box<Definition>, BTreeMap<EnvName, Sealed>)>),
    /// The instance serves from it.
    Serves(Option<DeploymentId>),
    /// It will not do.
    Failed(String),
    /// Nothing is left of the one before.
    Finished,
    /// Nothing is left of it.
    Undone,
}

impl Resource for Deployments {
    const TIME_LIMIT: Duration = Duration::from_secs(35 * 60);
    type New = State;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(_: &Moment<Self>, state: State) -> Result<Step<Self>, Fault> {
        Ok(Step::put(state).intend(Intent::Now(Effect::AwaitTurn)))
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
        Entries::default().and_all(state.in_queue.then(|| state.queue()))
    }

    /// One of a service is under way at a time. Who is the oldest can change while the oldest is
    /// still being written; who holds this cannot.
    fn claims(state: &State) -> Vec<Unique<Self>> {
        let active = state.in_queue && state.deployment.state != S::Queued;
        let claim = DeploymentClaim::Active { service: state.service() };
        active.then(|| Unique::new(claim, || Fault::Stale)).into_iter().collect()
    }

    fn deadline(state: &State) -> Option<(Timestamp, Command)> {
        state.deadline.map(|at| (at, Command::Overdue))
    }

    fn perform(
        effect: Effect,
        id: DeploymentId,
        kept: Arc<Kept<Self>>,
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
    /// What deployments are found by.
    pub enum DeploymentIndex of Deployments {
        /// Those of one service that are under way or wait for their turn.
        Queue { service: String } = "lane",
    }
}

store::claims! {
    /// What no two deployments have in common.
    pub enum DeploymentClaim of Deployments {
        /// Being the one of a service that is under way.
        Active { service: String } = "active",
    }
}

use DeploymentState as S;

impl State {
    fn service(&self) -> String {
        DeploymentHistory::key(self.deployment.instance_id, self.deployment.target)
    }

    /// The index entry of all that are under way or wait for the same service. Who leaves it and
    /// who is first in it then are one change.
    pub fn queue(&self) -> DeploymentIndex {
        DeploymentIndex::Queue { service: self.service() }
    }

    /// Whether its image is built here, and was not yet.
    pub fn is_built(&self) -> bool {
        self.image.reference.is_none() && self.deployment.source.git.is_some()
    }

    /// Whether it has come to its end, or serves.
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
            Command::Remove | Command::Supersede { .. } | Command::Overdue if self.removing => {
                Ok(Step::keep())
            }
            Command::Cancel => match self.phase() {
                S::Queued => Ok(self.end(S::Cancelled, None, at)),
                S::Building | S::Deploying | S::Verifying => Ok(self.cancel()),
                S::Cancelling => Ok(Step::keep()),
                S::Live => Err(Fault::NotNow(
                    "this deployment serves already; go back with rollbackDeployment".into(),
                )),
                _ => Err(Fault::NotNow("this deployment has come to its end already".into())),
            },
            Command::Supersede { rolled_back } => {
                if self.deployment.state == S::Live {
                    self.deployment.state = if rolled_back { S::RolledBack } else { S::Superseded };
                    return Ok(Step::put(self));
                }
                Ok(Step::keep())
            }
            Command::Overdue => {
                if self.deadline.is_none_or(|deadline| at.now < deadline) {
                    return Ok(Step::keep());
                }
                Ok(match self.phase() {
                    S::Building | S::Deploying | S::Verifying => {
                        self.fail("it was not done within 30 minutes".into())
                    }
                    _ => {
                        self.deadline = None;
                        Step::put(self)
                    }
                })
            }
            Command::Remove => {
                self.removing = true;
                self.in_queue = false;
                Ok(Step::put(self).intend(Intent::Now(Effect::Forget)))
            }
        }
    }

    fn on_outcome(mut self, at: &Moment<Deployments>, outcome: Outcome) -> Step<Deployments> {
        if self.removing {
            return match outcome {
                Outcome::Finished => Step::remove(),
                _ => Step::keep().intend(Intent::After(POLL, Effect::Forget)),
            };
        }
        match (self.phase(), outcome) {
            (S::Queued, Outcome::Turn) => {
                self.enter(S::Building, StepName::Build, at);
                self.deadline = Some(at.now + WITHIN);
                Step::put(self).intend(Intent::Now(Effect::Build))
            }
            (S::Building, Outcome::Built(reference, replaces)) => {
                self.replaces = replaces;
                self.image.reference = Some(reference.clone());
                self.deployment.image_ref = Some(reference);
                self.enter(S::Deploying, StepName::Start, at);
                Step::put(self).intend(Intent::Now(Effect::Offer))
            }
            (S::Deploying, Outcome::Offered(made)) => {
                if let Some((definition, env)) = made {
                    (self.definition, self.env) = (Some(*definition), Some(env));
                }
                self.enter(S::Verifying, StepName::Health, at);
                Step::put(self).intend(Intent::Now(Effect::Follow))
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
                Step::put(self).intend(Intent::Now(Effect::Finish)).also(serves)
            }
            (_, Outcome::Finished) => {
                self.close(StepState::Succeeded, at);
                self.in_queue = false;
                Step::put(self).intend(Intent::None)
            }
            (S::Building | S::Deploying | S::Verifying, Outcome::Failed(why)) => self.fail(why),
            (S::Cancelling, Outcome::Undone) => match self.deployment.error.clone() {
                Some(why) => self.end(S::Failed, Some(why), at),
                None => self.end(S::Cancelled, None, at),
            },
            (state, Outcome::Wait) => {
                let effect = match state {
                    S::Queued => Effect::AwaitTurn,
                    S::Building => Effect::Build,
                    S::Deploying => Effect::Offer,
                    S::Verifying => Effect::Follow,
                    S::Cancelling => Effect::Undo,
                    _ => Effect::Finish,
                };
                Step::keep().intend(Intent::After(POLL, effect))
            }
            // the outcome of something that was overtaken
            _ => Step::keep(),
        }
    }

    /// Where it is on its way; one that fails goes the way of one that is cancelled.
    fn phase(&self) -> DeploymentState {
        if self.failing { S::Cancelling } else { self.deployment.state }
    }

    /// What was made is removed, and then it has failed.
    fn fail(mut self, why: String) -> Step<Deployments> {
        self.deployment.error = Some(why);
        self.failing = true;
        Step::put(self).intend(Intent::Now(Effect::Undo))
    }

    /// What was made is removed, and then it is cancelled.
    fn cancel(mut self) -> Step<Deployments> {
        self.deployment.state = S::Cancelling;
        Step::put(self).intend(Intent::Now(Effect::Undo))
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
        Step::put(self).intend(Intent::None)
    }

    fn enter(&mut self, state: DeploymentState, step: StepName, at: &Moment<Deployments>) {
        self.deployment.state = state;
        self.begin(step, at);
    }

    /// The step that was under way is done, and this one begins.
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
