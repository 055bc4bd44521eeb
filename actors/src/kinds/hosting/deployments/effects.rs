//! Performs the effects of a deployment.

use super::{
    build,
    rules::{Command, Deployments, Effect, Outcome, State},
};
use crate::{
    kinds::{
        hosting::{
            image_builds::quotas,
            instances::{
                self, Instance, Instances, RejectedRevision, ServiceChange,
                history::{Created, DeploymentHistory},
                secrets::missing_secrets,
            },
            progress_log::{self, say},
        },
        world::World,
    },
    ports::NotDone,
    runtime::resource::Retry,
};
use contract::{DeploymentId, Fault, deployments::StepName, instances::InstanceState};
use std::{sync::Arc, time::Duration};
use store::Snapshot;

/// How long the new container may take to become healthy.
const WELL_WITHIN: Duration = Duration::from_secs(5 * 60);

/// The pause before a deployment checks again whether its turn has come or its revision serves.
const POLL: Duration = Duration::from_millis(500);

pub(super) async fn perform(
    effect: Effect,
    id: DeploymentId,
    kept: Snapshot<Deployments>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let work = Work { id, state: &kept.state, world: &world };
    let outcome = match effect {
        Effect::AwaitTurn => work.await_turn(),
        Effect::Build => work.build().await,
        Effect::Offer => work.offer().await,
        Effect::Follow => work.follow(),
        Effect::Finish => work.finish().await,
        Effect::Undo => work.undo().await,
        Effect::Forget => work.forget().await,
    };
    if matches!(outcome, Ok(Outcome::Wait)) {
        world.ports.clock.sleep(POLL).await;
    }
    outcome
}

struct Work<'a> {
    id: DeploymentId,
    state: &'a State,
    world: &'a Arc<World>,
}

impl Work<'_> {
    fn say(&self, step: StepName, said: impl Into<String>) {
        say(self.world, self.id, step, [said.into()]);
    }

    /// The deployments of a service run one at a time, the oldest first. A deployment that builds
    /// an image also waits for its turn in the build queue.
    fn await_turn(&self) -> Result<Outcome, Retry> {
        let mut queue = self.world.store.oldest::<Deployments>(&self.state.queue(), None).keys();
        let is_first = queue.next().transpose()? == Some(self.id);
        let is_turn = is_first
            && (!self.state.is_built() || {
                let ticket = build::ticket(self.world, self.id, self.state.deployment.app_id)?;
                self.world.builds.is_turn(ticket, self.world.ports.clock.now())?
            });
        Ok(if is_turn { Outcome::Turn } else { Outcome::Wait })
    }

    async fn build(&self) -> Result<Outcome, Retry> {
        let instance = self.instance()?;
        let service = instance.as_ref().and_then(|instance| instance.service(self.state.role));
        match build::image(self.world, self.id, self.state, service).await {
            Ok(build::Image { reference, base }) => {
                self.say(StepName::Build, format!("the image is {reference}"));
                if self.state.is_built() {
                    let app = self.state.deployment.app_id;
                    quotas::measure_images(self.world, app)
                        .await
                        .map_err(|e| Retry(e.to_string()))?;
                }
                Ok(Outcome::Built { reference, replaces: self.replaces()?, base })
            }
            Err(NotDone::Refused(why)) => {
                self.say(StepName::Build, format!("failed: {why}"));
                Ok(Outcome::Failed(why))
            }
            Err(NotDone::Unreachable(why)) => {
                self.say(StepName::Build, format!("waiting: {why}"));
                Err(Retry(why))
            }
        }
    }

    /// What serves, if it is what the instance was created with.
    fn replaces(&self) -> Result<Option<Box<Created>>, Retry> {
        let deployment = &self.state.deployment;
        let key = DeploymentHistory::key(deployment.instance_id, deployment.target);
        if self.world.store.get::<DeploymentHistory>(&key)?.is_some() {
            return Ok(None);
        }
        let instance = self.instance()?;
        let part = instance.as_ref().and_then(|instance| instance.service(self.state.role));
        let live = part.map(|part| &part.live).filter(|live| live.deployment.is_none());
        Ok(live.map(|live| {
            Box::new(Created {
                definition: live.definition.clone(),
                image: live.image.clone(),
                env: live.env.clone(),
            })
        }))
    }

    async fn offer(&self) -> Result<Outcome, Retry> {
        let Some(instance) = self.instance()? else {
            return Ok(Outcome::Failed("the instance was deleted".into()));
        };
        // The deployment waits for an instance that starts, stops or is moved.
        use InstanceState::{Provisioning, Restarting, Starting, Stopping};
        let passing = [Provisioning, Starting, Stopping, Restarting].contains(&instance.state)
            || instance.moving.is_some();
        let Some(service) = instance.service(self.state.role) else {
            return Ok(Outcome::Failed("the service was removed".into()));
        };
        if passing && service.live.deployment != Some(self.id) {
            return Ok(Outcome::Wait);
        }
        let State { definition, image, env, .. } = self.state.clone();
        let id = self.state.deployment.instance_id;
        let template = definition.as_ref().map_or(service.live.template(), |d| &d.service);
        let secrets = missing_secrets(self.world, id, &instance, template)?;
        let change = ServiceChange { definition, image: Some(image), env };
        let command = instances::Command::Replace {
            role: self.state.role,
            change: Box::new(change),
            secrets,
            deployment: Some(self.id),
            within: WELL_WITHIN,
        };
        match self.world.to::<Instances>(id).ask(command).await {
            Ok(instance) => {
                self.say(StepName::Start, "a container comes up beside the one that serves");
                let service = instance.service(self.state.role);
                let made = service.and_then(|service| service.created_by(self.id));
                let made = made.map(|made| (Box::new(made.definition.clone()), made.env.clone()));
                Ok(Outcome::Offered(made))
            }
            Err(Fault::NotNow(why)) => Ok(Outcome::Failed(why)),
            Err(Fault::NotFound(_)) => Ok(Outcome::Failed("the instance was deleted".into())),
            Err(fault) => Err(fault.into()),
        }
    }

    fn instance(&self) -> Result<Option<Instance>, Retry> {
        let deployment = &self.state.deployment;
        let found = self.world.store.get::<Instances>(&deployment.instance_id)?;
        let is_there = |found: &Instance| !found.is_deleted() && found.app_id == deployment.app_id;
        Ok(found.map(|found| found.state.clone()).filter(is_there))
    }

    /// Reads from the instance's record what became of the revision.
    fn follow(&self) -> Result<Outcome, Retry> {
        let Some(instance) = self.instance()? else {
            return Ok(Outcome::Failed("the instance was deleted".into()));
        };
        let Some(service) = instance.service(self.state.role) else {
            return Ok(Outcome::Failed("the service was removed".into()));
        };
        if service.live.deployment == Some(self.id) {
            return self.live(&instance);
        }
        if service.candidate.as_ref().is_some_and(|c| c.is_of(self.id)) {
            return Ok(Outcome::Wait);
        }
        let rejected = service.rejected.as_ref().filter(|g| g.deployment == Some(self.id));
        let Some(RejectedRevision { why, log, .. }) = rejected else {
            return Ok(Outcome::Failed("the new container was given up".into()));
        };
        let lines = log.iter().map(|line| format!("| {line}"));
        say(self.world, self.id, StepName::Health, lines.chain([why.clone()]));
        Ok(Outcome::Failed(why.clone()))
    }

    /// The deployment's revision is live. In an instance that had failed, it became live before it
    /// was healthy.
    fn live(&self, instance: &Instance) -> Result<Outcome, Retry> {
        match instance.state {
            InstanceState::Running | InstanceState::Degraded => self.serves(),
            InstanceState::Failed => {
                let lines = instance.last_log.iter().map(|line| format!("| {line}"));
                say(self.world, self.id, StepName::Health, lines);
                let why = instance.last_error.clone();
                Ok(Outcome::Failed(why.unwrap_or_else(|| "the instance failed".into())))
            }
            InstanceState::Stopped => Ok(Outcome::Failed("the instance was stopped".into())),
            _ => Ok(Outcome::Wait),
        }
    }

    fn serves(&self) -> Result<Outcome, Retry> {
        self.say(StepName::Switch, "requests go to the new container");
        let deployment = &self.state.deployment;
        let key = DeploymentHistory::key(deployment.instance_id, deployment.target);
        let served = self.world.store.get::<DeploymentHistory>(&key)?;
        let before = served.and_then(|served| served.latest.front().copied());
        Ok(Outcome::Serves(before.filter(|before| *before != self.id)))
    }

    /// Tells the previous deployment, then waits until its container is removed.
    async fn finish(&self) -> Result<Outcome, Retry> {
        let deployment = &self.state.deployment;
        if let Some(before) = deployment.previous_deployment_id {
            let rolled_back = deployment.rollback_of == Some(before);
            let command = Command::Supersede { rolled_back };
            self.world.to::<Deployments>(before).ask_if_there(command).await?;
        }
        let draining = self.instance()?.is_some_and(|instance| {
            instance.service(self.state.role).is_some_and(|service| !service.retired.is_empty())
        });
        if draining {
            return Ok(Outcome::Wait);
        }
        self.say(StepName::Drain, "the container before is gone");
        Ok(Outcome::Finished { log_bytes: self.log_bytes().await? })
    }

    /// The instance handles Withdraw after an offer that is still queued, so its record is final
    /// after that. A deployment that serves already cannot be undone.
    async fn undo(&self) -> Result<Outcome, Retry> {
        let why = self.state.deployment.error.clone();
        let why = why.unwrap_or_else(|| "the deployment was cancelled".into());
        let command = instances::Command::Withdraw(self.id, why);
        self.world.to::<Instances>(self.state.deployment.instance_id).ask_if_there(command).await?;
        match self.left()? {
            Some(outcome) => Ok(outcome),
            None => Ok(Outcome::Undone { log_bytes: self.log_bytes().await? }),
        }
    }

    /// What becomes of what the instance has of the deployment; `None` if it has nothing any more.
    fn left(&self) -> Result<Option<Outcome>, Retry> {
        let Some(instance) = self.instance()? else { return Ok(None) };
        let Some(service) = instance.service(self.state.role) else { return Ok(None) };
        if service.live.deployment == Some(self.id) {
            let live = self.live(&instance)?;
            return Ok((!matches!(live, Outcome::Failed(_))).then_some(live));
        }
        let ours = service.candidate.as_ref().is_some_and(|c| c.is_of(self.id));
        Ok(ours.then_some(Outcome::Wait))
    }

    async fn log_bytes(&self) -> Result<u64, Retry> {
        Ok(progress_log::bytes(self.world, self.id).await?)
    }

    async fn forget(&self) -> Result<Outcome, Retry> {
        let gone = progress_log::forget(self.world, self.id).await?;
        Ok(if gone { Outcome::Forgotten } else { Outcome::Wait })
    }
}
