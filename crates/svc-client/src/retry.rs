//! Whether to retry, and after which pause.

use std::time::Duration;

/// The longest pause that an answer may ask for.
const LONGEST_TOLD: Duration = Duration::from_secs(120);

/// The number of attempts without progress, and the pauses between them.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Attempts without progress, the first one included.
    pub attempts: u32,
    /// The pause after the first failure. Each further failure doubles the pause.
    pub first_pause: Duration,
    /// The longest of these pauses.
    pub longest_pause: Duration,
    /// Whether to wait after a rate limit. A person at a terminal is told instead.
    pub waits_for_limits: bool,
}

impl Patience {
    /// Three attempts, for somebody who waits.
    pub const BRIEF: Patience = Patience {
        attempts: 3,
        first_pause: Duration::from_millis(250),
        longest_pause: Duration::from_secs(1),
        waits_for_limits: false,
    };

    /// Eight attempts within about a minute, for work in the background.
    pub const LASTING: Patience = Patience {
        attempts: 8,
        first_pause: Duration::from_millis(500),
        longest_pause: Duration::from_secs(30),
        waits_for_limits: true,
    };

    /// One attempt.
    pub const NONE: Patience = Patience { attempts: 1, ..Patience::BRIEF };

    /// The pause before the next attempt after `failures` in a row. `None` means to give up.
    ///
    /// `told` is the pause that the answer asked for. Pauses vary, so that clients that failed at the
    /// same time do not come back at the same time.
    pub fn pause(&self, failures: u32, told: Option<Duration>) -> Option<Duration> {
        self.varied_pause(failures, told, fastrand::f64())
    }

    fn varied_pause(&self, failures: u32, told: Option<Duration>, chance: f64) -> Option<Duration> {
        if failures >= self.attempts {
            return None;
        }
        let doubled = self.first_pause * 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
        let own = shortened(doubled.min(self.longest_pause), chance);
        Some(told.map_or(own, |told| told.min(LONGEST_TOLD).max(own)))
    }

    /// Whether a repetition can help after an answer with this status.
    fn repeats(&self, status: u16) -> bool {
        match status {
            429 => self.waits_for_limits,
            408 | 500 | 502..=504 => true,
            _ => false,
        }
    }
}

/// A pause of half to all of this length, by chance. For programs that ask again at fixed intervals:
/// those that lost the service at the same time do not all come back at the same time.
pub fn varied(pause: Duration) -> Duration {
    shortened(pause, fastrand::f64())
}

/// `chance`, from 0 to 1, shortens a pause by up to half.
fn shortened(pause: Duration, chance: f64) -> Duration {
    pause.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
}

/// What became of one attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum AttemptOutcome {
    /// An answer came. The pause is the one that it asks for.
    Answered(u16, Option<Duration>),
    /// There was no connection, so nothing was done.
    NotSent,
    /// The request may have arrived, and no answer came.
    Lost,
    /// The request cannot be made, now or later.
    Impossible,
}

/// The attempts of one call so far.
pub(crate) struct Attempts {
    patience: Patience,
    /// Whether the request may be repeated after its answer was lost.
    repeats_lost: bool,
    failures: u32,
    lost: bool,
}

impl Attempts {
    pub fn new(patience: Patience, repeats_lost: bool) -> Self {
        Attempts { patience, repeats_lost, failures: 0, lost: false }
    }

    /// Whether the answer of an attempt was lost: the call may have been executed.
    pub fn lost_an_answer(&self) -> bool {
        self.lost
    }

    /// The pause before the next attempt. `None` if this outcome is the last.
    pub fn after(&mut self, outcome: AttemptOutcome) -> Option<Duration> {
        self.failures += 1;
        // These two come from a gateway that waited for the service in vain.
        let lost = matches!(outcome, AttemptOutcome::Lost | AttemptOutcome::Answered(502 | 504, _));
        self.lost |= lost;
        let again = match outcome {
            _ if lost => self.repeats_lost,
            AttemptOutcome::Answered(status, _) => self.patience.repeats(status),
            AttemptOutcome::Impossible => false,
            AttemptOutcome::NotSent | AttemptOutcome::Lost => true,
        };
        let told = match outcome {
            AttemptOutcome::Answered(_, told) => told,
            _ => None,
        };
        again.then(|| self.patience.pause(self.failures, told)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_end() {
        let whole: Vec<_> = (1..=8)
            .map(|failures| Patience::LASTING.varied_pause(failures, None, 1.0))
            .map(|pause| pause.map(|p| p.as_millis()))
            .collect();
        let expected = [500, 1000, 2000, 4000, 8000, 16000, 30000].map(Some);
        assert_eq!(whole[..7], expected);
        assert_eq!(whole[7], None);
    }

    #[test]
    fn chance_shortens_a_pause_by_half_at_most() {
        let shortest = Patience::LASTING.varied_pause(1, None, 0.0);
        assert_eq!(shortest, Some(Duration::from_millis(250)));
    }

    #[test]
    fn an_answer_may_ask_for_more_but_not_for_hours() {
        let told =
            |seconds| Patience::LASTING.varied_pause(1, Some(Duration::from_secs(seconds)), 0.5);
        assert_eq!(told(7), Some(Duration::from_secs(7)));
        assert_eq!(told(0), Some(Duration::from_millis(375)));
        assert_eq!(told(86_400), Some(LONGEST_TOLD));
    }

    fn answered(status: u16) -> AttemptOutcome {
        AttemptOutcome::Answered(status, None)
    }

    /// Whether a first attempt with this outcome is repeated.
    fn repeats(patience: Patience, repeats_lost: bool, outcome: AttemptOutcome) -> bool {
        Attempts::new(patience, repeats_lost).after(outcome).is_some()
    }

    #[test]
    fn only_what_a_repetition_can_mend_is_repeated() {
        for outcome in [answered(500), answered(503), answered(408), AttemptOutcome::NotSent] {
            assert!(repeats(Patience::BRIEF, false, outcome), "{outcome:?}");
        }
        for outcome in [answered(424), answered(409), answered(200), AttemptOutcome::Impossible] {
            assert!(!repeats(Patience::LASTING, true, outcome), "{outcome:?}");
        }
        assert!(repeats(Patience::LASTING, true, answered(429)));
        assert!(!repeats(Patience::BRIEF, true, answered(429)));
    }

    #[test]
    fn a_lost_answer_is_asked_for_again_only_where_it_would_come() {
        for outcome in [AttemptOutcome::Lost, answered(502), answered(504)] {
            assert!(repeats(Patience::BRIEF, true, outcome), "{outcome:?}");
            assert!(!repeats(Patience::BRIEF, false, outcome), "{outcome:?}");
        }
    }

    #[test]
    fn a_lost_answer_is_remembered_over_the_attempts() {
        let mut attempts = Attempts::new(Patience::LASTING, true);
        attempts.after(AttemptOutcome::NotSent);
        assert!(!attempts.lost_an_answer());
        attempts.after(AttemptOutcome::Lost);
        attempts.after(AttemptOutcome::NotSent);
        assert!(attempts.lost_an_answer());
    }
}
