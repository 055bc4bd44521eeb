//! A resource: a pure state machine, and the effects that its states ask for.

pub use super::{
    kept::{Kept, StateOf, Task},
    step::{Input, Moment, Next, Step, removes_for_good, step},
    work::{Begins, Work},
};

use super::{event::Event, host::Host, uses::Uses};
use contract::{EngineId, Fault, Id, OrganizationId, Timestamp, retention::Retention};
use futures_util::future::LocalBoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fmt::{self, Debug, Display},
    marker::PhantomData,
    sync::Arc,
    time::Duration,
};
use store::{Change, Claim, Entries, Record, Snapshot, StoreError};

/// The facts about a kind that the table of kinds declares.
pub trait Row: Record {
    /// The name of the kind in messages.
    const NOUN: &'static str;
    /// The program that the owners of the kind run in.
    type Host: Host;
    fn parent_key(state: &<Self as Resource>::State) -> Option<String>
    where
        Self: Resource;

    /// The organization whose quotas the resource uses. `None`: the kind belongs to none, or a parent is
    /// gone.
    fn organization(
        _id: &<Self as Record>::Key,
        _state: &<Self as Resource>::State,
        _store: &super::store::Store,
    ) -> Result<Option<OrganizationId>, Fault>
    where
        Self: Resource,
    {
        Ok(None)
    }
}

/// A kind of resource. Only its owner changes a resource.
///
/// The behaviour is pure: no clock, no store, no outside world; only what gets the [`Host`] has them. A
/// refusal changes nothing.
/// [`step`] does the same for all kinds: a missing or deleted resource is not found, and a second
/// creation changes nothing.
pub trait Resource: Row + Record<Key: Id, Content = Kept<Self>> + Send {
    /// The version of the shape of [`Resource::State`]. [`Resource::upgrade`] reads older shapes.
    const SHAPE: u16 = 1;
    /// The version of [`Resource::index`]. A start writes the entries of all resources of the kind
    /// again if the store has those of an older version.
    const INDEX: u16 = 1;
    /// How long one attempt at an effect may take, unless [`Resource::time_limit`] says otherwise.
    const TIME_LIMIT: Duration = Duration::from_secs(30);
    /// The input of [`Resource::create`].
    type New: Clone + Debug + Send + 'static;
    type State: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static;
    type Command: Clone + Debug + Send + 'static;
    /// Work outside the record. A state asks for its effect until the outcome is written, so an effect may
    /// run twice and must be idempotent.
    type Effect: Clone + Debug + PartialEq + Send + Sync + 'static;
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

    /// Takes over what only the pending effect says that an earlier version of the program stored in the
    /// record.
    fn adopt(_kept: &mut Kept<Self>, _intent: &serde_json::Value) {}

    /// Runs an effect. After an error, the owner retries with growing pauses for as long as the state
    /// asks for it.
    fn perform(
        effect: Self::Effect,
        id: Self::Key,
        kept: Snapshot<Self>,
        host: Arc<Self::Host>,
    ) -> LocalBoxFuture<'static, Result<Self::Outcome, Retry>>;

    /// The outcome of an effect that ran before without an answer, for effects that must not run twice
    /// at the same time: what the first run asked for may be under way outside. `None`: the effect
    /// runs again at once.
    fn unanswered(_effect: &Self::Effect, _state: &Self::State) -> Option<Self::Outcome> {
        None
    }

    /// Whether callers no longer see a resource that cleans up after itself, or is kept for its retention.
    /// One that was hidden by [`Step::delete`] is not seen either.
    fn is_deleted(_state: &Self::State) -> bool {
        false
    }

    /// What else ends with a resource whose children are deleted.
    fn end(_state: &Self::State, _at: &Moment<Self>) -> Change {
        Change::new()
    }

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

    /// What a resource in this state takes of the quotas of its organization.
    fn uses(_state: &Self::State) -> Uses {
        Uses::default()
    }

    /// The container engines whose machines give what the resource takes of a machine, or keep it for the resource.
    /// `None` is that of the settings. An added one is not removed before.
    fn machines(_state: &Self::State) -> Vec<Option<EngineId>> {
        vec![None]
    }

    /// More engines that the resource needs, such as one on which it has left something.
    fn engines_elsewhere(_state: &Self::State) -> Vec<EngineId> {
        Vec::new()
    }

    /// What a deleted resource still takes of the quotas.
    fn uses_when_deleted(_state: &Self::State) -> Uses {
        Uses::default()
    }

    /// Whether a command only writes down what has happened already. No quota refuses it.
    fn reports(_command: &Self::Command) -> bool {
        false
    }

    /// Whether the time at which the work of this state begins or ends removes data for good that the record
    /// outlives. It waits while the clock is in doubt, and so does [`Resource::on_due`] that removes the record.
    fn expires(_state: &Self::State) -> bool {
        false
    }

    /// What of a resource in this state has ended and is kept for a time, and since when. What a deleted
    /// resource has ends with it.
    fn retained(_state: &Self::State) -> Vec<(Retention, Timestamp)> {
        Vec::new()
    }

    /// The time is over for which the retention keeps what [`Resource::retained`] names.
    fn on_retention_over(
        _state: Self::State,
        _at: &Moment<Self>,
        _retention: Retention,
    ) -> Result<Step<Self>, Fault> {
        Ok(Step::keep())
    }

    /// What must still hold when that is removed. `None`: another record needs it, so it stays.
    fn unneeded(
        _id: Self::Key,
        _state: &Self::State,
        _host: &Self::Host,
    ) -> Result<Option<Change>, Fault> {
        Ok(Some(Change::new()))
    }

    /// What a change of the state tells webhooks. [`Host::outgoing`] asks for it, and only while there are
    /// webhooks. It is written together with the change.
    fn events(
        _at: &Moment<Self>,
        _before: Option<&Self::State>,
        _after: &Self::State,
        _host: &Self::Host,
    ) -> Vec<Event> {
        Vec::new()
    }

    /// Called after a resource was removed, to tell the memory of the program about it.
    fn removed(_id: Self::Key, _before: &Self::State, _host: &Self::Host) {}

    /// Called after a change of the state was written, to tell the memory of the program about it. A
    /// crash loses that, and so may a write whose outcome is unknown. If another process wrote it, nobody knows
    /// the state before, and it is `None` then too.
    fn written(
        _id: Self::Key,
        _before: Option<&Self::State>,
        _after: &Self::State,
        _host: &Self::Host,
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
    /// That command for the children of this parent.
    fn delete_under(
        _parent: <Self::Parent as Record>::Key,
        _host: &Self::Host,
    ) -> Result<Self::Command, Fault> {
        Ok(Self::delete())
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

/// An effect failed and is retried. The text is for the log.
#[derive(Debug)]
pub struct Retry(pub String);

impl<E: std::error::Error> From<E> for Retry {
    fn from(e: E) -> Self {
        Retry(e.to_string())
    }
}

/// The effect and the outcome of kinds without effects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Never {}

/// The part of an `impl Resource` that a kind without effects needs for them.
macro_rules! without_effects {
    () => {
        type Effect = $crate::runtime::resource::Never;
        type Outcome = $crate::runtime::resource::Never;

        fn on_outcome(
            _: Self::State,
            _: &$crate::runtime::resource::Moment<Self>,
            never: Self::Outcome,
        ) -> $crate::runtime::resource::Step<Self> {
            match never {}
        }

        fn perform(
            never: Self::Effect,
            _: <Self as store::Record>::Key,
            _: store::Snapshot<Self>,
            _: std::sync::Arc<<Self as $crate::runtime::resource::Row>::Host>,
        ) -> futures_util::future::LocalBoxFuture<
            'static,
            Result<Self::Outcome, $crate::runtime::resource::Retry>,
        > {
            match never {}
        }
    };
}
pub(crate) use without_effects;
