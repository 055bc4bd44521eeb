//! The transitions of a build in a CI.

use super::{CiRun, Destination, RunOutcome, RunReport, Workflow, run_name};
use crate::{
    kinds::delivery::builds::{
        log::NewLines,
        rules::{Builds, Effect, State},
    },
    ports::ci::{BegunRun, Phase},
    runtime::resource::{Moment, Step, Work},
};
use contract::{Timestamp, builds::BuildState};
use std::time::Duration;

/// How long a run that was asked for may be missing among the runs that the host shows.
const SHOWN_WITHIN: Duration = Duration::from_secs(120);
const LOOK_FOR_IT_EVERY: Duration = Duration::from_secs(5);
/// How long a run may wait for a machine.
const BEGINS_WITHIN: Duration = Duration::from_secs(24 * 3600);
/// The first pause between two looks at a run. It grows while nothing changes.
const FOLLOW_EVERY: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long the artifact of a run that succeeded may be missing.
const ARTIFACT_WITHIN: Duration = Duration::from_secs(60);
/// How long the service tries to cancel a run, and how often.
const CANCELLED_WITHIN: Duration = Duration::from_secs(3600);
const CANCEL_EVERY: Duration = Duration::from_secs(10);
/// How many finished steps the log has at most.
const MOST_STEPS: usize = 300;

impl CiRun {
    /// A run that is asked for now. The host has until `until` to begin it, or a little longer.
    pub fn new(to: Destination, at: &Moment<Builds>, until: Timestamp) -> CiRun {
        CiRun {
            workflow: to.workflow,
            repository: to.repository,
            asked_at: at.now,
            since: to.now,
            id: None,
            until: until.max(at.now + SHOWN_WITHIN + LOOK_FOR_IT_EVERY * 2),
            tag: None,
            look_at: None,
            looks: 0,
            steps: Vec::new(),
            succeeded_at: None,
            over: false,
        }
    }

    /// Its name, once the service knows which run it is.
    pub fn name(&self) -> Option<String> {
        self.id.map(|id| run_name(self.repository.as_str(), id))
    }

    /// The work on the run: it is begun, then found, and then `known` is done.
    pub(in crate::kinds::delivery::builds) fn work(&self, known: Effect) -> Work<Effect> {
        let effect = match (self.id, self.look_at) {
            (Some(_), _) => known,
            (None, None) => Effect::Dispatch,
            (None, Some(_)) => Effect::Find,
        };
        Work { at: self.look_at, ..Work::now(effect) }.until(Some(self.until))
    }

    fn pause(&self) -> Duration {
        (FOLLOW_EVERY * (self.looks + 1)).min(LONGEST_PAUSE)
    }

    fn may_be_shown_later(&self, at: &Moment<Builds>) -> bool {
        at.now < self.asked_at + SHOWN_WITHIN
    }

    /// Notes the finished steps, and returns those that are new.
    fn note(&mut self, steps: Vec<String>) -> Vec<String> {
        let room = MOST_STEPS.saturating_sub(self.steps.len());
        let fresh = steps.into_iter().filter(|step| !self.steps.contains(step));
        let fresh: Vec<_> = fresh.take(room).collect();
        self.steps.extend_from_slice(&fresh);
        fresh
    }
}

impl State {
    /// The run that goes on, or may still begin, although nobody wants it any more.
    pub(in crate::kinds::delivery::builds) fn unwanted_run(&self) -> Option<&CiRun> {
        let is_unwanted = self.removing || self.build.state.is_final();
        self.run.as_ref().filter(|run| is_unwanted && !run.over)
    }

    /// Ends the run of a build that has ended or is removed. A run that the host may still begin is
    /// looked for first.
    pub(in crate::kinds::delivery::builds) fn cut_off(&mut self, at: &Moment<Builds>) {
        if let Some(run) = self.run.as_mut().filter(|run| !run.over) {
            run.until = at.now + CANCELLED_WITHIN;
            run.look_at = run.look_at.filter(|_| run.id.is_none());
        }
    }

    /// The service has tried long enough to cancel the run.
    pub(in crate::kinds::delivery::builds) fn give_up_run(self) -> Step<Builds> {
        self.run_is_over()
    }

    /// The host reports a change of this run.
    pub(in crate::kinds::delivery::builds) fn run_changed(
        mut self,
        at: &Moment<Builds>,
        reported: u64,
    ) -> Step<Builds> {
        match &mut self.run {
            Some(run) if run.id == Some(reported) && !self.build.state.is_final() => {
                run.looks = 0;
                self.look_after(Duration::ZERO, at)
            }
            _ => Step::keep(),
        }
    }

    /// Looks for the run, or at it, after a pause.
    fn look_after(mut self, pause: Duration, at: &Moment<Builds>) -> Step<Builds> {
        if let Some(run) = &mut self.run {
            run.look_at = Some(at.now + pause);
        }
        Step::put(self)
    }

    pub(in crate::kinds::delivery::builds) fn on_run(
        mut self,
        at: &Moment<Builds>,
        outcome: RunOutcome,
    ) -> Step<Builds> {
        let is_wanted = !self.removing && !self.build.state.is_final();
        let Some(run) = &mut self.run else { return Step::keep() };
        match (outcome, run.id) {
            (RunOutcome::Begun(begun), None) => self.begun(begun, at),
            (RunOutcome::NotBegun(after), None) if is_wanted => {
                if at.now + after >= self.queued_until {
                    let why = "the CI could not be asked within 30 minutes; the log says why";
                    return self.never_begun(BuildState::TimedOut, why.into(), at);
                }
                // The repository is read again before the next attempt.
                (self.run, self.plan) = (None, None);
                self.planned_at = Some(at.now + after);
                Step::put(self)
            }
            (RunOutcome::Unclear, None) => self.look_after(LOOK_FOR_IT_EVERY, at),
            (RunOutcome::NotFound, None) if run.may_be_shown_later(at) => {
                self.look_after(LOOK_FOR_IT_EVERY, at)
            }
            (RunOutcome::NotFound, None) if is_wanted => {
                let why = "the host did not confirm that it began a run, and shows none; trigger \
                           the build again";
                self.never_begun(BuildState::Failed, why.into(), at)
            }
            (RunOutcome::Gone(why), None) if is_wanted => {
                self.never_begun(BuildState::Failed, why, at)
            }
            (RunOutcome::NotBegun(_) | RunOutcome::NotFound | RunOutcome::Gone(_), None)
            | (RunOutcome::Ended, _) => self.run_is_over(),
            (RunOutcome::Later(after), None) => self.look_after(after.max(LOOK_FOR_IT_EVERY), at),
            (RunOutcome::Ending, Some(_)) if !is_wanted => self.look_after(CANCEL_EVERY, at),
            (RunOutcome::Later(after), Some(_)) if !is_wanted => {
                self.look_after(after.max(CANCEL_EVERY), at)
            }
            // A new run may not be shown yet.
            (RunOutcome::Gone(_), Some(_)) if !is_wanted && run.may_be_shown_later(at) => {
                self.look_after(CANCEL_EVERY, at)
            }
            (RunOutcome::Gone(_), Some(_)) if !is_wanted => self.run_is_over(),
            (RunOutcome::Gone(_), Some(_)) if run.may_be_shown_later(at) => {
                self.look_after(FOLLOW_EVERY, at)
            }
            (RunOutcome::Gone(why), Some(_)) => {
                run.over = true;
                self.end(BuildState::Failed, why, at)
            }
            (RunOutcome::Looked(look), Some(_)) if is_wanted => self.looked(look, at),
            (RunOutcome::Later(after), Some(_)) => self.look_after(after.max(FOLLOW_EVERY), at),
            // A late outcome of an effect that was replaced.
            _ => Step::keep(),
        }
    }

    fn begun(mut self, begun: BegunRun, at: &Moment<Builds>) -> Step<Builds> {
        if let Some(run) = &mut self.run {
            run.id = Some(begun.id);
            run.until = at.now + BEGINS_WITHIN;
        }
        if self.unwanted_run().is_some() {
            self.cut_off(at);
            return Step::put(self);
        }
        self.build.run_url = begun.url;
        self.build.state = BuildState::Dispatched;
        self.build.attempts = 1;
        self.look_after(FOLLOW_EVERY, at)
    }

    /// Ends a build whose run never began.
    fn never_begun(mut self, state: BuildState, why: String, at: &Moment<Builds>) -> Step<Builds> {
        if let Some(run) = &mut self.run {
            run.over = true;
        }
        self.end(state, why, at)
    }

    fn run_is_over(mut self) -> Step<Builds> {
        if let Some(run) = &mut self.run {
            run.over = true;
        }
        Step::put(self)
    }

    fn looked(mut self, look: Option<Box<RunReport>>, at: &Moment<Builds>) -> Step<Builds> {
        let limit = Duration::from_secs(self.limit_seconds.into());
        let Some(run) = &mut self.run else { return Step::keep() };
        let Some(look) = look else {
            run.looks = run.looks.saturating_add(1);
            let pause = run.pause();
            return self.look_after(pause, at);
        };
        let RunReport { progress, made, key } = *look;
        run.looks = 0;
        run.tag = progress.tag;
        run.over = progress.phase.is_final();
        let log = NewLines(run.note(progress.steps)).into_change(at.id, at.now, &key);
        if run.workflow == Workflow::Own {
            self.build.commit = Some(progress.commit);
        }
        let step = match progress.phase {
            Phase::Waiting => self.look_after(FOLLOW_EVERY, at),
            Phase::Running => {
                if self.build.state != BuildState::Running {
                    self.build.state = BuildState::Running;
                    self.build.started_at = Some(at.now);
                    run.until = at.now + limit;
                }
                self.look_after(FOLLOW_EVERY, at)
            }
            Phase::Succeeded => {
                let succeeded_at = *run.succeeded_at.get_or_insert(at.now);
                // The next look must find the artifact although nothing changes at the host.
                run.tag = None;
                match made {
                    Some(artifact) => self.succeed(artifact, at),
                    None if at.now < succeeded_at + ARTIFACT_WITHIN => {
                        self.look_after(FOLLOW_EVERY, at)
                    }
                    None => {
                        let why = "the run succeeded and uploaded no artifact of this build: its \
                                   job needs `id-token: write` and a trusted publisher, or a \
                                   token of this app";
                        self.end(BuildState::Failed, why.into(), at)
                    }
                }
            }
            Phase::Cancelled => {
                self.end(BuildState::Cancelled, "it was cancelled in the CI".into(), at)
            }
            Phase::Failed(conclusion) => {
                let state = match conclusion.as_str() {
                    "timed_out" => BuildState::TimedOut,
                    _ => BuildState::Failed,
                };
                let why = format!("the run in the CI ended with {conclusion}; runUrl has its log");
                self.end(state, why, at)
            }
        };
        step.also(log)
    }
}
