//! What becomes of an instance when something is asked of it. Pure.

use super::{
    reconcile::apply::START_WITHIN,
    record::{Candidate, Instance, Next, Part},
    rules::{Command, Effect, Instances},
};
use crate::{
    ports::sealed::Sealed,
    runtime::{
        ref_count::{Uses, UsesDelta},
        resource::{Intent, Moment, Step},
    },
};
use contract::{
    DeploymentId, Fault, Timestamp,
    instances::{DesiredState, InstanceState, Role},
};
use std::{collections::BTreeMap, time::Duration};
use store::Change;

/// How long after its end a state is ended from outside.
const OVERDUE: Duration = Duration::from_secs(30);
/// How long a deletion may take before somebody should look at it. It goes on for as long as it
/// takes.
const DELETE_WITHIN: Duration = Duration::from_secs(10 * 60);

impl Instance {
    pub(super) fn on_command(
        self,
        at: &Moment<Instances>,
        command: Command,
    ) -> Result<Step<Instances>, Fault> {
        use InstanceState as S;
        let now = at.now;
        match command {
            Command::Start => match self.state {
                S::Stopped | S::Stopping => Ok(self.begin_start(now)),
                S::Failed => Ok(self.begin_stop(S::Restarting, DesiredState::Running, now)),
                _ => Ok(Step::keep()),
            },
            Command::Stop => match self.state {
                S::Stopped | S::Stopping => Ok(Step::keep()),
                _ => Ok(self.begin_stop(S::Stopping, DesiredState::Stopped, now)),
            },
            Command::Restart => match self.state {
                S::Stopped => Ok(self.begin_start(now)),
                // What hangs is stopped as well.
                S::Running | S::Degraded | S::Failed => {
                    Ok(self.begin_stop(S::Restarting, DesiredState::Running, now))
                }
                S::Restarting => Ok(Step::keep()),
                _ => Err(self.not_now("restart it when it has come to rest")),
            },
            Command::Delete { data } => {
                let within = self.stop_within() + DELETE_WITHIN;
                let mut going = self;
                going.delete_data = data;
                going.state = S::Deleting;
                going.desired = DesiredState::Deleted;
                going.deadline = Some(now + within);
                going.updated_at = now;
                going.drop_candidates("the instance is deleted");
                // From now on its template may go, too: what is left to do needs no template.
                let key = going.template_id.to_string();
                let unused = Change::new().merge::<Uses>(&key, UsesDelta::Less(1));
                Ok(Step::put(going).intend(Intent::Now(Effect::Reconcile)).also(unused))
            }
            Command::Look(lost) => match self.state {
                S::Running | S::Degraded | S::Stopped | S::Failed => Ok(self.look(&lost)),
                _ => Ok(Step::keep()),
            },
            Command::Overdue => self.overdue(now),
            Command::Extend { part, secrets } => self.with(secrets).extend(*part, now),
            Command::Replace { role, next, secrets, deployment, within } => {
                self.with(secrets).replace(role, *next, deployment, (now, within))
            }
            Command::Schedule(database, schedule) => {
                let mut instance = self;
                match schedule {
                    Some(schedule) => instance.schedules.insert(database, schedule),
                    None => instance.schedules.remove(&database),
                };
                Ok(Step::put(instance))
            }
            Command::Advance { database, from, to } => {
                let mut instance = self;
                match instance.schedules.get_mut(&database) {
                    Some(schedule) if schedule.next_at == from => schedule.next_at = to,
                    _ => return Ok(Step::keep()),
                }
                Ok(Step::put(instance))
            }
            Command::Withdraw(deployment, why) => self.withdraw(deployment, why),
        }
    }

    /// A deleted instance accepts only Delete, which may take its data as well.
    pub(super) fn on_command_when_deleted(
        mut self,
        at: &Moment<Instances>,
        command: Command,
    ) -> Step<Instances> {
        match command {
            Command::Delete { data: true } if !self.delete_data => {
                self.delete_data = true;
                self.state = InstanceState::Deleting;
                self.deadline = Some(at.now + DELETE_WITHIN);
                Step::put(self).intend(Intent::Now(Effect::Reconcile))
            }
            Command::Overdue if self.deadline.is_some_and(|deadline| at.now >= deadline) => {
                self.delete_data |= self.state == InstanceState::Deleted;
                self.state = InstanceState::Deleting;
                self.deadline = Some(at.now + DELETE_WITHIN);
                Step::put(self).intend(Intent::Now(Effect::Reconcile))
            }
            _ => Step::keep(),
        }
    }

    fn begin_start(mut self, now: Timestamp) -> Step<Instances> {
        self.desired = DesiredState::Running;
        self.crashes.clear();
        (self.last_error, self.coming_up) = (None, false);
        self.last_log.clear();
        self.start(now);
        self.updated_at = now;
        Step::put(self).intend(Intent::Now(Effect::Reconcile))
    }

    fn begin_stop(
        mut self,
        state: InstanceState,
        desired: DesiredState,
        now: Timestamp,
    ) -> Step<Instances> {
        self.desired = desired;
        self.state = state;
        self.coming_up = false;
        self.deadline = Some(now + self.stop_within());
        self.updated_at = now;
        for part in &mut self.parts {
            part.left_out = false;
        }
        // Who asks for it to run has seen why it did not.
        self.crashes.clear();
        self.drop_candidates("the instance was stopped meanwhile");
        Step::put(self).intend(Intent::Now(Effect::Reconcile))
    }

    fn look(mut self, lost: &[Role]) -> Step<Instances> {
        let step = if lost.is_empty() {
            Step::keep()
        } else {
            let parts = self.parts.iter_mut().filter(|part| lost.contains(&part.role()));
            parts.for_each(|part| part.live.port = None);
            Step::put(self)
        };
        step.intend(Intent::Now(Effect::Reconcile))
    }

    /// The time of a state is over. What should have come up has failed; what should go is asked to
    /// go once more, whatever its owner is waiting for; what failed for a while is tried again.
    fn overdue(mut self, now: Timestamp) -> Result<Step<Instances>, Fault> {
        use InstanceState as S;
        // Time limits stand still while the engine is away.
        if self.away_since.is_some() || self.deadline.is_none_or(|deadline| now < deadline) {
            return Ok(Step::keep());
        }
        let late = self.deadline.is_some_and(|deadline| now >= deadline + OVERDUE);
        Ok(match self.state {
            // Its own look says more about why; it comes before that.
            S::Starting if !late => Step::keep(),
            S::Restarting if self.coming_up && !late => Step::keep(),
            S::Provisioning | S::Starting => {
                let why = "it did not come up in time";
                (self.state, self.deadline, self.updated_at) = (S::Failed, None, now);
                self.last_error = Some(why.into());
                self.drop_candidates(why);
                // What is left of candidates goes.
                let next =
                    if self.is_at_work() { Intent::Now(Effect::Reconcile) } else { Intent::None };
                Step::put(self).intend(next)
            }
            S::Failed => {
                self.start(now);
                self.updated_at = now;
                Step::put(self).intend(Intent::Now(Effect::Reconcile))
            }
            _ => {
                self.deadline = Some(now + START_WITHIN.min(self.stop_within()));
                Step::put(self).intend(Intent::Now(Effect::Reconcile))
            }
        })
    }

    fn with(mut self, secrets: BTreeMap<String, Sealed>) -> Self {
        for (name, secret) in secrets {
            self.secrets.entry(name).or_insert(secret);
        }
        self
    }

    fn extend(mut self, part: Part, now: Timestamp) -> Result<Step<Instances>, Fault> {
        if self.part(part.role()).is_some() {
            return Err(Fault::Stale);
        }
        self.parts.push(part);
        self.parts.sort_by_key(Part::role);
        self.updated_at = now;
        let running = matches!(self.state, InstanceState::Running | InstanceState::Degraded);
        if running {
            self.start(now);
        }
        let next = if self.is_at_work() { Intent::Now(Effect::Reconcile) } else { Intent::Keep };
        Ok(Step::put(self).intend(next))
    }

    fn replace(
        mut self,
        role: Role,
        next: Next,
        deployment: Option<DeploymentId>,
        (now, within): (Timestamp, Duration),
    ) -> Result<Step<Instances>, Fault> {
        let state = self.state;
        let part = self.part_mut(role).ok_or(Fault::NotFound("service of this instance"))?;
        let asked_before = |wants: Option<DeploymentId>| wants.is_some() && wants == deployment;
        let given_up = part.given_up.as_ref().and_then(|given_up| given_up.deployment);
        if asked_before(part.live.deployment) || asked_before(given_up) {
            return Ok(Step::keep());
        }
        // Where nothing serves, there is nothing to stand beside.
        let instead = match state {
            InstanceState::Failed => true,
            InstanceState::Running | InstanceState::Degraded => part.left_out,
            _ => return Err(self.not_now("deploy to it when it runs")),
        };
        if instead {
            let next = part.succeed(next, deployment);
            self.put_in_place(role, next, now);
            return Ok(match state {
                InstanceState::Failed => {
                    self.begin_stop(InstanceState::Restarting, DesiredState::Running, now)
                }
                _ => {
                    self.start(now);
                    Step::put(self).intend(Intent::Now(Effect::Reconcile))
                }
            });
        }
        match &part.candidate {
            // asked for twice by the same one
            Some(candidate) if asked_before(candidate.next.deployment) => {
                return Ok(Step::keep());
            }
            Some(_) => {
                return Err(Fault::NotNow(format!(
                    "another container of the {} is on its way up; wait for it",
                    role.label()
                )));
            }
            None => {}
        }
        let next = part.succeed(next, deployment);
        let deadline = now + within;
        part.candidate = Some(Candidate { next, deadline, failed: None });
        Ok(Step::put(self).intend(Intent::Now(Effect::Reconcile)))
    }

    fn withdraw(mut self, deployment: DeploymentId, why: String) -> Result<Step<Instances>, Fault> {
        let candidates = self.parts.iter_mut().filter_map(|part| part.candidate.as_mut());
        let mut wanted = candidates.filter(|candidate| candidate.is_of(deployment));
        let Some(candidate) = wanted.next() else { return Ok(Step::keep()) };
        candidate.failed.get_or_insert((why, Vec::new()));
        Ok(Step::put(self).intend(Intent::Now(Effect::Reconcile)))
    }

    /// Why it cannot be done now.
    fn not_now(&self, instead: &str) -> Fault {
        let state = format!("{:?}", self.state).to_lowercase();
        Fault::NotNow(format!("this instance is {state}; {instead}"))
    }
}
