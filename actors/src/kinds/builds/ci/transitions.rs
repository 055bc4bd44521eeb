//! The transitions of a build in a CI.

use super::{Destination, Run, RunOutcome, Workflow, run_name};
use crate::{
    kinds::builds::rules::{Builds, Effect, State},
    ports::ci::{BegunRun, Phase, Progress},
    runtime::resource::{Intent, Moment, Step},
};
use contract::{ArtifactId, builds::BuildState};
use std::time::Duration;

/// How long a host may be silent about whether it began a run.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(30 * 60);
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
/// How many finished steps the log has at most.
const MOST_STEPS: usize = 300;

impl Run {
    pub fn new(to: Destination, at: &Moment<Builds>) -> Run {
        Run {
            workflow: to.workflow,
            repository: to.repository,
            asked_at: at.now,
            since: to.now,
            id: None,
            until: at.now + CONFIRMED_WITHIN,
            tag: None,
            looks: 0,
            steps: Vec::new(),
            succeeded_at: None,
        }
    }

    /// Its name, once the service knows which run it is.
    pub fn name(&self) -> Option<String> {
        self.id.map(|id| run_name(self.repository.as_str(), id))
    }

    fn pause(&self) -> Duration {
        (FOLLOW_EVERY * (self.looks + 1)).min(LONGEST_PAUSE)
    }
}

impl State {
    /// The intent after the end of a build: a run goes on in its CI until the service cancels it. A
    /// run that the host may still begin is looked for first.
    pub(in super::super) fn intent_after_end(&self) -> Intent<Effect> {
        let is_cut_off = matches!(self.build.state, BuildState::Cancelled | BuildState::TimedOut);
        match self.run.as_ref().map(|run| run.id) {
            Some(Some(_)) if is_cut_off => Intent::Now(Effect::CancelRun),
            Some(None) if is_cut_off => Intent::Keep,
            _ => Intent::None,
        }
    }

    /// The host reports a change of this run.
    pub(in super::super) fn run_changed(mut self, reported: u64) -> Step<Builds> {
        match &mut self.run {
            Some(run) if run.id == Some(reported) && !self.build.state.is_final() => {
                run.looks = 0;
                Step::put(self).intend(Intent::Now(Effect::Follow))
            }
            _ => Step::keep(),
        }
    }

    pub(in super::super) fn on_run(
        mut self,
        at: &Moment<Builds>,
        outcome: RunOutcome,
    ) -> Step<Builds> {
        let ended = self.build.state.is_final();
        let Some(run) = &mut self.run else { return Step::keep() };
        match (outcome, run.id) {
            (RunOutcome::Begun(begun), None) => self.begun(begun, at),
            // The repository is read again before the next attempt.
            (RunOutcome::NotBegun(after), None) if !ended => {
                self.run = None;
                self.plan = None;
                Step::put(self).intend(Intent::After(after, Effect::Plan))
            }
            (RunOutcome::Unclear, None) => {
                Step::keep().intend(Intent::After(LOOK_FOR_IT_EVERY, Effect::Find))
            }
            (RunOutcome::NotFound, None) if at.now < run.asked_at + SHOWN_WITHIN => {
                Step::keep().intend(Intent::After(LOOK_FOR_IT_EVERY, Effect::Find))
            }
            (RunOutcome::NotFound, None) if !ended => {
                let why = "the host did not confirm that it began a run, and shows none; trigger \
                           the build again";
                self.end(BuildState::Failed, why.into(), at)
            }
            (RunOutcome::Looked(progress, made), Some(_)) if !ended => {
                self.looked(progress, made, at)
            }
            (RunOutcome::Later(after), Some(_)) if !ended => {
                Step::keep().intend(Intent::After(after.max(FOLLOW_EVERY), Effect::Follow))
            }
            (RunOutcome::Gone(why), Some(_)) if !ended => self.end(BuildState::Failed, why, at),
            // Nothing is left to be cancelled.
            (RunOutcome::NotBegun(_) | RunOutcome::NotFound, None) | (RunOutcome::Cancelled, _) => {
                Step::keep().intend(Intent::None)
            }
            // A late outcome of an effect that was replaced.
            _ => Step::keep(),
        }
    }

    fn begun(mut self, begun: BegunRun, at: &Moment<Builds>) -> Step<Builds> {
        if let Some(run) = &mut self.run {
            run.id = Some(begun.id);
            run.until = at.now + BEGINS_WITHIN;
        }
        if self.build.state.is_final() {
            return Step::put(self).intend(Intent::Now(Effect::CancelRun));
        }
        self.build.run_url = begun.url;
        self.build.state = BuildState::Dispatched;
        self.build.attempts = 1;
        Step::put(self).intend(Intent::After(FOLLOW_EVERY, Effect::Follow))
    }

    fn looked(
        mut self,
        progress: Option<Progress>,
        made: Option<ArtifactId>,
        at: &Moment<Builds>,
    ) -> Step<Builds> {
        let limit = Duration::from_secs(self.limit_seconds.into());
        let Some(run) = &mut self.run else { return Step::keep() };
        let Some(progress) = progress else {
            run.looks = run.looks.saturating_add(1);
            let pause = run.pause();
            return Step::put(self).intend(Intent::After(pause, Effect::Follow));
        };
        run.looks = 0;
        run.tag = progress.tag;
        run.steps = progress.steps;
        run.steps.truncate(MOST_STEPS);
        if run.workflow == Workflow::Own {
            self.build.commit = Some(progress.commit);
        }
        match progress.phase {
            Phase::Waiting => {}
            Phase::Running => {
                if self.build.state != BuildState::Running {
                    self.build.state = BuildState::Running;
                    self.build.started_at = Some(at.now);
                    run.until = at.now + limit;
                }
            }
            Phase::Succeeded => {
                let succeeded_at = *run.succeeded_at.get_or_insert(at.now);
                // The next look must find the artifact although nothing changes at the host.
                run.tag = None;
                match made {
                    Some(artifact) => return self.succeed(artifact, at),
                    None if at.now < succeeded_at + ARTIFACT_WITHIN => {}
                    None => {
                        let why = "the run succeeded and uploaded no artifact of this build: its \
                                   job needs `id-token: write` and a trusted publisher, or a \
                                   token of this app";
                        return self.end(BuildState::Failed, why.into(), at);
                    }
                }
            }
            Phase::Cancelled => {
                let why = "it was cancelled in the CI".to_owned();
                return self.end(BuildState::Cancelled, why, at);
            }
            Phase::Failed(conclusion) => {
                let state = match conclusion.as_str() {
                    "timed_out" => BuildState::TimedOut,
                    _ => BuildState::Failed,
                };
                let why = format!("the run in the CI ended with {conclusion}; runUrl has its log");
                return self.end(state, why, at);
            }
        }
        Step::put(self).intend(Intent::After(FOLLOW_EVERY, Effect::Follow))
    }
}
