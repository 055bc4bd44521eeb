//! The transitions of a deployment.

use super::rules::{Command, Deployments, Outcome, State};
use crate::{
    kinds::hosting::instances::history::{DeploymentHistory, Serving},
    runtime::{
        entries::wire_name,
        resource::{Moment, Step},
    },
};
use contract::{
    Fault,
    deployments::{DeploymentState as S, DeploymentStep, StepName, StepState},
};
use store::Change;

impl State {
    pub(super) fn on_command(
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

    pub(super) fn overdue(mut self) -> Step<Deployments> {
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

    pub(super) fn on_outcome(
        mut self,
        at: &Moment<Deployments>,
        outcome: Outcome,
    ) -> Step<Deployments> {
        if self.removing {
            return match outcome {
                Outcome::Forgotten => Step::remove(),
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
            (_, Outcome::Finished { log_bytes }) => {
                self.log_bytes = log_bytes;
                self.close(StepState::Succeeded, at);
                self.in_queue = false;
                Step::put(self)
            }
            (S::Building | S::Deploying | S::Verifying, Outcome::Failed(why)) => self.fail(why),
            (S::Cancelling, Outcome::Undone { log_bytes }) => {
                self.log_bytes = log_bytes;
                match self.deployment.error.clone() {
                    Some(why) => self.end(S::Failed, Some(why), at),
                    None => self.end(S::Cancelled, None, at),
                }
            }
            // What has not come yet, and a late outcome of an effect that was replaced.
            _ => Step::keep(),
        }
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

    fn end(mut self, state: S, why: Option<String>, at: &Moment<Deployments>) -> Step<Deployments> {
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

    fn enter(&mut self, state: S, step: StepName, at: &Moment<Deployments>) {
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
