//! A resource is a pure state machine, and the effects that its intents ask for.

use crate::world::World;
use contract::{Fault, Id, Timestamp};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    fmt::{self, Debug, Display},
    marker::PhantomData,
    ops::Deref,
    sync::Arc,
    time::Duration,
};
use store::{Change, Claim, Entries, Record, StoreError};

/// What the table of kinds says of a kind.
pub trait Row: Record {
    /// What people call one.
    const NOUN: &'static str;
    /// The key of what it hangs from.
    fn parent_key(state: &<Self as Resource>::State) -> Option<String>
    where
        Self: Resource;
}

/// A kind of resource. Each resource is changed by its one owner only.
///
/// The behaviour is pure: no clock, no store, no outside world. Refusing changes nothing. What is
/// the same for all kinds is the runtime's part ([`step`]): a resource that is not there or deleted
/// is not found, and one that is created twice stays as it is.
pub trait Resource: Row + Record<Key: Id, Content = Kept<Self>> + Send {
    /// The version of [`Resource::State`]'s shape. Older ones are read by [`Resource::upgrade`].
    const SHAPE: u16 = 1;
    /// How long one attempt at an effect may take.
    const TIME_LIMIT: Duration = Duration::from_secs(30);
    /// What one is created from.
    type New: Clone + Debug + Send + 'static;
    /// What is kept of it.
    type State: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static;
    /// What can be asked of it.
    type Command: Clone + Debug + Send + 'static;
    /// Work outside the record. It stays pending in the record until its outcome is known, so it
    /// must be safe to do again.
    type Effect: Serialize + DeserializeOwned + Clone + Debug + PartialEq + Send + Sync + 'static;
    /// What came of an effect.
    type Outcome: Clone + Debug + Send + 'static;

    /// The first state.
    fn create(at: &Moment<Self>, new: Self::New) -> Result<Step<Self>, Fault>;

    /// What a command makes of it.
    fn on_command(
        state: Self::State,
        at: &Moment<Self>,
        command: Self::Command,
    ) -> Result<Step<Self>, Fault>;

    /// What the outcome of an effect makes of it.
    fn on_outcome(state: Self::State, at: &Moment<Self>, outcome: Self::Outcome) -> Step<Self>;

    /// Does an effect. An error is tried again with growing pauses, for as long as the intent is
    /// pending.
    fn perform(
        effect: Self::Effect,
        id: Self::Key,
        state: Arc<Kept<Self>>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Self::Outcome, Retry>>;

    /// Whether people no longer see it: it is being removed, or what is left of it is kept for a
    /// while.
    fn is_deleted(state: &Self::State) -> bool;

    /// Whether a deleted one still takes this command.
    fn accepts_deleted(_command: &Self::Command) -> bool {
        false
    }

    /// What it is found by, beside what it hangs from.
    fn index(_state: &Self::State) -> Entries<Self> {
        Entries::default()
    }

    /// Unique values that it holds.
    fn claims(_state: &Self::State) -> Vec<Unique<Self>> {
        Vec::new()
    }

    /// When its state must have ended, and what it is told then.
    fn deadline(_state: &Self::State) -> Option<(Timestamp, Self::Command)> {
        None
    }

    /// Reads a state that an older version of the program wrote.
    fn upgrade(from: u16, _old: serde_json::Value) -> Result<Kept<Self>, StoreError> {
        Err(StoreError::Unreadable(format!("{} of schema {from} cannot be upgraded", Self::TREE)))
    }
}

/// What the row of a kind says that its resources hang from.
pub trait HasParent: Resource {
    /// The other kind.
    type Parent: Resource;
}

/// A kind whose resources hang from those of another kind, and go with them.
pub trait Child: HasParent {
    /// What this one hangs from.
    fn parent(state: &Self::State) -> Option<<Self::Parent as Record>::Key>;
    /// What it is told when that goes.
    fn delete() -> Self::Command;
}

/// A unique value, and what a caller is told where another resource holds it.
pub struct Unique<R> {
    claim: String,
    taken: fn() -> Fault,
    of: PhantomData<fn() -> R>,
}

impl<R: Resource> Unique<R> {
    /// This value must be held by nobody else.
    pub fn new(claim: impl Claim<R>, taken: fn() -> Fault) -> Self {
        Unique { claim: claim.to_string(), taken, of: PhantomData }
    }

    /// What a caller is told where this claim of the state is taken.
    pub fn refusal(state: &R::State, taken: &str) -> Fault {
        let claims = <R as Resource>::claims(state);
        let claim = claims.into_iter().find(|unique| unique.claim == taken);
        claim.map_or(Fault::Stale, |unique| (unique.taken)())
    }
}

impl<R> Display for Unique<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.claim)
    }
}

impl<R: Resource> Claim<R> for Unique<R> {}

/// The whole of a resource's behaviour: what becomes of it by one input. Pure.
pub fn step<R: Resource>(
    at: &Moment<R>,
    state: Option<&R::State>,
    input: Input<R>,
) -> Result<Step<R>, Fault> {
    let not_found = Fault::NotFound(R::NOUN);
    match (state, input) {
        (None, Input::Create(new)) => R::create(at, *new),
        (None, Input::Command(_)) => Err(not_found),
        // of something that was overtaken by the resource's end
        (None, Input::Outcome(_)) => Ok(Step::keep()),
        (Some(state), Input::Create(_)) if R::is_deleted(state) => Err(not_found),
        (Some(_), Input::Create(_)) => Ok(Step::keep()),
        (Some(state), Input::Command(command))
            if R::is_deleted(state) && !R::accepts_deleted(&command) =>
        {
            Err(not_found)
        }
        (Some(state), Input::Command(command)) => R::on_command(state.clone(), at, command),
        (Some(state), Input::Outcome(outcome)) => Ok(R::on_outcome(state.clone(), at, outcome)),
    }
}

/// Who and when: what a step may know of the world.
#[derive(Debug, Clone, Copy)]
pub struct Moment<R: Resource> {
    /// The resource's id.
    pub id: R::Key,
    /// The time.
    pub now: Timestamp,
}

/// What a step takes in.
#[derive(Debug)]
pub enum Input<R: Resource> {
    /// It is to be created.
    Create(Box<R::New>),
    /// Somebody asks.
    Command(R::Command),
    /// An effect came to an end.
    Outcome(R::Outcome),
}

impl<R: Resource> Clone for Input<R> {
    fn clone(&self) -> Self {
        match self {
            Input::Create(new) => Input::Create(new.clone()),
            Input::Command(command) => Input::Command(command.clone()),
            Input::Outcome(outcome) => Input::Outcome(outcome.clone()),
        }
    }
}

/// An effect could not be done now: why, for the log.
#[derive(Debug)]
pub struct Retry(pub String);

impl<E: std::error::Error> From<E> for Retry {
    fn from(e: E) -> Self {
        Retry(e.to_string())
    }
}

/// What a step decides.
pub struct Step<R: Resource> {
    /// What becomes of the state.
    pub next: Next<R::State>,
    /// What becomes of the intent.
    pub intent: Intent<R::Effect>,
    /// What else becomes true in the same transaction.
    pub also: Change,
}

/// What becomes of the state.
#[derive(Debug, Clone, PartialEq)]
pub enum Next<S> {
    /// It stays; nothing is written.
    Keep,
    /// It becomes this.
    Put(S),
    /// The resource ends.
    Remove,
}

/// What becomes of the intent. A resource has one at a time.
#[derive(Debug, Clone, PartialEq)]
pub enum Intent<E> {
    /// What was pending still is.
    Keep,
    /// Nothing is left to do.
    None,
    /// Do this.
    Now(E),
    /// Do this after a pause.
    After(Duration, E),
}

impl<E> Intent<E> {
    /// After which pause its effect begins, in place of the one before; `None`: that one goes on.
    pub fn begins(&self) -> Option<Duration> {
        match self {
            Intent::Keep => None,
            Intent::None | Intent::Now(_) => Some(Duration::ZERO),
            Intent::After(pause, _) => Some(*pause),
        }
    }
}

impl<R: Resource> Step<R> {
    /// What the resource becomes by this step; `None`: it ends. A resource that is not there can
    /// only be put.
    pub fn apply(self, before: Option<&Kept<R>>) -> Result<Option<Kept<R>>, Fault> {
        let pending = before.and_then(|before| before.intent.as_ref());
        let intent = match self.intent {
            Intent::Keep => pending.cloned(),
            Intent::None => None,
            Intent::Now(effect) | Intent::After(_, effect) => Some(effect),
        };
        match (self.next, before) {
            (Next::Put(state), _) => Ok(Some(Kept { state, intent })),
            (Next::Keep, Some(before)) => Ok(Some(Kept { state: before.state.clone(), intent })),
            (Next::Remove, Some(_)) => Ok(None),
            (Next::Keep | Next::Remove, None) => Err(Fault::NotFound(R::NOUN)),
        }
    }

    /// Whether the resource stays just as it is, so that nothing needs to be written.
    pub fn keeps(&self, before: Option<&Kept<R>>) -> bool {
        let pending = before.and_then(|before| before.intent.as_ref());
        matches!(self.next, Next::Keep)
            && match &self.intent {
                Intent::Keep => true,
                Intent::None => pending.is_none(),
                Intent::Now(effect) | Intent::After(_, effect) => pending == Some(effect),
            }
    }

    /// Nothing changes.
    pub fn keep() -> Self {
        Step { next: Next::Keep, intent: Intent::Keep, also: Change::new() }
    }

    /// The state becomes this; the intent stays.
    pub fn put(state: R::State) -> Self {
        Step { next: Next::Put(state), intent: Intent::Keep, also: Change::new() }
    }

    /// The resource ends.
    pub fn remove() -> Self {
        Step { next: Next::Remove, intent: Intent::None, also: Change::new() }
    }

    /// With this intent.
    pub fn intend(mut self, intent: Intent<R::Effect>) -> Self {
        self.intent = intent;
        self
    }

    /// With this in the same transaction.
    pub fn also(mut self, change: Change) -> Self {
        self.also = self.also.and(change);
        self
    }
}

/// What is written: the state with the pending intent. They change together or not at all.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Kept<R: Resource> {
    /// The state.
    pub state: R::State,
    /// What is left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<R::Effect>,
}

impl<R: Resource> Debug for Kept<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("state", &self.state).field("intent", &self.intent).finish()
    }
}

impl<R: Resource> Clone for Kept<R> {
    fn clone(&self) -> Self {
        Kept { state: self.state.clone(), intent: self.intent.clone() }
    }
}

impl<R: Resource> Kept<R> {
    /// A state with nothing left to do.
    pub fn at_rest(state: R::State) -> Self {
        Kept { state, intent: None }
    }
}

impl<R: Resource> Deref for Kept<R> {
    type Target = R::State;
    fn deref(&self) -> &R::State {
        &self.state
    }
}

/// An effect of resources that have none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Never {}

/// `perform` of resources that have no effects.
pub fn no_effects<O>(effect: Never) -> LocalBoxFuture<'static, Result<O, Retry>> {
    match effect {}
}
