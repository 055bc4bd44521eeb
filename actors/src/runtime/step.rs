//! The step of a resource that follows from one input.

use super::{
    kept::{self, Kept},
    resource::Resource,
    uses::Uses,
    work::{Begins, Work},
};
use contract::{Fault, Timestamp, retention::Retention};
use std::{
    fmt::{self, Write as _},
    time::Duration,
};
use store::Change;

/// The whole behaviour of a resource: the step that follows from one input. Pure.
pub fn step<R: Resource>(
    at: &Moment<R>,
    kept: Option<&Kept<R>>,
    input: Input<R>,
) -> Result<Step<R>, Fault> {
    let not_found = Fault::NotFound(R::NOUN);
    let is_over = |kept: &Kept<R>| {
        let until = kept.work().and_then(|work| work.until);
        until.is_some_and(|until| until <= at.now)
    };
    let is_command = matches!(input, Input::Create(_) | Input::Command(_));
    // What was done or is due begins again, also if the state asks for the same as before.
    let goes_on = match &input {
        Input::Create(_) | Input::Command(_) => true,
        Input::Outcome(_) | Input::Emptied(_) | Input::RetentionOver(..) => false,
        Input::Due => kept.is_some_and(is_over),
    };
    let step = match (kept, input) {
        (None, Input::Create(new)) => R::create(at, *new),
        (None, Input::Command(_)) => Err(not_found),
        // The outcome of an effect that the end of the resource overtook.
        (None, Input::Outcome(_) | Input::Emptied(_) | Input::Due | Input::RetentionOver(..)) => {
            Ok(Step::keep())
        }
        (Some(kept), Input::Due) if is_over(kept) => Ok(R::on_due(kept.state.clone(), at)),
        (Some(_), Input::Due) => Ok(Step::keep()),
        (Some(kept), Input::RetentionOver(retention, before))
            if kept.has_retained(retention, before) =>
        {
            R::on_retention_over(kept.state.clone(), at, retention)
        }
        (Some(_), Input::RetentionOver(..)) => Ok(Step::keep()),
        (Some(kept), Input::Create(_)) if kept.is_deleted() => Err(not_found),
        (Some(_), Input::Create(_)) => Ok(Step::keep()),
        (Some(kept), Input::Command(command)) if !kept.accepts(&command) => Err(not_found),
        (Some(kept), Input::Command(command)) => R::on_command(kept.state.clone(), at, command),
        (Some(kept), Input::Outcome(outcome)) => Ok(R::on_outcome(kept.state.clone(), at, outcome)),
        (Some(kept), Input::Emptied(true)) if kept.deleting => {
            Ok(Step::remove().also(R::end(&kept.state, at)))
        }
        (Some(_), Input::Emptied(_)) => Ok(Step::keep()),
    }?;
    let step = step.with_next(at.now, kept, goes_on);
    // Only a command ends work that may be under way on another node.
    Ok(Step { is_anew: step.is_anew && is_command, ..step })
}

/// Whether the work of a record, whose time has come, removes data for good: the record itself, or what the
/// kind [says](Resource::expires). It waits while the clock is in doubt.
pub fn removes_for_good<R: Resource>(at: &Moment<R>, kept: &Kept<R>) -> bool {
    let due = || step(at, Some(kept), Input::Due);
    R::expires(&kept.state) || due().is_ok_and(|step| matches!(step.next, Next::Remove))
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
    /// The children of a resource that is being deleted were told to delete themselves. Whether none is
    /// left.
    Emptied(bool),
    /// The time has come at which the work begins, or ends, that the state asks for.
    Due,
    /// The retention no longer keeps what ended before this time.
    RetentionOver(Retention, Timestamp),
}

impl<R: Resource> Input<R> {
    /// The name of the command or the outcome, without what it contains: that may be a secret.
    pub fn name(&self) -> String {
        let mut name = FirstWord(String::new());
        // The error only says that the word has ended.
        let _ = match self {
            Input::Create(_) => return "Create".to_owned(),
            Input::Due => return "Due".to_owned(),
            Input::RetentionOver(..) => return "RetentionOver".to_owned(),
            Input::Emptied(_) => return "Emptied".to_owned(),
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
            Input::RetentionOver(retention, before) => Input::RetentionOver(*retention, *before),
            Input::Emptied(is_empty) => Input::Emptied(*is_empty),
        }
    }
}

/// The decision about one input.
pub struct Step<R: Resource> {
    pub next: Next<R::State>,
    /// Of the steps of a kind, only [`Step::anew`] sets it. [`step`] does it for all others.
    pub begins: Begins,
    /// Whether a command begins the work [anew](Step::anew).
    pub is_anew: bool,
    /// Other changes in the same transaction.
    pub also: Change,
    /// What the resources that `also` creates take of the quotas.
    pub also_uses: Uses,
}

/// The change of the state.
#[derive(Debug, Clone, PartialEq)]
pub enum Next<S> {
    Keep,
    Put(S),
    /// Nobody sees the resource any more. It ends when its children are deleted.
    Delete(S),
    /// The resource ends: its record is removed.
    Remove,
}

impl<R: Resource> Step<R> {
    /// The record after this step. `None`: the resource ends. Without a record before the step,
    /// only [`Next::Put`] is possible.
    pub fn apply(self, before: Option<&Kept<R>>) -> Result<Option<Kept<R>>, Fault> {
        let awake = self.is_awake(before);
        let deleting = before.is_some_and(|before| before.deleting);
        let begun_anew = before.map_or(0, |before| before.begun_anew) + u64::from(self.is_anew);
        let kept = |state, deleting| Ok(Some(Kept { state, deleting, awake, begun_anew }));
        match (self.next, before) {
            (Next::Put(state), _) => kept(state, deleting),
            (Next::Delete(state), _) => kept(state, true),
            (Next::Keep, Some(before)) => kept(before.state.clone(), deleting),
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

    fn of(next: Next<R::State>, begins: Begins) -> Self {
        let also = Change::new();
        Step { next, begins, is_anew: false, also, also_uses: Uses::default() }
    }

    pub fn keep() -> Self {
        Step::of(Next::Keep, Begins::GoesOn)
    }

    /// Replaces the state.
    pub fn put(state: R::State) -> Self {
        Step::of(Next::Put(state), Begins::GoesOn)
    }

    /// Hides the resource, whose children are deleted next.
    pub fn delete(state: R::State) -> Self {
        Step::of(Next::Delete(state), Begins::GoesOn)
    }

    pub fn remove() -> Self {
        Step::of(Next::Remove, Begins::Later)
    }

    /// Decides what becomes of the work under way. If the state after this step asks for the same as
    /// before, it goes on.
    fn with_next(mut self, now: Timestamp, before: Option<&Kept<R>>, goes_on: bool) -> Self {
        let is_deleting = before.is_some_and(|before| before.deleting);
        let was = before.and_then(Kept::work);
        let work = match &self.next {
            Next::Keep => was.clone(),
            Next::Put(state) => kept::work::<R>(state, is_deleting),
            Next::Delete(state) => kept::work::<R>(state, true),
            Next::Remove => None,
        };
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
        (self.begins, self.is_anew) = (Begins::After(pause), true);
        self
    }

    /// Adds resources that are created in the same transaction, and what they take of the quotas.
    pub fn also_creates(mut self, change: Change, uses: &Uses) -> Self {
        self.also_uses = self.also_uses.and_all(uses);
        self.also(change)
    }

    /// Adds a change to the same transaction.
    pub fn also(mut self, change: Change) -> Self {
        self.also = self.also.and(change);
        self
    }
}
