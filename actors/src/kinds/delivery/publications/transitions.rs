//! The state transitions of a publication, by commands and by the answers of its store. Pure.

use super::rules::{Command, New, Publications, State, StepResult};
use crate::{
    kinds::delivery::credentials::Use,
    runtime::{
        audit::Event,
        backoff::Backoff,
        resource::{Moment, Step},
    },
};
use app_stores::{Advanced, DesiredState, NextStep, Progress, RemoteError};
use contract::{
    Fault, Id, Timestamp,
    publishing::Percent,
    releases::{Publication, PublicationState, Target},
};
use std::time::Duration;
use store::Change;

/// The longest history, in lines.
const LONGEST_LOG: usize = 200;
/// The pauses after answers that were not clear.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(300) };
/// The longest pause that a store may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

impl State {
    pub(super) fn begin(now: Timestamp, New { publication, app_id, order }: New) -> State {
        State {
            wanted: DesiredState::Released(order.rollout),
            publication: Publication { rollout: partial(order.rollout), ..publication },
            app_id,
            order,
            fulfilled: None,
            at_rest: false,
            progress: Progress::None,
            unreported: false,
            due: Some(now),
            moved_at: now,
            unclear: 0,
            used: None,
        }
    }

    pub(super) fn on_command(
        mut self,
        now: Timestamp,
        command: Command,
    ) -> Result<Step<Publications>, Fault> {
        use PublicationState as S;
        match (self.publication.state, command) {
            (_, Command::Remove) => Ok(Step::remove()),
            (S::Failed, Command::Again(order)) => {
                self.publication.state = S::Queued;
                self.publication.error = None;
                self.publication.rollout = partial(order.rollout);
                self.wanted = DesiredState::Released(order.rollout);
                (self.order, self.at_rest) = (order, false);
                // What the store did before is over: its refusal fails the publication again.
                self.fulfilled = None;
                (self.moved_at, self.unclear) = (now, 0);
                self.say(now, "It was asked for again.".into());
                self.unreported = true;
                Ok(self.act(now))
            }
            // A repeated request for what is under way or done.
            (_, Command::Again(_)) => Ok(Step::keep()),
            (S::Failed, Command::Look) => Ok(Step::keep()),
            (_, Command::Look) if self.is_withdrawn() => Ok(Step::keep()),
            // A step is under way. To cut it off may cost a repetition.
            (_, Command::Look) if self.due.is_some_and(|due| due <= now) => Ok(Step::keep()),
            (_, Command::Look) => Ok(self.act(now)),
            (S::Failed, Command::Withdraw | Command::Restore) => Ok(Step::keep()),
            (_, Command::Withdraw) => Ok(self.want(now, DesiredState::Withdrawn)),
            (S::Live | S::Halted, Command::Restore) => Ok(self.want(now, DesiredState::Restored)),
            (_, Command::Restore) => Ok(Step::keep()),
            (S::Failed, Command::SetRollout(_) | Command::Halt | Command::Resume) => {
                Err(Fault::NotNow(format!(
                    "the publication in {} failed; publish the release again (svc_publishRelease)",
                    self.publication.target.name()
                )))
            }
            (_, Command::SetRollout(share)) => self.set_rollout(now, share),
            (_, Command::Halt) => self.halt(now),
            (_, Command::Resume) => self.resume(now),
        }
    }

    /// Nothing moved for too long.
    pub(super) fn give_up(mut self, now: Timestamp) -> Step<Publications> {
        let why = "nothing has moved for two days; publish again to go on where it stopped";
        self.fail(now, why.into());
        Step::put(self)
    }

    fn is_withdrawn(&self) -> bool {
        self.wanted == DesiredState::Withdrawn && self.at_rest
    }

    /// Whether the publication reaches its users in steps that somebody controls.
    fn is_staged(&self) -> bool {
        matches!(self.publication.target, Target::GooglePlay | Target::AppStore)
            && matches!(
                self.publication.state,
                PublicationState::InReview | PublicationState::Live | PublicationState::Halted
            )
            && matches!(self.wanted, DesiredState::Released(_) | DesiredState::Halted)
    }

    fn set_rollout(mut self, now: Timestamp, share: Percent) -> Result<Step<Publications>, Fault> {
        let target = self.publication.target.name();
        let before = self.publication.rollout;
        match self.wanted {
            _ if !self.is_staged() => Err(Fault::NotNow(format!(
                "the publication in {target} has no rollout that can be changed"
            ))),
            DesiredState::Halted => Err(Fault::NotNow(format!(
                "the rollout in {target} is halted; resume it first (svc_resumeRollout)"
            ))),
            _ if before.is_some_and(|before| share < before) => Err(Fault::NotNow(format!(
                "{} of the users may have it from {target} already, and a store cannot take it \
                 back from them; halt the rollout instead (svc_haltRollout)",
                before.unwrap_or(share)
            ))),
            DesiredState::Released(wanted) if partial(wanted).is_none() && share < Percent::ALL => {
                Err(Fault::NotNow(format!(
                    "all users may have it from {target} already; halt it instead (svc_haltRollout)"
                )))
            }
            DesiredState::Released(Some(wanted)) if wanted == share => Ok(Step::keep()),
            _ => {
                self.publication.rollout = partial(Some(share));
                Ok(self.want(now, DesiredState::Released(Some(share))))
            }
        }
    }

    fn halt(self, now: Timestamp) -> Result<Step<Publications>, Fault> {
        let target = self.publication.target.name();
        match self.wanted {
            DesiredState::Halted => Ok(Step::keep()),
            DesiredState::Released(Some(share)) if self.is_staged() && share < Percent::ALL => {
                Ok(self.want(now, DesiredState::Halted))
            }
            _ => Err(Fault::NotNow(format!(
                "the publication in {target} has no staged rollout that can be halted; roll the \
                 release back instead (svc_rollbackRelease)"
            ))),
        }
    }

    fn resume(self, now: Timestamp) -> Result<Step<Publications>, Fault> {
        match self.wanted {
            DesiredState::Halted => {
                let share = self.publication.rollout;
                Ok(self.want(now, DesiredState::Released(share)))
            }
            DesiredState::Released(_) => Ok(Step::keep()),
            DesiredState::Withdrawn | DesiredState::Restored => {
                Err(Fault::NotNow("the publication was withdrawn; create a new release".into()))
            }
        }
    }

    /// Wants something else of the store, at once.
    fn want(mut self, now: Timestamp, wanted: DesiredState) -> Step<Publications> {
        if self.wanted == wanted {
            return Step::keep();
        }
        (self.wanted, self.at_rest) = (wanted, false);
        // The answer may show nothing new, but the share and the error have changed already.
        self.unreported = true;
        self.publication.error = None;
        (self.moved_at, self.unclear) = (now, 0);
        self.act(now)
    }

    /// Lets the store be asked at once.
    fn act(mut self, now: Timestamp) -> Step<Publications> {
        self.due = Some(now);
        Step::put(self)
    }

    pub(super) fn stepped(
        mut self,
        &Moment { id, now }: &Moment<Publications>,
        result: StepResult,
        used: Option<&Use>,
    ) -> Step<Publications> {
        let seen = self.publication.clone();
        match result {
            Ok(advanced) => self.advanced(now, advanced),
            Err(RemoteError::Refused(why)) => self.refused(now, why),
            Err(RemoteError::Busy { why, after }) => {
                self.say_once(now, why);
                self.due = Some(now + after.min(LONGEST_WAIT));
            }
            Err(RemoteError::Unclear(why)) => {
                let pause = BACKOFF.pause_of(id.unique().0, self.unclear);
                self.unclear = self.unclear.saturating_add(1);
                self.say_once(now, why);
                self.due = Some(now + pause.min(BACKOFF.longest));
            }
        }
        if self.publication != seen {
            self.publication.updated_at = now;
            self.unreported = true;
        }
        let mut told = Change::new();
        if let Some(used) = used {
            self.used = Some((used.credential, used.stored_at));
            told = told.append::<Event>(&used.event.0.id, &used.event);
        }
        Step::put(self).also(told)
    }

    fn advanced(&mut self, now: Timestamp, advanced: Advanced) {
        let Advanced { progress, state, words, remote_id, url, log, error, next } = advanced;
        let publication = &mut self.publication;
        // An upload moves with each part. Later, many looks may find the same.
        let is_sent = state == PublicationState::Uploading && self.progress != progress;
        if is_sent || publication.state != state || publication.store_state != words {
            self.moved_at = now;
        }
        (self.progress, self.unclear) = (progress, 0);
        publication.state = state;
        publication.store_state = words;
        publication.remote_id = remote_id.or(publication.remote_id.take());
        publication.url = url.or(publication.url.take());
        publication.error = error;
        for line in log {
            self.say(now, line);
        }
        self.due = match next {
            NextStep::Now => Some(now),
            NextStep::After(pause) => Some(now + pause),
            NextStep::Done => None,
        };
        let stands = match state {
            PublicationState::Live | PublicationState::Halted | PublicationState::InReview => true,
            PublicationState::Failed => {
                (self.due, self.at_rest) = (None, true);
                // What the store refused for good is begun anew.
                self.progress = Progress::None;
                false
            }
            _ => false,
        };
        if stands && next != NextStep::Now {
            (self.fulfilled, self.at_rest) = (Some(self.wanted), true);
        }
    }

    /// The refusal of a publication fails it. The refusal of a later order leaves it as it is.
    fn refused(&mut self, now: Timestamp, why: String) {
        match self.fulfilled {
            None => self.fail(now, why),
            Some(before) => {
                if let DesiredState::Released(share) = before {
                    self.publication.rollout = partial(share);
                }
                (self.wanted, self.at_rest) = (before, true);
                // The store goes on without us, so it is looked at again, such as with another key.
                use PublicationState as S;
                let moves = match self.publication.state {
                    S::Queued | S::Uploading | S::Processing | S::InReview => true,
                    S::Live | S::Halted | S::Failed => false,
                };
                self.due = moves.then(|| now + LONGEST_WAIT);
                self.say_once(now, why.clone());
                self.publication.error = Some(why);
            }
        }
    }

    fn fail(&mut self, now: Timestamp, why: String) {
        self.publication.state = PublicationState::Failed;
        (self.due, self.at_rest) = (None, true);
        self.say(now, why.clone());
        self.publication.error = Some(why);
        self.publication.updated_at = now;
        self.unreported = true;
    }

    fn say(&mut self, now: Timestamp, sentence: String) {
        let log = &mut self.publication.log;
        if log.len() >= LONGEST_LOG {
            log.remove(0);
        }
        log.push(format!("{now} {sentence}"));
    }

    /// Says a sentence unless it was the last one.
    fn say_once(&mut self, now: Timestamp, sentence: String) {
        let last = self.publication.log.last().and_then(|line| line.split_once(' '));
        if last.is_none_or(|(_, last)| last != sentence) {
            self.say(now, sentence);
        }
    }
}

/// A share that is not everybody.
fn partial(share: Option<Percent>) -> Option<Percent> {
    share.filter(|share| *share < Percent::ALL)
}
