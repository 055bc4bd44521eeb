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
    pub longest_pause: Duration,
    /// Whether to wait after a rate limit. A person at a terminal is told instead.
    pub waits_for_limits: bool,
}

/// For a person who waits at a terminal.
pub const BRIEF: Patience = Patience {
    attempts: 3,
    first_pause: Duration::from_millis(250),
    longest_pause: Duration::from_secs(1),
    waits_for_limits: false,
};

/// For long work such as uploads.
pub const LASTING: Patience = Patience {
    attempts: 8,
    first_pause: Duration::from_millis(500),
    longest_pause: Duration::from_secs(30),
    waits_for_limits: true,
};

impl Patience {
    /// The pause before the next attempt after `failures` in a row. `None` means to give up.
    ///
    /// `told` is the pause that the answer asked for. `chance`, from 0 to 1, spreads clients that
    /// failed at the same time: it shortens a pause by up to half.
    pub fn pause(&self, failures: u32, told: Option<Duration>, chance: f64) -> Option<Duration> {
        if failures >= self.attempts {
            return None;
        }
        let doubled = self.first_pause * 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
        let own = doubled.min(self.longest_pause).mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        Some(told.map_or(own, |told| told.min(LONGEST_TOLD).max(own)))
    }

    /// Whether a repetition can help after an answer with this status.
    pub fn repeats(&self, status: u16) -> bool {
        match status {
            429 => self.waits_for_limits,
            408 | 500 | 502..=504 => true,
            _ => false,
        }
    }

    /// Waits before the next attempt. `false` means to give up.
    pub fn rest(&self, failures: u32, told: Option<Duration>) -> bool {
        let pause = self.pause(failures, told, fastrand::f64());
        if let Some(pause) = pause {
            std::thread::sleep(pause);
        }
        pause.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_end() {
        let whole: Vec<_> = (1..=8)
            .map(|failures| LASTING.pause(failures, None, 1.0).map(|p| p.as_millis()))
            .collect();
        let expected = [500, 1000, 2000, 4000, 8000, 16000, 30000].map(Some);
        assert_eq!(whole[..7], expected);
        assert_eq!(whole[7], None);
    }

    #[test]
    fn chance_shortens_a_pause_by_half_at_most() {
        assert_eq!(LASTING.pause(1, None, 0.0), Some(Duration::from_millis(250)));
    }

    #[test]
    fn an_answer_may_ask_for_more_but_not_for_hours() {
        let told = |seconds| LASTING.pause(1, Some(Duration::from_secs(seconds)), 0.5);
        assert_eq!(told(7), Some(Duration::from_secs(7)));
        assert_eq!(told(0), Some(Duration::from_millis(375)));
        assert_eq!(told(86_400), Some(LONGEST_TOLD));
    }

    #[test]
    fn only_what_a_repetition_can_mend_is_repeated() {
        assert!(LASTING.repeats(503) && LASTING.repeats(429) && BRIEF.repeats(500));
        assert!(!BRIEF.repeats(429) && !LASTING.repeats(424) && !LASTING.repeats(409));
    }
}
