//! The transitions of a build.

use super::{
    ci::CiRun,
    log::NewLines,
    rules::{BuildPlace, Builds, Command, LEASE, Lease, Outcome, State, WAITS_FOR_RUNNER},
};
use crate::runtime::{
    entries::wire_name,
    resource::{Moment, Step},
};
use contract::{
    ArtifactId, Fault, Name, OrganizationId,
    builds::{Build, BuildState},
};
use std::time::Duration;

/// How long the service tries to read the repository.
const PLANNED_WITHIN: Duration = Duration::from_secs(30 * 60);
/// How many runners may get a build, one after another.
const MOST_ATTEMPTS: u32 = 2;
/// The size of the log of an attempt, in bytes. Later lines are counted and not kept.
const LARGEST_LOG: u64 = 16 << 20;
/// The last line of a log that the quota cuts.
const NO_ROOM: &str = "The rest is not kept: the logs of this organization are as large as its quota logBytes allows.";

impl State {
    /// A build that begins to be planned.
    pub fn new(
        build: Build,
        organization: OrganizationId,
        place: BuildPlace,
        limit: Duration,
    ) -> Self {
        State {
            organization: Some(organization),
            place,
            run: None,
            limit_seconds: u32::try_from(limit.as_secs()).unwrap_or(u32::MAX),
            plan: None,
            planned_at: None,
            queued_until: build.created_at + PLANNED_WITHIN,
            lease: None,
            removing_log: false,
            log_removed: false,
            log_bytes: 0,
            removing: false,
            build,
        }
    }

    /// Whether a runner may get the build.
    pub fn waits_for_runner(&self) -> bool {
        let is_queued = !self.removing && self.build.state == BuildState::Queued;
        is_queued && self.plan.is_some() && self.run.is_none()
    }

    /// Whether the runner with this digest has the build.
    pub fn is_held_by(&self, runner: &str) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.runner == runner)
    }

    pub(super) fn on_command(
        mut self,
        at: &Moment<Builds>,
        command: Command,
    ) -> Result<Step<Builds>, Fault> {
        let ended = self.build.state.is_final();
        match command {
            // The app repeats it until the build is gone.
            Command::Remove if self.removing => Ok(Step::keep()),
            Command::Remove => {
                self.removing = true;
                self.cut_off(at);
                Ok(Step::put(self))
            }
            _ if self.removing => Ok(Step::keep()),
            Command::Claim { runner, .. } if self.is_held_by(&runner) => Ok(Step::keep()),
            Command::Claim { runner, name } => match self.waits_for_runner() {
                true => Ok(self.give_to(runner, name, at)),
                false => Err(Fault::NotNow(format!(
                    "this build is {} and waits for no runner; claim another one",
                    wire_name(self.build.state)
                ))),
            },
            // The reply tells the runner to stop.
            Command::Report { .. } if ended => Ok(Step::keep()),
            Command::Finish { made: Ok(artifact), .. }
                if self.build.artifact_id == Some(artifact) && ended =>
            {
                Ok(Step::keep())
            }
            Command::Report { runner, from, lines, room, key } => {
                let lease = self.lease.as_mut().filter(|lease| lease.runner == runner);
                let lease = lease.ok_or_else(not_yours)?;
                let log = lease.extend(at, from, lines, room)?;
                self.log_bytes += log.bytes();
                self.build.state = BuildState::Running;
                let log = log.into_change(at.id, at.now, &key);
                Ok(Step::put(self).also(log))
            }
            Command::RunChanged { run } => Ok(self.run_changed(at, run)),
            Command::Finish { runner, .. } if !self.is_held_by(&runner) => Err(not_yours()),
            Command::Finish { made: Ok(artifact), .. } => Ok(self.succeed(artifact, at)),
            // The runner stops a build that takes too long, as the service does.
            Command::Finish { made: Err(_), .. } if self.is_late(at) => Ok(self.time_out(at)),
            Command::Finish { made: Err(why), .. } => Ok(self.end(BuildState::Failed, why, at)),
            Command::Cancel if self.build.state == BuildState::Cancelled => Ok(Step::keep()),
            Command::Cancel if ended => Err(Fault::NotNow(format!(
                "this build is {}; only a build that has not ended can be cancelled",
                self.build.state.name()
            ))),
            Command::Cancel => {
                let by = "it was cancelled".to_owned();
                Ok(self.end(BuildState::Cancelled, by, at))
            }
        }
    }

    pub(super) fn on_outcome(mut self, at: &Moment<Builds>, outcome: Outcome) -> Step<Builds> {
        let ended = self.build.state.is_final();
        match outcome {
            Outcome::Forgotten(true) if self.removing => return Step::remove(),
            Outcome::Forgotten(true) if ended => {
                self.log_removed = true;
                self.log_bytes = 0;
                return Step::put(self);
            }
            Outcome::Run(outcome) => return self.on_run(at, outcome),
            // The host refused to begin a run.
            Outcome::Impossible(_) if self.unwanted_run().is_some() => return self.give_up_run(),
            _ if self.removing || ended => return Step::keep(),
            _ => {}
        }
        let is_planned = self.plan.is_some();
        let is_begun =
            self.lease.is_some() || self.run.as_ref().is_some_and(|run| run.id.is_some());
        match (outcome, &mut self.lease) {
            (Outcome::Planned(plan, to), None) if !is_planned => {
                self.build.mode = plan.mode;
                self.build.git_ref = Some(plan.git_ref.clone());
                self.build.commit = Some(plan.commit.clone());
                self.plan = Some(*plan);
                let Some(destination) = to else {
                    self.queued_until = at.now + WAITS_FOR_RUNNER;
                    return Step::put(self);
                };
                self.run = Some(CiRun::new(destination, at, self.queued_until));
                Step::put(self)
            }
            (Outcome::Impossible(why), _) if !is_begun => {
                // The host refused to begin a run, if it was asked at all.
                if let Some(run) = &mut self.run {
                    run.over = true;
                }
                self.end(BuildState::Failed, why, at)
            }
            (Outcome::Made(artifact), _) => self.succeed(artifact, at),
            (Outcome::Patience, Some(lease)) => {
                lease.until = lease.until.max(at.now + LEASE);
                Step::put(self)
            }
            (Outcome::Lost, Some(lease)) if lease.until <= at.now => self.lose(at),
            // A report came in meanwhile, or it is a late outcome of an effect that was replaced.
            _ => Step::keep(),
        }
    }

    fn give_to(mut self, runner: String, name: Name, at: &Moment<Builds>) -> Step<Builds> {
        self.build.state = BuildState::Dispatched;
        self.build.runner = Some(name);
        self.build.attempts += 1;
        self.build.started_at = Some(at.now);
        let ends_by = at.now + Duration::from_secs(self.limit_seconds.into());
        let until = at.now + LEASE;
        self.lease = Some(Lease { runner, until, ends_by, lines: 0, bytes: 0, is_full: false });
        Step::put(self)
    }

    /// The runner is gone. The build waits for another one, or has failed.
    fn lose(mut self, at: &Moment<Builds>) -> Step<Builds> {
        if self.build.attempts >= MOST_ATTEMPTS {
            let why = "it was lost: two runners fell silent while they had it";
            return self.end(BuildState::Failed, why.into(), at);
        }
        self.lease = None;
        self.build.state = BuildState::Queued;
        self.queued_until = at.now + WAITS_FOR_RUNNER;
        Step::put(self)
    }

    /// The time has passed that the state had at most.
    pub(super) fn overdue(self, at: &Moment<Builds>) -> Step<Builds> {
        match (&self.lease, &self.run) {
            _ if self.unwanted_run().is_some() => self.give_up_run(),
            (Some(_), _) => self.time_out(at),
            (None, Some(_)) if self.build.state == BuildState::Running => self.time_out(at),
            (None, Some(run)) => {
                let why = match run.id {
                    Some(_) => "no machine of the CI began the run within a day",
                    None => "the host did not say within 30 minutes whether it began the run",
                };
                self.end(BuildState::TimedOut, why.into(), at)
            }
            (None, None) if self.plan.is_none() => {
                let why = "the build could not be begun within 30 minutes; its log says why";
                self.end(BuildState::TimedOut, why.into(), at)
            }
            (None, None) => {
                let labels = self.build.labels.iter().map(|label| label.as_str());
                let wanted: Vec<_> =
                    [self.build.platform.name()].into_iter().chain(labels).collect();
                let wanted = wanted.join(",");
                let why = format!(
                    "no runner with these labels asked for it within a day: {wanted}; start one \
                     with svc runner --labels {wanted} --app {}",
                    self.build.app_id
                );
                self.end(BuildState::TimedOut, why, at)
            }
        }
    }

    /// Whether the attempt has taken as long as it may.
    fn is_late(&self, at: &Moment<Builds>) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.ends_by <= at.now)
    }

    fn time_out(self, at: &Moment<Builds>) -> Step<Builds> {
        let why = format!("it did not end within {} s", self.limit_seconds);
        self.end(BuildState::TimedOut, why, at)
    }

    pub(super) fn succeed(mut self, artifact: ArtifactId, at: &Moment<Builds>) -> Step<Builds> {
        self.build.artifact_id = Some(artifact);
        self.finish(BuildState::Succeeded, at)
    }

    pub(super) fn end(
        mut self,
        state: BuildState,
        why: String,
        at: &Moment<Builds>,
    ) -> Step<Builds> {
        self.build.error = Some(why);
        self.finish(state, at)
    }

    fn finish(mut self, state: BuildState, at: &Moment<Builds>) -> Step<Builds> {
        self.build.state = state;
        self.build.finished_at = Some(at.now);
        self.lease = None;
        self.cut_off(at);
        Step::put(self)
    }
}

impl Lease {
    /// Extends the lease. Returns the lines that are new and fit into the log, and into the room that the
    /// organization has left.
    fn extend(
        &mut self,
        at: &Moment<Builds>,
        from: u32,
        lines: Vec<String>,
        room: u64,
    ) -> Result<NewLines, Fault> {
        if from > self.lines {
            return Err(Fault::NotNow(format!(
                "the lines before line {from} are missing: send those from line {} on",
                self.lines
            )));
        }
        self.until = at.now + LEASE;
        let known = (self.lines - from) as usize;
        let (mut kept, mut bytes) = (NewLines::default(), 0);
        for line in lines.into_iter().skip(known) {
            self.lines += 1;
            if self.is_full {
                continue;
            }
            bytes += line.len() as u64 + 1;
            kept.0.push(line);
            let full = if self.bytes + bytes >= LARGEST_LOG {
                Some(format!("The log has {} MiB; the rest is not kept.", LARGEST_LOG >> 20))
            } else if bytes >= room {
                Some(NO_ROOM.to_owned())
            } else {
                None
            };
            self.is_full = full.is_some();
            kept.0.extend(full);
        }
        self.bytes += kept.bytes();
        Ok(kept)
    }
}

fn not_yours() -> Fault {
    Fault::NotNow("this runner does not have this build any more; stop working on it".into())
}
