//! Applies a command to the record. Pure.

use super::{
    commands::Command,
    reconcile::apply::START_WITHIN,
    record::Instance,
    rules::{Instances, PROVISION_WITHIN},
    service::{Candidate, Service, ServiceChange, VolumeUse},
};
use crate::{
    ports::sealed::Sealed,
    runtime::{
        ref_count::{RefCount, RefCountDelta},
        resource::{Moment, Row, Step},
    },
};
use contract::{
    DeploymentId, Fault, Name, Timestamp,
    instances::{DesiredState, InstanceState, Resources, Role},
    text::EnvName,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use store::Change;

/// How long after its deadline a starting instance may still fail by its plan, which knows the
/// reason.
const OVERDUE: Duration = Duration::from_secs(30);
/// The deadline of a deletion. A deletion that is overdue continues.
const DELETE_WITHIN: Duration = Duration::from_secs(10 * 60);
/// Why a deleted instance is not brought back without an app.
const GONE: &str = "is required: the app of this instance was deleted. Name another app";
/// How long an updated server may take to become healthy.
const UPDATE_WITHIN: Duration = Duration::from_secs(5 * 60);

impl Instance {
    pub(super) fn on_command(
        self,
        at: &Moment<Instances>,
        command: Command,
    ) -> Result<Step<Instances>, Fault> {
        use InstanceState as S;
        let now = at.now;
        self.may_change(&command)?;
        match command {
            Command::Move { to } => self.begin_move(to, now),
            Command::Recover { to, restore } => self.recover(to, restore, now),
            Command::LoseEngine(engine) => Ok(self.lose_engine(at.id, engine, now)),
            Command::Start { accept_data_loss } => {
                self.may_run()?;
                let mut instance = self;
                if accept_data_loss {
                    instance.forget_volumes();
                }
                match instance.state {
                    S::Stopped | S::Stopping => Ok(instance.begin_start(now)),
                    S::Failed => Ok(instance.begin_stop(S::Restarting, DesiredState::Running, now)),
                    _ => Ok(Step::keep()),
                }
            }
            Command::Stop => match self.state {
                S::Stopped | S::Stopping => Ok(Step::keep()),
                _ => Ok(self.begin_stop(S::Stopping, DesiredState::Stopped, now)),
            },
            Command::Restart => match self.state {
                S::Stopped => {
                    self.may_run()?;
                    Ok(self.begin_start(now))
                }
                // Restart also stops what hangs.
                S::Running | S::Degraded | S::Failed => {
                    Ok(self.begin_stop(S::Restarting, DesiredState::Running, now))
                }
                S::Restarting => Ok(Step::keep()),
                _ => Err(self.not_now("restart it when it is running, stopped or failed")),
            },
            Command::Leave(organization) => {
                let mut instance = self;
                instance.left_to = Some(organization);
                instance.on_command(at, Command::Delete { data: false })
            }
            Command::Delete { data } => Ok(self.begin_delete(data, now)),
            Command::Undelete { .. } => Ok(Step::keep()),
            Command::Update { name, resources, env } => self.update(name, resources, env, now),
            Command::Observe { lost } => Ok(self.observe(&lost)),
            Command::Advise(advisories) => Ok(self.advise(advisories)),
            Command::Measure(bytes) => Ok(self.measured(bytes)),
            Command::Hold(why) => Ok(self.hold(why, now)),
            Command::Release => Ok(self.release()),
            Command::AwaitRoom => Ok(self.await_room(now)),
            Command::FindRoom => Ok(self.find_room()),
            Command::AddService { service, secrets } => {
                self.with(secrets).add_service(*service, now)
            }
            Command::Replace { role, change, secrets, deployment, within } => {
                self.with(secrets).replace(role, *change, deployment, (now, within))
            }
            Command::Withdraw(deployment, why) => self.withdraw(deployment, why),
        }
    }

    fn begin_delete(mut self, data: bool, now: Timestamp) -> Step<Instances> {
        self.stay("it was deleted", now);
        let within = self.stop_within() + DELETE_WITHIN;
        self.delete_data = data;
        self.state = InstanceState::Deleting;
        self.desired = DesiredState::Deleted;
        self.deadline = Some(now + within);
        self.updated_at = now;
        self.fail_candidates("the instance is deleted");
        // Deletion needs no template, so the template may be deleted now.
        let key = self.template_id.to_string();
        let unused = Change::new().merge::<RefCount>(&key, RefCountDelta::Subtract(1));
        Step::put(self).anew(Duration::ZERO).also(unused)
    }

    /// A deleted instance accepts only Delete with data, Leave and Undelete while its data is kept, and
    /// what was found out. One that may not run comes back stopped.
    pub(super) fn on_command_when_deleted(
        mut self,
        at: &Moment<Instances>,
        command: Command,
    ) -> Result<Step<Instances>, Fault> {
        Ok(match command {
            Command::Delete { data: true } if !self.delete_data => {
                self.delete_data = true;
                self.state = InstanceState::Deleting;
                self.deadline = Some(at.now + DELETE_WITHIN);
                Step::put(self).anew(Duration::ZERO)
            }
            Command::Leave(organization) if !self.delete_data => {
                self.left_to = Some(organization);
                Step::put(self)
            }
            Command::Undelete { .. } if self.delete_data => {
                return Err(Fault::NotFound(Instances::NOUN));
            }
            Command::Undelete { .. } if self.state == InstanceState::Deleting => {
                return Err(self.not_now("bring it back when its containers are removed"));
            }
            Command::Undelete { app: None, .. } if self.left_to.is_some() => {
                return Err(Fault::invalid("appId", GONE));
            }
            Command::Undelete { template, app } => {
                let key = self.template_id;
                let mut also = Change::new()
                    .require(&key, &template)
                    .merge::<RefCount>(&key.to_string(), RefCountDelta::Add(1));
                if let Some((id, seen)) = app {
                    also = also.require(&id, &seen);
                    if id != self.app_id {
                        // Its deployments and backups belong to the app that it leaves.
                        also = also.and(Instances::without_history(at.id));
                    }
                    (self.app_id, self.project_id) = (id, seen.state.project_id);
                    self.left_to = None;
                }
                match self.may_run() {
                    Err(_) => {
                        self.begin_stop(InstanceState::Stopping, DesiredState::Stopped, at.now)
                    }
                    Ok(()) => self.begin_start(at.now),
                }
                .also(also)
            }
            Command::LoseEngine(engine) => self.lose_engine(at.id, engine, at.now),
            Command::Measure(bytes) => self.measured(bytes),
            Command::Release => self.release(),
            Command::FindRoom => self.find_room(),
            _ => Step::keep(),
        })
    }

    pub(super) fn begin_start(mut self, now: Timestamp) -> Step<Instances> {
        self.desired = DesiredState::Running;
        self.crashes.clear();
        (self.last_error, self.coming_up) = (None, false);
        self.last_log.clear();
        self.start(now);
        self.updated_at = now;
        Step::put(self).anew(Duration::ZERO)
    }

    pub(super) fn begin_stop(
        mut self,
        state: InstanceState,
        desired: DesiredState,
        now: Timestamp,
    ) -> Step<Instances> {
        self.stop_as(state, desired, now);
        Step::put(self).anew(Duration::ZERO)
    }

    pub(super) fn stop_as(&mut self, state: InstanceState, desired: DesiredState, now: Timestamp) {
        self.desired = desired;
        self.state = state;
        self.coming_up = false;
        self.copy_anew();
        self.deadline = Some(now + self.stop_within());
        self.updated_at = now;
        for service in &mut self.services {
            service.bring_in();
        }
        self.crashes.clear();
        self.fail_candidates("the instance was stopped meanwhile");
    }

    /// A volume that is gone is made anew. One that is there is found again.
    pub(super) fn forget_volumes(&mut self) {
        for service in &mut self.services {
            service.volume = VolumeUse::None;
        }
    }

    /// The containers may have changed, and those of the `lost` services are not at the recorded ports.
    fn observe(mut self, lost: &[Role]) -> Step<Instances> {
        for service in self.services.iter_mut().filter(|s| lost.contains(&s.role)) {
            service.live.port = None;
        }
        use InstanceState::{Degraded, Failed, Running, Stopped};
        let is_at_rest = matches!(self.state, Running | Degraded | Stopped | Failed);
        let is_same = lost.is_empty() && (self.observing || !is_at_rest);
        self.observing |= is_at_rest;
        let step = if is_same { Step::keep() } else { Step::put(self) };
        // What happened now may have been overlooked by the reconciliation under way.
        if is_at_rest { step.anew(Duration::ZERO) } else { step }
    }

    fn advise(mut self, advisories: BTreeSet<String>) -> Step<Instances> {
        if self.advised == advisories {
            return Step::keep();
        }
        self.advised = advisories;
        Step::put(self)
    }

    fn measured(mut self, bytes: u64) -> Step<Instances> {
        if self.disk_bytes == Some(bytes) {
            return Step::keep();
        }
        self.disk_bytes = Some(bytes);
        Step::put(self)
    }

    /// The deadline passed. An instance that starts fails. An instance that stops reconciles at
    /// once, without its pause. An instance that failed after crashes starts again.
    pub(super) fn overdue(mut self, now: Timestamp) -> Step<Instances> {
        use InstanceState as S;
        if self.deadline.is_none_or(|deadline| now < deadline) {
            self.forget_due(now);
            return Step::put(self).anew(Duration::ZERO);
        }
        if self.moving.as_ref().is_some_and(|moving| moving.copying.is_some()) {
            self.stay("the copy of a volume took too long", now);
            return Step::put(self).anew(Duration::ZERO);
        }
        let late = self.deadline.is_some_and(|deadline| now >= deadline + OVERDUE);
        match self.state {
            S::Deleted | S::Deleting => {
                self.delete_data |= self.state == S::Deleted;
                self.state = S::Deleting;
                self.deadline = Some(now + DELETE_WITHIN);
                Step::put(self).anew(Duration::ZERO)
            }
            S::Provisioning | S::Starting | S::Restarting if self.awaits_build() => Step::keep(),
            // The plan fails the instance as well, and knows which service is late.
            S::Starting if !late => Step::keep(),
            S::Restarting if self.coming_up && !late => Step::keep(),
            S::Provisioning | S::Starting => {
                let why = "it did not come up in time";
                (self.state, self.deadline, self.updated_at) = (S::Failed, None, now);
                self.last_error = Some(why.into());
                self.fail_candidates(why);
                // Containers of candidates are still to be removed.
                Step::put(self).anew(Duration::ZERO)
            }
            S::Failed => {
                self.start(now);
                self.updated_at = now;
                Step::put(self).anew(Duration::ZERO)
            }
            _ => {
                self.deadline = Some(now + START_WITHIN.min(self.stop_within()));
                Step::put(self).anew(Duration::ZERO)
            }
        }
    }

    fn with(mut self, secrets: BTreeMap<String, Sealed>) -> Self {
        for (name, secret) in secrets {
            self.secrets.entry(name).or_insert(secret);
        }
        self
    }

    fn add_service(mut self, service: Service, now: Timestamp) -> Result<Step<Instances>, Fault> {
        if self.service(service.role).is_some() {
            return Err(Fault::Stale);
        }
        let mut service = service;
        if matches!(self.state, InstanceState::Running | InstanceState::Degraded) {
            // What runs goes on, without the service until its first container is healthy.
            let revision = service.next_revision(ServiceChange::default(), None);
            let deadline = now + PROVISION_WITHIN;
            service.candidate = Some(Candidate { revision, deadline, failed: None });
            service.left_out = true;
        }
        self.services.push(service);
        self.services.sort_by_key(|service| service.role);
        self.updated_at = now;
        Ok(Step::put(self).anew(Duration::ZERO))
    }

    fn replace(
        mut self,
        role: Role,
        change: ServiceChange,
        deployment: Option<DeploymentId>,
        (now, within): (Timestamp, Duration),
    ) -> Result<Step<Instances>, Fault> {
        let state = self.state;
        let service = self.service_mut(role).ok_or(Fault::NotFound("service of this instance"))?;
        let asked_before = |wants: Option<DeploymentId>| wants.is_some() && wants == deployment;
        let rejected = service.rejected.as_ref().and_then(|rejected| rejected.deployment);
        if asked_before(service.live.deployment) || asked_before(rejected) {
            return Ok(Step::keep());
        }
        match state {
            // Nothing serves, so the service is replaced at once, without a candidate.
            InstanceState::Failed => {
                let revision = service.next_revision(change, deployment);
                self.make_live(role, revision, now);
                return Ok(self.begin_stop(InstanceState::Restarting, DesiredState::Running, now));
            }
            InstanceState::Running | InstanceState::Degraded => {}
            _ => return Err(self.not_now("deploy to it when it runs")),
        }
        match &service.candidate {
            Some(candidate) if asked_before(candidate.revision.deployment) => {
                return Ok(Step::keep());
            }
            Some(_) => {
                return Err(Fault::NotNow(format!(
                    "another revision of the {} is starting; wait for it",
                    role.label()
                )));
            }
            None => {}
        }
        let revision = service.next_revision(change, deployment);
        let deadline = now + within;
        service.candidate = Some(Candidate { revision, deadline, failed: None });
        Ok(Step::put(self).anew(Duration::ZERO))
    }

    /// New resources or variables need a new revision of the server.
    fn update(
        mut self,
        name: Option<Name>,
        resources: Option<Resources>,
        env: Option<BTreeMap<EnvName, Sealed>>,
        now: Timestamp,
    ) -> Result<Step<Instances>, Fault> {
        self.name = name.unwrap_or(self.name);
        let resized = resources.is_some_and(|resources| resources != self.resources);
        self.resources = resources.unwrap_or(self.resources);
        self.updated_at = now;
        if !resized && env.is_none() {
            return Ok(Step::put(self));
        }
        let change = ServiceChange { env, ..ServiceChange::default() };
        if self.state != InstanceState::Stopped {
            return self.replace(Role::Server, change, None, (now, UPDATE_WITHIN));
        }
        let service = self.service_mut(Role::Server).ok_or(Fault::NotFound("server"))?;
        let revision = service.next_revision(change, None);
        self.make_live(Role::Server, revision, now);
        Ok(Step::put(self).anew(Duration::ZERO))
    }

    fn withdraw(mut self, deployment: DeploymentId, why: String) -> Result<Step<Instances>, Fault> {
        let candidates = self.services.iter_mut().filter_map(|service| service.candidate.as_mut());
        let mut wanted = candidates.filter(|candidate| candidate.is_of(deployment));
        let Some(candidate) = wanted.next() else { return Ok(Step::keep()) };
        candidate.failed.get_or_insert((why, Vec::new()));
        Ok(Step::put(self).anew(Duration::ZERO))
    }

    pub(super) fn not_now(&self, instead: &str) -> Fault {
        Fault::NotNow(format!("this instance is {}; {instead}", self.state_name()))
    }
}
