//! The step of a resource that follows from one input.

use super::{
    kept::Kept,
    resource::Resource,
    work::{Begins, Work},
};
use contract::{Fault, Timestamp};
use std::{
    fmt::{self, Write as _},
    time::Duration,
};
use store::Change;

/// The whole behaviour of a resource: the step that follows from one input. Pure.
pub fn step<R: Resource>(
    at: &Moment<R>,
    state: Option<&R::State>,
    input: Input<R>,
) -> Result<Step<R>, Fault> {
    let not_found = Fault::NotFound(R::NOUN);
    let is_over = |state| {
        let until = R::next(state).and_then(|work| work.until);
        until.is_some_and(|until| until <= at.now)
    };
    // What was done or is due begins again, also if the state asks for the same as before.
    let goes_on = match &input {
        Input::Create(_) | Input::Command(_) => true,
        Input::Outcome(_) => false,
        Input::Due => state.is_some_and(is_over),
    };
    let step = match (state, input) {
        (None, Input::Create(new)) => R::create(at, *new),
        (None, Input::Command(_)) => Err(not_found),
        // The outcome of an effect that the end of the resource overtook.
        (None, Input::Outcome(_) | Input::Due) => Ok(Step::keep()),
        (Some(state), Input::Due) if is_over(state) => Ok(R::on_due(state.clone(), at)),
        (Some(_), Input::Due) => Ok(Step::keep()),
        (Some(state), Input::Create(_)) if R::is_deleted(state) => Err(not_found),
        (Some(_), Input::Create(_)) => Ok(Step::keep()),
        (Some(state), Input::Command(command))
            if R::is_deleted(state) && !R::accepts_deleted(&command) =>
        {
            Err(not_found)
        }
        (Some(state), Input::Command(command)) => R::on_command(state.clone(), at, command),
        (Some(state), Input::Outcome(outcome)) => Ok(R::on_outcome(state.clone(), at, outcome)),
    }?;
    Ok(step.with_next(at.now, state, goes_on))
}

/// All that a step may know of the world.
#[derive(Debug, Clone, Copy)]
pub struct Moment<R: Resource> {
    pub id: R::Key,
    pub now: Timestamp,
}

/// The input of a step.
#[derive(Debug)]
pub enum Input<R: Resource> {
    Create(Box<R::New>),
    Command(R::Command),
    Outcome(R::Outcome),
    /// The time has come at which the work begins, or ends, that the state asks for.
    Due,
}

impl<R: Resource> Input<R> {
    /// The name of the command or the outcome, without what it contains: that may be a secret.
    pub fn name(&self) -> String {
        let mut name = FirstWord(String::new());
        // The error only says that the word has ended.
        let _ = match self {
            Input::Create(_) => return "Create".to_owned(),
            Input::Due => return "Due".to_owned(),
            Input::Command(command) => write!(name, "{command:?}"),
            Input::Outcome(outcome) => write!(name, "{outcome:?}"),
        };
        name.0
    }
}

/// Takes the first word of what is written, and then no more.
struct FirstWord(String);

impl fmt::Write for FirstWord {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.find(|c: char| !c.is_alphanumeric());
        self.0.push_str(text.get(..end.unwrap_or(text.len())).unwrap_or_default());
        end.map_or(Ok(()), |_| Err(fmt::Error))
    }
}

impl<R: Resource> Clone for Input<R> {
    fn clone(&self) -> Self {
        match self {
            Input::Create(new) => Input::Create(new.clone()),
            Input::Command(command) => Input::Command(command.clone()),
            Input::Outcome(outcome) => Input::Outcome(outcome.clone()),
            Input::Due => Input::Due,
        }
    }
}

/// The decision about one input.
pub struct Step<R: Resource> {
    pub next: Next<R::State>,
    /// Of the steps of a kind, only [`Step::anew`] sets it. [`step`] does it for all others.
    pub begins: Begins,
    /// Other changes in the same transaction.
    pub also: Change,
}

/// The change of the state.
#[derive(Debug, Clone, PartialEq)]
pub enum Next<S> {
    Keep,
    Put(S),
    /// The resource ends: its record is removed.
    Remove,
}

impl<R: Resource> Step<R> {
    /// The record after this step. `None`: the resource ends. Without a record before the step,
    /// only [`Next::Put`] is possible.
    pub fn apply(self, before: Option<&Kept<R>>) -> Result<Option<Kept<R>>, Fault> {
        let awake = self.is_awake(before);
        match (self.next, before) {
            (Next::Put(state), _) => Ok(Some(Kept { state, awake })),
            (Next::Keep, Some(before)) => Ok(Some(Kept { state: before.state.clone(), awake })),
            (Next::Remove, Some(_)) => Ok(None),
            (Next::Keep | Next::Remove, None) => Err(Fault::NotFound(R::NOUN)),
        }
    }

    /// Whether the record stays the same, so that no write is needed.
    pub fn keeps(&self, before: Option<&Kept<R>>) -> bool {
        let was_awake = before.is_some_and(|before| before.awake);
        matches!(self.next, Next::Keep) && self.is_awake(before) == was_awake
    }

    fn is_awake(&self, before: Option<&Kept<R>>) -> bool {
        match self.begins {
            Begins::GoesOn => before.is_some_and(|before| before.awake),
            Begins::After(_) => true,
            Begins::Later => false,
        }
    }

    pub fn keep() -> Self {
        Step { next: Next::Keep, begins: Begins::GoesOn, also: Change::new() }
    }

    /// Replaces the state.
    pub fn put(state: R::State) -> Self {
        Step { next: Next::Put(state), begins: Begins::GoesOn, also: Change::new() }
    }

    pub fn remove() -> Self {
        Step { next: Next::Remove, begins: Begins::Later, also: Change::new() }
    }

    /// Decides what becomes of the work under way. If the state after this step asks for the same as
    /// before, it goes on.
    fn with_next(mut self, now: Timestamp, before: Option<&R::State>, goes_on: bool) -> Self {
        let after = match &self.next {
            Next::Keep => before,
            Next::Put(state) => Some(state),
            Next::Remove => None,
        };
        let (was, work) = (before.and_then(R::next), after.and_then(R::next));
        self.begins = match (was, work) {
            (_, Some(Work { effect: Some(_), .. })) if self.begins != Begins::GoesOn => self.begins,
            (Some(was), Some(work)) if goes_on && was.is_same(&work) => Begins::GoesOn,
            (_, work) => work.map_or(Begins::Later, |work| work.begins(now)),
        };
        self
    }

    /// The work that the state asks for begins anew after this pause, in place of that under way, which
    /// was begun for the state before. A crash ends the pause.
    pub fn anew(mut self, pause: Duration) -> Self {
        self.begins = Begins::After(pause);
        self
    }

    /// Adds a change to the same transaction.
    pub fn also(mut self, change: Change) -> Self {
        self.also = self.also.and(change);
        self
    }
}
