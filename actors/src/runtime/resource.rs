//! A resource: a pure state machine, and the effects that its intents ask for.

use super::event::Event;
use crate::world::World;
use contract::{Fault, Id, Timestamp};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    fmt::{self, Debug, Display, Write as _},
    marker::PhantomData,
    ops::Deref,
    sync::Arc,
    time::Duration,
};
use store::{Change, Claim, Entries, Record, StoreError};

/// The facts about a kind that the table of kinds declares.
pub trait Row: Record {
    /// The name of the kind in messages.
    const NOUN: &'static str;
    fn parent_key(state: &<Self as Resource>::State) -> Option<String>
    where
        Self: Resource;
}

/// A kind of resource. Only its owner changes a resource.
///
/// The behaviour is pure: no clock, no store, no outside world. A refusal changes nothing.
/// [`step`] does the same for all kinds: a missing or deleted resource is not found, and a second
/// creation changes nothing.
pub trait Resource: Row + Record<Key: Id, Content = Kept<Self>> + Send {
    /// The version of the shape of [`Resource::State`]. [`Resource::upgrade`] reads older shapes.
    const SHAPE: u16 = 1;
    /// The version of [`Resource::index`]. A start writes the entries of all resources of the kind
    /// again if the store has those of an older version.
    const INDEX: u16 = 1;
    /// Whether [`Resource::next`] says what a state asks for. The steps of such a kind set no intent, and
    /// it has no deadline command.
    const NEXT: bool = false;
    /// How long one attempt at an effect may take, unless [`Resource::time_limit`] says otherwise.
    const TIME_LIMIT: Duration = Duration::from_secs(30);
    /// The input of [`Resource::create`].
    type New: Clone + Debug + Send + 'static;
    type State: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static;
    type Command: Clone + Debug + Send + 'static;
    /// Work outside the record. An effect stays pending in the record until its outcome is written,
    /// so it may run twice and must be idempotent.
    type Effect: Serialize + DeserializeOwned + Clone + Debug + PartialEq + Send + Sync + 'static;
    type Outcome: Clone + Debug + Send + 'static;

    /// How long one attempt at an effect of this resource may take.
    fn time_limit(_: &Self::State) -> Duration {
        Self::TIME_LIMIT
    }

    fn create(at: &Moment<Self>, new: Self::New) -> Result<Step<Self>, Fault>;

    fn on_command(
        state: Self::State,
        at: &Moment<Self>,
        command: Self::Command,
    ) -> Result<Step<Self>, Fault>;

    fn on_outcome(state: Self::State, at: &Moment<Self>, outcome: Self::Outcome) -> Step<Self>;

    /// The work that this state asks for. `None`: the resource is at rest.
    fn next(_state: &Self::State) -> Option<Work<Self::Effect>> {
        None
    }

    /// The time has come that the work of the state does not outlast: [`Work::until`].
    fn on_due(_state: Self::State, _at: &Moment<Self>) -> Step<Self> {
        Step::keep()
    }

    /// Takes over what only the pending effect of a record says that an earlier version of the program
    /// wrote.
    fn adopt(_state: &mut Self::State, _pending: &Self::Effect) {}

    /// Runs an effect. After an error, the owner retries with growing pauses for as long as the
    /// intent is pending.
    fn perform(
        effect: Self::Effect,
        id: Self::Key,
        state: Arc<Kept<Self>>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Self::Outcome, Retry>>;

    /// The outcome of an effect that ran before without an answer, for effects that must not run twice
    /// at the same time: what the first run asked for may be under way outside. `None`: the effect
    /// runs again at once.
    fn unanswered(_effect: &Self::Effect, _state: &Self::State) -> Option<Self::Outcome> {
        None
    }

    /// Whether callers no longer see the resource. Its record may stay until its removal ends, or
    /// for its retention.
    fn is_deleted(state: &Self::State) -> bool;

    /// Whether a deleted resource still accepts this command.
    fn accepts_deleted(_command: &Self::Command) -> bool {
        false
    }

    /// The index entries, without the entry for the parent.
    fn index(_state: &Self::State) -> Entries<Self> {
        Entries::default()
    }

    /// The unique values that the resource holds.
    fn claims(_state: &Self::State) -> Vec<Unique<Self>> {
        Vec::new()
    }

    /// The deadline of the state, and the command that the sweeper sends when it has passed.
    fn deadline(_state: &Self::State) -> Option<(Timestamp, Self::Command)> {
        None
    }

    /// Whether the deadline of this state removes data for good. It waits while the clock is in doubt.
    fn expires(_state: &Self::State) -> bool {
        false
    }

    /// What a change of the state tells webhooks. It is written together with the change. Only called
    /// while there are webhooks.
    fn events(
        _at: &Moment<Self>,
        _before: Option<&Self::State>,
        _after: &Self::State,
        _world: &World,
    ) -> Vec<Event> {
        Vec::new()
    }

    /// Called after a change of the state was written, to tell the memory of the program about it. A
    /// crash loses that, and so may a write whose outcome is unknown.
    fn written(
        _id: Self::Key,
        _before: Option<&Self::State>,
        _after: &Self::State,
        _world: &World,
    ) {
    }

    /// Reads a record that an older version of the program wrote.
    fn upgrade(from: u16, _old: serde_json::Value) -> Result<Kept<Self>, StoreError> {
        Err(StoreError::Unreadable(format!("{} of schema {from} cannot be upgraded", Self::TREE)))
    }
}

/// The parent kind that the table of kinds declares.
pub trait HasParent: Resource {
    type Parent: Resource;
}

/// A kind whose resources have a parent of another kind, and are deleted with it.
pub trait Child: HasParent {
    /// Whether children of the kinds before it in the table need it until they are gone, as an open
    /// payment page needs the key that closes it.
    const NEEDED_TO_THE_END: bool = false;
    fn parent(state: &Self::State) -> Option<<Self::Parent as Record>::Key>;
    /// The command that deletes a child when its parent is deleted.
    fn delete() -> Self::Command;
}

/// The work that a state asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Work<E> {
    /// `None`: the state only waits.
    pub effect: Option<E>,
    /// When it begins. `None`: at once.
    pub at: Option<Timestamp>,
    /// When it is over, done or not: then [`Resource::on_due`] decides.
    pub until: Option<Timestamp>,
}

/// The owner waits for work that begins so soon. For later work, the sweeper wakes it.
const SOON: Duration = Duration::from_secs(60);

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

    /// Whether this is the same work, which may go on. It may end at another time.
    fn is_same(&self, other: &Self) -> bool {
        self.effect == other.effect && self.at == other.at
    }

    /// The intent of this work.
    fn intent(self, now: Timestamp) -> Intent<E> {
        let Some(effect) = self.effect else { return Intent::None };
        match self.at.map_or(Duration::ZERO, |at| at.since(now)) {
            Duration::ZERO => Intent::Now(effect),
            pause if pause <= SOON => Intent::After(pause, effect),
            _ => Intent::None,
        }
    }
}

/// A unique value, and the fault for a caller when another resource holds the value.
pub struct Unique<R> {
    claim: String,
    taken: fn() -> Fault,
    of: PhantomData<fn() -> R>,
}

impl<R: Resource> Unique<R> {
    pub fn new(claim: impl Claim<R>, taken: fn() -> Fault) -> Self {
        Unique { claim: claim.to_string(), taken, of: PhantomData }
    }

    /// The fault for a caller when the claim `taken` of the state is taken.
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
    Ok(if R::NEXT { step.with_next(at.now, state, goes_on) } else { step })
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

/// An effect failed and is retried. The text is for the log.
#[derive(Debug)]
pub struct Retry(pub String);

impl<E: std::error::Error> From<E> for Retry {
    fn from(e: E) -> Self {
        Retry(e.to_string())
    }
}

/// The decision about one input.
pub struct Step<R: Resource> {
    pub next: Next<R::State>,
    pub intent: Intent<R::Effect>,
    /// See [`Step::anew`].
    anew: Option<Duration>,
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

/// The change of the pending intent. A resource has at most one.
#[derive(Debug, Clone, PartialEq)]
pub enum Intent<E> {
    /// The pending intent stays.
    Keep,
    /// No intent is pending.
    None,
    /// Run this effect at once.
    Now(E),
    /// Run this effect after a pause.
    After(Duration, E),
}

impl<E> Intent<E> {
    /// The pause before the new effect begins and replaces the running one. `None`: the running
    /// effect goes on.
    pub fn begins(&self) -> Option<Duration> {
        match self {
            Intent::Keep => None,
            Intent::None | Intent::Now(_) => Some(Duration::ZERO),
            Intent::After(pause, _) => Some(*pause),
        }
    }
}

impl<R: Resource> Step<R> {
    /// The record after this step. `None`: the resource ends. Without a record before the step,
    /// only [`Next::Put`] is possible.
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

    /// Whether the record stays the same, so that no write is needed.
    pub fn keeps(&self, before: Option<&Kept<R>>) -> bool {
        let pending = before.and_then(|before| before.intent.as_ref());
        matches!(self.next, Next::Keep)
            && match &self.intent {
                Intent::Keep => true,
                Intent::None => pending.is_none(),
                Intent::Now(effect) | Intent::After(_, effect) => pending == Some(effect),
            }
    }

    pub fn keep() -> Self {
        Step { next: Next::Keep, intent: Intent::Keep, anew: None, also: Change::new() }
    }

    /// Replaces the state; the pending intent stays.
    pub fn put(state: R::State) -> Self {
        Step { next: Next::Put(state), intent: Intent::Keep, anew: None, also: Change::new() }
    }

    pub fn remove() -> Self {
        Step { next: Next::Remove, intent: Intent::None, anew: None, also: Change::new() }
    }

    /// Sets the intent of the work that the state after this step asks for. If it asked for the same
    /// before, the work goes on.
    fn with_next(self, now: Timestamp, before: Option<&R::State>, goes_on: bool) -> Self {
        let after = match &self.next {
            Next::Keep => before,
            Next::Put(state) => Some(state),
            Next::Remove => None,
        };
        let (was, work) = (before.and_then(R::next), after.and_then(R::next));
        let intent = match (was, work, self.anew) {
            (_, Some(Work { effect: Some(effect), .. }), Some(pause)) => {
                Intent::After(pause, effect)
            }
            (Some(was), Some(work), None) if goes_on && was.is_same(&work) => Intent::Keep,
            (_, Some(work), _) => work.intent(now),
            (_, None, _) => Intent::None,
        };
        self.intend(intent)
    }

    /// The work that the state asks for begins anew after this pause, in place of that under way, which
    /// was begun for the state before. A crash ends the pause.
    pub fn anew(mut self, pause: Duration) -> Self {
        self.anew = Some(pause);
        self
    }

    pub fn intend(mut self, intent: Intent<R::Effect>) -> Self {
        self.intent = intent;
        self
    }

    /// Adds a change to the same transaction.
    pub fn also(mut self, change: Change) -> Self {
        self.also = self.also.and(change);
        self
    }
}

/// The record of a resource: its state and its pending intent. They change together or not at all.
#[derive(Serialize)]
#[serde(bound = "")]
pub struct Kept<R: Resource> {
    pub state: R::State,
    /// The pending effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<R::Effect>,
}

impl<'de, R: Resource> Deserialize<'de> for Kept<R> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Stored<S, E> {
            state: S,
            intent: Option<Pending<E>>,
        }
        /// The program may have an effect no longer that an earlier version stored.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Pending<E> {
            Known(E),
            Unknown(serde::de::IgnoredAny),
        }
        let Stored { mut state, intent } = Stored::<R::State, R::Effect>::deserialize(d)?;
        let intent = match intent {
            Some(Pending::Known(effect)) => Some(effect),
            Some(Pending::Unknown(_)) | None => None,
        };
        if let Some(effect) = &intent {
            R::adopt(&mut state, effect);
        }
        Ok(Kept { state, intent })
    }
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
    /// A record without a pending intent.
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

/// The effect type of kinds without effects.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Never {}

/// [`Resource::perform`] of kinds without effects.
pub fn no_effects<O>(effect: Never) -> LocalBoxFuture<'static, Result<O, Retry>> {
    match effect {}
}
