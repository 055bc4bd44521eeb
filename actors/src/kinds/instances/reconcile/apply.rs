//! What becomes of an instance's record when a look, and what was done after it, came to an end.
//! Pure.

use crate::{
    kinds::instances::{
        reconcile::plan::{Act, Look, PASSES, Seen},
        record::{Candidate, GivenUp, Incarnation, Instance, Retired},
        rules::{Effect, Instances, Outcome},
    },
    runtime::resource::{Intent, Step},
};
use contract::{
    InstanceId, Timestamp,
    instances::{DesiredState, InstanceState, Role, ServiceHealth, ServiceState},
};
use std::time::Duration;

/// How long an instance may take to come up.
pub const START_WITHIN: Duration = Duration::from_secs(5 * 60);
/// What is left at least of a time limit when the engine is back.
const AT_LEAST: Duration = Duration::from_secs(30);
/// Crashes are counted over this long.
const CRASH_WINDOW: Duration = Duration::from_secs(10 * 60);
/// More of them than this within the window are a loop.
const MOST_CRASHES: usize = 5;
/// How long an instance that crashes again and again is left alone.
const CRASH_PAUSE: Duration = Duration::from_secs(5 * 60);
/// The longest pause before a service that crashed is started again.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// How long volumes are kept after their instance.
pub const KEEP_DATA: Duration = Duration::from_secs(7 * 24 * 3600);
/// The longest pause between two looks for an engine that is away.
const LONGEST_AWAY: Duration = Duration::from_secs(30);

/// The record after an outcome.
pub(in crate::kinds::instances) fn fold(
    id: InstanceId,
    before: &Instance,
    outcome: Outcome,
    now: Timestamp,
) -> Step<Instances> {
    let mut instance = before.clone();
    let intent = match outcome {
        Outcome::Away(why) => instance.away(why, now),
        Outcome::Looked { look, act, done, log } => {
            instance.is_back(now);
            instance.learn(&look);
            match done {
                Err(why) => instance.failed_to(&act, why, log, now),
                Ok(settled) => {
                    if let Some((role, generation, reference)) = settled {
                        instance.settle_image(role, generation, reference);
                    }
                    instance.after(act, log, now)
                }
            }
        }
    };
    if matches!(intent, Ended::Gone) {
        return Instances::removed(id);
    }
    if instance.state != before.state {
        instance.updated_at = now;
    }
    let intent = match intent {
        Ended::Gone | Ended::Rest => Intent::None,
        Ended::Again => Intent::Now(Effect::Reconcile),
        Ended::After(pause) => Intent::After(pause, Effect::Reconcile),
    };
    if instance == *before {
        Step::keep().intend(intent)
    } else {
        Step::put(instance).intend(intent)
    }
}

/// What is left to do after an outcome.
enum Ended {
    /// Nothing.
    Rest,
    /// The next thing, at once.
    Again,
    /// The next thing, later.
    After(Duration),
    /// The record goes.
    Gone,
}

impl Instance {
    /// An engine that is away is not a failed instance: it keeps its state, and waits. One at rest
    /// is looked at again by whoever watches the engine.
    fn away(&mut self, why: String, now: Timestamp) -> Ended {
        if !self.is_at_work() {
            return Ended::Rest;
        }
        let since = *self.away_since.get_or_insert(now);
        // The engine's own words are for operators: they name what is inside of this machine.
        tracing::warn!(name = %self.name, why, "an instance waits for the container engine");
        self.last_error = Some(
            "it waits for the container engine, or for a registry, which does not answer".into(),
        );
        Ended::After((now.since(since) / 4).clamp(Duration::from_millis(500), LONGEST_AWAY))
    }

    /// Time limits stood still while the engine was away.
    fn is_back(&mut self, now: Timestamp) {
        let Some(since) = self.away_since.take() else { return };
        let away = now.since(since);
        let later = |deadline: Timestamp| (deadline + away).max(now + AT_LEAST);
        self.deadline = self.deadline.map(later);
        for candidate in self.parts.iter_mut().filter_map(|part| part.candidate.as_mut()) {
            candidate.deadline = later(candidate.deadline);
        }
    }

    fn learn(&mut self, look: &Look) {
        for part in &mut self.parts {
            let role = part.role();
            part.live.learn(look.containers.get(&(role, part.live.generation)));
            if let Some(Candidate { next, .. }) = &mut part.candidate {
                next.learn(look.containers.get(&(role, next.generation)));
            }
        }
    }

    fn settle_image(&mut self, role: Role, generation: u32, reference: String) {
        let Some(part) = self.part_mut(role) else { return };
        let incarnation = match &mut part.candidate {
            Some(candidate) if candidate.next.generation == generation => &mut candidate.next,
            _ => &mut part.live,
        };
        incarnation.image.reference = Some(reference);
    }

    /// The engine would not do it, and would not if it were asked again.
    fn failed_to(&mut self, act: &Act, why: String, log: Vec<String>, now: Timestamp) -> Ended {
        let candidate = |instance: &Instance, role: Role, generation: u32| {
            let part = instance.part(role).and_then(|part| part.candidate.as_ref());
            part.is_some_and(|candidate| candidate.next.generation == generation)
        };
        match act {
            Act::Provision(role, generation) | Act::Start(role, generation)
                if candidate(self, *role, *generation) =>
            {
                self.reject(*role, why, log);
                Ended::Again
            }
            // What has to go, goes, however long it takes.
            Act::Stop(..) | Act::Remove(..) | Act::Clear => {
                self.last_error = Some(why);
                Ended::After(Duration::from_secs(5))
            }
            Act::Provision(role, _) | Act::Start(role, _) => self.give_up(*role, why, log, now),
            _ => Ended::Rest,
        }
    }

    fn after(&mut self, act: Act, log: Vec<String>, now: Timestamp) -> Ended {
        match act {
            Act::Provision(..) | Act::Stop(..) => Ended::Again,
            Act::Start(role, generation) => {
                self.comes_up(now);
                if let Some(part) = self.part_mut(role)
                    && part.live.generation == generation
                {
                    part.attempts += 1;
                }
                Ended::Again
            }
            Act::Remove(role, generation) => {
                if let Some(part) = self.part_mut(role) {
                    part.retired.retain(|retired| retired.generation != generation);
                }
                Ended::Again
            }
            Act::Switch(role) => {
                self.switch(role, now);
                Ended::Again
            }
            Act::Reject(role, why) => {
                self.reject(role, why, log);
                Ended::Again
            }
            Act::Dismiss(role) => {
                if let Some(part) = self.part_mut(role)
                    && let Some(Candidate { next, failed: Some((why, log)), .. }) =
                        part.candidate.take()
                {
                    let deployment = next.deployment;
                    part.given_up = Some(GivenUp { deployment, why, log });
                }
                Ended::Again
            }
            Act::GiveUp(role, why) => self.give_up(role, why, log, now),
            Act::Crashed(role, why) => self.crashed(role, why, log, now),
            Act::Clear => self.cleared(now),
            Act::Wait(pause) => {
                self.comes_up(now);
                Ended::After(pause)
            }
            Act::Rest => self.rest(now),
        }
    }

    /// All containers are made: from now on they come up.
    fn comes_up(&mut self, now: Timestamp) {
        if self.state == InstanceState::Provisioning {
            self.state = InstanceState::Starting;
            self.deadline = Some(now + START_WITHIN);
        }
    }

    fn switch(&mut self, role: Role, now: Timestamp) {
        let candidate = self.part_mut(role).and_then(|part| part.candidate.take());
        if let Some(candidate) = candidate {
            self.put_in_place(role, candidate.next, now);
        }
    }

    fn reject(&mut self, role: Role, why: String, log: Vec<String>) {
        if let Some(candidate) = self.part_mut(role).and_then(|part| part.candidate.as_mut()) {
            candidate.failed.get_or_insert((why, log));
        }
    }

    /// What others can do without is left out; the instance goes on.
    fn leave_out(&mut self, role: Role, why: &str, log: &[String]) -> bool {
        let part = self.part_mut(role).filter(|part| !part.is_essential());
        let Some(part) = part else { return false };
        part.left_out = true;
        self.last_error = Some(format!("{}: {why}; it is left out", role.label()));
        self.last_log = log.to_vec();
        true
    }

    fn fail(&mut self, role: Role, why: &str, log: Vec<String>) {
        self.state = InstanceState::Failed;
        self.coming_up = false;
        self.last_error = Some(format!("{}: {why}", role.label()));
        self.last_log = log;
    }

    fn give_up(&mut self, role: Role, why: String, log: Vec<String>, now: Timestamp) -> Ended {
        if self.leave_out(role, &why, &log) {
            return Ended::Again;
        }
        self.fail(role, &why, log);
        self.deadline = None;
        self.drop_candidates(&why);
        self.rest(now)
    }

    /// What comes to its end by itself is started again, after a pause that grows; if that happens
    /// too often, it is left alone for a while.
    fn crashed(&mut self, role: Role, why: String, log: Vec<String>, now: Timestamp) -> Ended {
        self.crashes.retain(|at| now.since(*at) < CRASH_WINDOW);
        self.crashes.push(now);
        if let Some(part) = self.part_mut(role) {
            part.restarts += 1;
        }
        if self.crashes.len() > MOST_CRASHES {
            let often = format!("it {why}, {} times in ten minutes", self.crashes.len());
            if self.leave_out(role, &often, &log) {
                self.crashes.clear();
                return Ended::Again;
            }
            self.fail(role, &often, log);
            self.deadline = Some(now + CRASH_PAUSE);
            self.drop_candidates(&why);
            return self.rest(now);
        }
        let backoff =
            Duration::from_secs(1 << (self.crashes.len() - 1).min(6)).min(LONGEST_BACKOFF);
        self.last_error = Some(format!("{}: it {why}; it is started again", role.label()));
        self.last_log = log;
        self.start(now);
        self.deadline = Some(now + START_WITHIN + backoff);
        Ended::After(backoff)
    }

    /// On its way up, from now on.
    pub(in crate::kinds::instances) fn start(&mut self, now: Timestamp) {
        let made = self.parts.iter().all(|part| part.live.state != ServiceState::Missing);
        self.state = if made { InstanceState::Starting } else { InstanceState::Provisioning };
        let within =
            if made { START_WITHIN } else { crate::kinds::instances::rules::PROVISION_WITHIN };
        self.deadline = Some(now + within);
        for part in &mut self.parts {
            part.attempts = 0;
            part.live.passes = 0;
        }
    }

    /// This one is to serve.
    pub(in crate::kinds::instances) fn put_in_place(
        &mut self,
        role: Role,
        next: Incarnation,
        now: Timestamp,
    ) {
        let Some(part) = self.part_mut(role) else { return };
        let before = std::mem::replace(&mut part.live, next);
        part.retired.push(Retired { generation: before.generation, since: now });
        (part.left_out, part.attempts, part.given_up) = (false, 0, None);
        let version = part.live.definition.template_version.clone();
        if role == Role::Server {
            self.template_version = version;
        }
    }

    /// Candidates of an instance that does not run have nothing to take over from.
    pub(in crate::kinds::instances) fn drop_candidates(&mut self, why: &str) {
        for candidate in self.parts.iter_mut().filter_map(|part| part.candidate.as_mut()) {
            candidate.failed.get_or_insert_with(|| (why.to_owned(), Vec::new()));
        }
    }

    fn cleared(&mut self, now: Timestamp) -> Ended {
        if self.delete_data {
            return Ended::Gone;
        }
        self.state = InstanceState::Deleted;
        self.deadline = Some(now + KEEP_DATA);
        Ended::Rest
    }

    /// Nothing is left to do: what it is now is what was asked for, as far as that goes.
    fn rest(&mut self, now: Timestamp) -> Ended {
        match (self.state, self.desired) {
            (InstanceState::Restarting, _) if !self.coming_up => {
                self.coming_up = true;
                for part in &mut self.parts {
                    part.attempts = 0;
                    part.live.passes = 0;
                }
                self.deadline = Some(now + START_WITHIN);
                return Ended::Again;
            }
            (InstanceState::Failed, _) if self.is_at_work() => return Ended::Again,
            (InstanceState::Failed, _) => return Ended::Rest,
            (_, DesiredState::Running) => {
                let well = self.parts.iter().all(|part| part.live.is_well());
                if self.state == InstanceState::Running || self.state == InstanceState::Degraded {
                    self.state =
                        if well { InstanceState::Running } else { InstanceState::Degraded };
                } else {
                    let whole = self.parts.iter().all(|part| !part.left_out);
                    self.state =
                        if whole { InstanceState::Running } else { InstanceState::Degraded };
                }
                let unwell = self.parts.iter().find(|part| !part.live.is_well());
                // Why something was left out says more than that it is not well.
                if unwell.is_none_or(|part| !part.left_out) {
                    self.last_error =
                        unwell.map(|part| format!("{}: it is not well", part.role().label()));
                }
                if well {
                    self.last_log.clear();
                    for part in &mut self.parts {
                        part.attempts = 0;
                    }
                }
            }
            (_, DesiredState::Stopped | DesiredState::Deleted) => {
                self.state = InstanceState::Stopped;
                self.last_error = None;
            }
        }
        self.coming_up = false;
        self.deadline = None;
        if self.is_at_work() { Ended::Again } else { Ended::Rest }
    }
}

impl Incarnation {
    fn learn(&mut self, seen: Option<&Seen>) {
        let Some(seen) = seen else {
            (self.state, self.health) = (ServiceState::Missing, ServiceHealth::Unknown);
            (self.port, self.passes) = (None, 0);
            return;
        };
        let restarted = self.started_at != seen.started_at;
        (self.state, self.health, self.port) = (seen.state, seen.health, seen.port);
        self.started_at = seen.started_at;
        self.passes = match seen.health {
            ServiceHealth::Healthy if restarted => 1,
            ServiceHealth::Healthy => (self.passes + 1).min(PASSES),
            _ => 0,
        };
    }
}
