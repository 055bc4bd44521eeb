//! A resource is a pure state machine, and the effects that its intents ask for.

use crate::world::World;
use contract::{Fault, Id, Timestamp};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    fmt::{self, Debug},
    sync::Arc,
    time::Duration,
};
use store::{Change, Record};

/// A kind of resource. Each resource is changed by its one owner only.
pub trait Resource: Sized + Send + 'static {
    /// The name of the kind, and of its tree in the store.
    const KIND: &'static str;
    /// The version of [`Resource::State`]'s shape. Older ones are read by [`Resource::upgrade`].
    const SCHEMA: u16 = 1;
    /// How long one attempt at an effect may take.
    const TIME_LIMIT: Duration = Duration::from_secs(30);
    /// What identifies a resource of this kind.
    type Id: Id;
    /// What is kept of it.
    type State: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static;
    /// What can be asked of it.
    type Command: Clone + Debug + Send + 'static;
    /// Work outside the record. It stays pending in the record until its outcome is known, so it
    /// must be safe to do again.
    type Effect: Serialize + DeserializeOwned + Clone + Debug + PartialEq + Send + Sync + 'static;
    /// What came of an effect.
    type Outcome: Clone + Debug + Send + 'static;

    /// The whole of the behaviour: no clock, no store, no outside world. Refusing changes nothing.
    fn step(
        at: &Moment<Self>,
        state: Option<&Self::State>,
        input: Input<Self>,
    ) -> Result<Step<Self>, Fault>;

    /// Entries of the index that point at this resource.
    fn index(_state: &Self::State) -> Vec<String> {
        Vec::new()
    }

    /// Unique values that it holds.
    fn claims(_state: &Self::State) -> Vec<String> {
        Vec::new()
    }

    /// Does an effect. An error is tried again with growing pauses, for as long as the intent is
    /// pending.
    fn perform(
        _effect: Self::Effect,
        _id: Self::Id,
        _state: Arc<Kept<Self>>,
        _world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Self::Outcome, Retry>>;

    /// What a caller is told when a claim of it is taken.
    fn taken(_claim: &str) -> Fault {
        Fault::Exists(format!("this {} exists already", Self::KIND))
    }

    /// Reads a state that an older version of the program wrote.
    fn upgrade(from: u16, _old: serde_json::Value) -> Result<Kept<Self>, store::StoreError> {
        Err(store::StoreError::Unreadable(format!(
            "{} of schema {from} cannot be upgraded",
            Self::KIND
        )))
    }
}

/// Who and when: what a step may know of the world.
#[derive(Debug, Clone, Copy)]
pub struct Moment<R: Resource> {
    /// The resource's id.
    pub id: R::Id,
    /// The time.
    pub now: Timestamp,
}

/// What a step takes in.
#[derive(Debug)]
pub enum Input<R: Resource> {
    /// Somebody asks.
    Command(R::Command),
    /// An effect came to an end.
    Outcome(R::Outcome),
}

impl<R: Resource> Clone for Input<R> {
    fn clone(&self) -> Self {
        match self {
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
            (Next::Keep | Next::Remove, None) => Err(Fault::NotFound(R::KIND)),
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

/// The index entry of every resource with a pending intent: what is woken when the process starts.
/// Stores spell it in the way of the versions that wrote them first.
pub const PENDING: &str = "standing";

impl<R: Resource> Record for Kept<R> {
    const TREE: &'static str = R::KIND;
    const SCHEMA: u16 = R::SCHEMA;

    fn index(&self) -> Vec<String> {
        let mut entries = R::index(&self.state);
        entries.extend(self.intent.as_ref().map(|_| PENDING.to_owned()));
        entries
    }

    fn claims(&self) -> Vec<String> {
        R::claims(&self.state)
    }

    fn upgrade(from: u16, old: serde_json::Value) -> Result<Self, store::StoreError> {
        R::upgrade(from, old)
    }
}

/// An effect of resources that have none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Never {}

/// `perform` of resources that have no effects.
pub fn no_effects<O>(effect: Never) -> LocalBoxFuture<'static, Result<O, Retry>> {
    match effect {}
}
