//! Applies an outcome to the record: what was observed, then what the action changed. Pure.

use super::plan::{Action, MOST_ATTEMPTS};
use crate::{
    kinds::hosting::instances::{
        database,
        record::Instance,
        rules::{Instances, Outcome, PROVISION_WITHIN},
    },
    runtime::{backoff::Backoff, resource::Step},
};
use contract::{
    InstanceId, JobId, Timestamp,
    instances::{DesiredState, InstanceState, Role, ServiceState},
};
use std::time::Duration;

/// How long an instance may take to start.
pub const START_WITHIN: Duration = Duration::from_secs(5 * 60);
/// What is left at least of a deadline when the engine answers again.
const AT_LEAST: Duration = Duration::from_secs(30);
const CRASH_WINDOW: Duration = Duration::from_secs(10 * 60);
/// An instance with more crashes within the window fails.
const MOST_CRASHES: usize = 5;
/// How long an instance that crashed too often stays failed before it is started again.
const CRASH_PAUSE: Duration = Duration::from_secs(5 * 60);
/// The pauses before a crashed service is started again.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
/// How long volumes are kept after their instance was deleted.
pub const KEEP_DATA: Duration = Duration::from_secs(7 * 24 * 3600);
/// The pause before an action that the engine refused is tried again.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);
/// The pause before a build is looked at again.
const BUILD_POLL: Duration = Duration::from_secs(1);
/// The shortest and the longest pause while the engine is unreachable.
const UNREACHABLE_PAUSE: (Duration, Duration) =
    (Duration::from_millis(500), Duration::from_secs(30));

/// No pause before the next reconciliation.
const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

pub(in crate::kinds::hosting::instances) fn apply(
    id: InstanceId,
    before: &Instance,
    outcome: Outcome,
    now: Timestamp,
) -> Step<Instances> {
    let mut instance = before.clone();
    let pause = match outcome {
        Outcome::Waits(what) => instance.apply_wait(what, now),
        Outcome::NoTurn => instance.apply_no_turn(now),
        Outcome::Building { observation, role, generation, job, progress } => {
            instance.resume_deadlines(now);
            instance.apply_observation(&observation);
            instance.apply_building(role, generation, (job, progress))
        }
        Outcome::Reconciled { observation, action, result, log } => {
            instance.resume_deadlines(now);
            instance.apply_observation(&observation);
            match result {
                Ok(_) if action == Action::Clear && instance.delete_data => {
                    return Instances::removed(id);
                }
                Ok(resolved) => {
                    if let Some(image) = resolved {
                        instance.pin_image(image, now);
                    }
                    instance.apply_action(action, log, now)
                }
                Err(why) => instance.apply_refusal(&action, why, log, now),
            }
        }
    };
    // What ends a transition is looked at once more: only rest tells how the instance is.
    instance.observing = pause.is_some() && !instance.is_in_transition();
    if instance.state != before.state {
        instance.updated_at = now;
    }
    let step = if instance == *before { Step::keep() } else { Step::put(instance) };
    step.anew(pause.unwrap_or_default())
}

impl Instance {
    /// An unreachable engine does not fail an instance: it keeps its state and waits. An instance
    /// at rest has nothing to wait for; the instance reconciler observes it when the engine
    /// answers.
    fn apply_wait(&mut self, what: &str, now: Timestamp) -> Option<Duration> {
        if !self.is_in_transition() {
            return None;
        }
        let since = *self.unreachable_since.get_or_insert(now);
        self.last_error = Some(format!("it waits for {what}"));
        let (shortest, longest) = UNREACHABLE_PAUSE;
        Some((now.since(since) / 4).clamp(shortest, longest))
    }

    /// Others were before it at the engine. Deadlines stand still, and it asks again, also for a service that is
    /// added to a running instance: here no engine comes back that would have it observed.
    fn apply_no_turn(&mut self, now: Timestamp) -> Option<Duration> {
        let pause = self.apply_wait("its turn: other containers are being started", now);
        Some(pause.unwrap_or(UNREACHABLE_PAUSE.0))
    }

    /// Deadlines stood still while the engine was unreachable.
    fn resume_deadlines(&mut self, now: Timestamp) {
        let Some(since) = self.unreachable_since.take() else { return };
        let lost = now.since(since);
        let later = |deadline: Timestamp| (deadline + lost).max(now + AT_LEAST);
        self.deadline = self.deadline.map(later);
        for candidate in self.services.iter_mut().filter_map(|s| s.candidate.as_mut()) {
            candidate.deadline = later(candidate.deadline);
        }
    }

    /// The revision waits for its image. A person sees why.
    fn apply_building(
        &mut self,
        role: Role,
        generation: u32,
        (job, progress): (JobId, u8),
    ) -> Option<Duration> {
        if let Some(revision) = self.revision_mut(role, generation) {
            revision.image.build = Some(job);
        }
        self.last_error = Some(format!(
            "{}: its image is being built, which happens once ({progress} % are done)",
            role.label()
        ));
        Some(BUILD_POLL)
    }

    /// The engine refused the action, and would refuse it again.
    fn apply_refusal(
        &mut self,
        action: &Action,
        why: String,
        log: Vec<String>,
        now: Timestamp,
    ) -> Option<Duration> {
        match action {
            Action::Provision(role, generation) | Action::Start(role, generation) => {
                if let Some(revision) = self.revision_mut(*role, *generation) {
                    revision.image.build = None;
                }
                let candidate = self.service(*role).and_then(|s| s.candidate.as_ref());
                if candidate.is_some_and(|c| c.revision.generation == *generation) {
                    self.reject(*role, why, log);
                    return AT_ONCE;
                }
                self.give_up(*role, why, log, now)
            }
            Action::Restore(role) => {
                let failures = self.initial_restore.as_mut().map_or(0, |restore| {
                    restore.failures += 1;
                    restore.failures
                });
                let why = format!("the backup was not restored: {why}");
                if failures >= MOST_ATTEMPTS {
                    return self.give_up(*role, why, log, now);
                }
                self.last_error = Some(why);
                Some(REFUSED_PAUSE)
            }
            Action::Prepare(role) | Action::Copy(role) => {
                self.forget_build(*role);
                Some(if self.move_failed(&why, now) { REFUSED_PAUSE } else { Duration::ZERO })
            }
            Action::Forget(engine) if self.state != InstanceState::Deleting => {
                tracing::warn!(why, "what an instance left at another engine was not removed");
                self.forgets_later(*engine, now);
                AT_ONCE
            }
            Action::Forget(_) => {
                self.last_error = Some(why);
                Some(REFUSED_PAUSE)
            }
            // Removal is tried until it succeeds.
            Action::Stop(..) | Action::Remove(..) | Action::Clear => {
                self.last_error = Some(why);
                Some(REFUSED_PAUSE)
            }
            _ => self.is_in_transition().then_some(REFUSED_PAUSE),
        }
    }

    fn apply_action(
        &mut self,
        action: Action,
        log: Vec<String>,
        now: Timestamp,
    ) -> Option<Duration> {
        match action {
            Action::Provision(..) => {}
            Action::Stop(..) => self.copy_anew(),
            Action::Start(role, generation) => {
                self.provisioned(now);
                let live = self.service_mut(role).filter(|s| s.live.generation == generation);
                if let Some(service) = live {
                    service.attempts += 1;
                }
            }
            Action::BeginRestore(_) => {
                self.provisioned(now);
                self.deadline = Some(now + database::WITHIN);
                if let Some(restore) = &mut self.initial_restore {
                    restore.begun = true;
                }
            }
            Action::Restore(_) => {
                (self.initial_restore, self.last_error) = (None, self.left_out_because());
                self.deadline = Some(now + START_WITHIN);
            }
            Action::Remove(role, generation) => {
                if let Some(service) = self.service_mut(role) {
                    service.retired.retain(|retired| retired.generation != generation);
                }
            }
            Action::Switch(role) => {
                let candidate = self.service_mut(role).and_then(|s| s.candidate.take());
                if let Some(candidate) = candidate {
                    self.make_live(role, candidate.revision, now);
                }
            }
            Action::Prepare(role) => self.prepared(role),
            Action::Halt => self.stop_as(InstanceState::Restarting, self.desired, now),
            Action::BeginCopy(role) => {
                self.copying(role);
                self.deadline = Some(now + database::WITHIN);
            }
            Action::Copy(role) => {
                self.copied(role);
                self.deadline = Some(now + self.stop_within());
            }
            Action::Arrive => self.arrive(now),
            Action::Forget(engine) => self.forgot(engine),
            Action::Reject(role, why) => self.reject(role, why, log),
            Action::Dismiss(role) => self.dismiss(role),
            Action::GiveUp(role, why) => return self.give_up(role, why, log, now),
            Action::Crashed(role, why) => return self.crashed(role, why, log, now),
            Action::Clear => {
                self.state = InstanceState::Deleted;
                self.deadline = Some(now + KEEP_DATA);
                return None;
            }
            Action::Wait(pause) => {
                self.provisioned(now);
                return Some(pause);
            }
            Action::Rest => return self.rest(now),
        }
        AT_ONCE
    }

    /// All containers exist: the instance starts.
    fn provisioned(&mut self, now: Timestamp) {
        if self.state == InstanceState::Provisioning {
            self.state = InstanceState::Starting;
            self.deadline = Some(now + START_WITHIN);
        }
    }

    fn fail(&mut self, role: Role, why: &str, log: Vec<String>) {
        self.state = InstanceState::Failed;
        self.coming_up = false;
        self.last_error = Some(format!("{}: {why}", role.label()));
        self.last_log = log;
    }

    fn give_up(
        &mut self,
        role: Role,
        why: String,
        log: Vec<String>,
        now: Timestamp,
    ) -> Option<Duration> {
        if self.leave_out(role, &why, &log) {
            return AT_ONCE;
        }
        self.fail(role, &why, log);
        self.deadline = None;
        self.fail_candidates(&why);
        self.rest(now)
    }

    /// Starts a crashed service again after a growing pause. After too many crashes the instance
    /// fails for a while.
    fn crashed(
        &mut self,
        role: Role,
        why: String,
        log: Vec<String>,
        now: Timestamp,
    ) -> Option<Duration> {
        self.crashes.retain(|at| now.since(*at) < CRASH_WINDOW);
        self.crashes.push(now);
        if let Some(service) = self.service_mut(role) {
            service.restarts += 1;
        }
        if self.crashes.len() > MOST_CRASHES {
            let often = format!("it {why}, {} times in ten minutes", self.crashes.len());
            if self.leave_out(role, &often, &log) {
                self.crashes.clear();
                return AT_ONCE;
            }
            self.fail(role, &often, log);
            self.deadline = Some(now + CRASH_PAUSE);
            self.fail_candidates(&why);
            return self.rest(now);
        }
        let before = u32::try_from(self.crashes.len()).unwrap_or(u32::MAX).saturating_sub(1);
        let backoff = BACKOFF.pause(before);
        self.last_error = Some(format!("{}: it {why}; it is started again", role.label()));
        self.last_log = log;
        self.start(now);
        self.deadline = Some(now + START_WITHIN + backoff);
        Some(backoff)
    }

    pub(in crate::kinds::hosting::instances) fn start(&mut self, now: Timestamp) {
        let mut needed = self.services.iter().filter(|service| !service.left_out);
        let provisioned = needed.all(|service| service.live.state != ServiceState::Missing);
        let (state, within) = if provisioned {
            (InstanceState::Starting, START_WITHIN)
        } else {
            (InstanceState::Provisioning, PROVISION_WITHIN)
        };
        (self.state, self.deadline) = (state, Some(now + within));
        self.reset_attempts();
    }

    pub(in crate::kinds::hosting::instances) fn reset_attempts(&mut self) {
        for service in &mut self.services {
            service.attempts = 0;
            service.live.passes = 0;
            service.live.image.build = None;
        }
        if let Some(restore) = &mut self.initial_restore {
            (restore.begun, restore.failures) = (false, 0);
        }
    }

    /// No action is left: ends the transient state. A restart goes on with its second half.
    fn rest(&mut self, now: Timestamp) -> Option<Duration> {
        match (self.state, self.desired) {
            (InstanceState::Restarting, _) if !self.coming_up => {
                self.coming_up = true;
                self.reset_attempts();
                self.deadline = Some(now + START_WITHIN);
                return AT_ONCE;
            }
            (InstanceState::Failed, _) => return self.is_in_transition().then_some(Duration::ZERO),
            (_, DesiredState::Running) => self.report_health(),
            (_, DesiredState::Stopped | DesiredState::Deleted) => {
                self.state = InstanceState::Stopped;
                self.last_error = None;
            }
        }
        self.coming_up = false;
        self.deadline = None;
        self.is_in_transition().then_some(Duration::ZERO)
    }

    /// The state of an instance that is up, from the health of its services.
    fn report_health(&mut self) {
        // What was left out because it was late may have become healthy since.
        for service in &mut self.services {
            if service.candidate.is_none() && service.live.is_healthy() {
                service.bring_in();
            }
        }
        let is_up = matches!(self.state, InstanceState::Running | InstanceState::Degraded);
        let counted = || self.services.iter().filter(|service| !service.is_being_added());
        let healthy = counted().all(|s| s.live.is_healthy());
        // A service that just started may not be observed as healthy yet; it passed its checks.
        let complete = counted().all(|s| !s.left_out);
        let running = if is_up { healthy } else { complete };
        self.state = if running { InstanceState::Running } else { InstanceState::Degraded };
        let unhealthy = counted().find(|s| !s.live.is_healthy());
        // The reason why a service was left out is kept: it says more.
        if unhealthy.is_none_or(|s| !s.left_out) {
            self.last_error = unhealthy.map(|s| format!("{}: it is not healthy", s.role.label()));
        }
        if healthy {
            self.last_log.clear();
            for service in &mut self.services {
                service.attempts = 0;
            }
        }
    }
}
