//! The work that a state asks for, and when it begins.

use contract::Timestamp;
use std::time::Duration;

/// The owner waits for work that begins so soon. For later work, the sweeper wakes it.
const SOON: Duration = Duration::from_secs(60);

/// The work that a state asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Work<E> {
    /// `None`: the state only waits.
    pub effect: Option<E>,
    /// When it begins. `None`: at once.
    pub at: Option<Timestamp>,
    /// When it is over, done or not: then [`on_due`](super::resource::Resource::on_due) decides.
    pub until: Option<Timestamp>,
}

/// What becomes of the work under way when a step was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// The state asks for the same as before: it goes on.
    GoesOn,
    /// It ends, and the owner begins the work of the new state after this pause.
    After(Duration),
    /// It ends. The sweeper tells the owner when the work of the new state begins, if there is one.
    Later,
}

impl<E: PartialEq> Work<E> {
    /// Work that begins at once.
    pub fn now(effect: E) -> Self {
        Work { effect: Some(effect), at: None, until: None }
    }

    /// Work that begins at this time.
    pub fn at(time: Timestamp, effect: E) -> Self {
        Work { at: Some(time), ..Work::now(effect) }
    }

    /// Nothing is done until this time.
    pub fn wait(until: Timestamp) -> Self {
        Work { effect: None, at: None, until: Some(until) }
    }

    /// The same work, which is over at this time if there is one.
    pub fn until(self, until: Option<Timestamp>) -> Self {
        Work { until, ..self }
    }

    pub(super) fn map<F>(self, of: impl FnOnce(E) -> F) -> Work<F> {
        Work { effect: self.effect.map(of), at: self.at, until: self.until }
    }

    /// Whether this is the same work, which may go on. It may end at another time.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.effect == other.effect && self.at == other.at
    }

    /// How the owner begins this work.
    pub(super) fn begins(&self, now: Timestamp) -> Begins {
        match self.at.map_or(Duration::ZERO, |at| at.since(now)) {
            _ if self.effect.is_none() => Begins::Later,
            pause if pause <= SOON => Begins::After(pause),
            _ => Begins::Later,
        }
    }
}
