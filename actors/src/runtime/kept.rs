//! The record of a resource.

use super::{resource::Resource, uses::Uses, work::Work};
use contract::{Timestamp, retention::Retention};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    fmt::{self, Debug},
    ops::Deref,
};
use store::Snapshot;

/// The record of a resource: its state, and whether its owner is awake for it.
#[derive(Serialize)]
#[serde(bound = "")]
pub struct Kept<R: Resource> {
    pub state: R::State,
    /// Whether the resource is being deleted: nobody sees it, and it ends when its children are gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// Whether the owner has begun the work that the state asks for, or waits for it in memory. Otherwise
    /// the sweeper wakes the owner.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub awake: bool,
    /// How many commands have begun the work [anew](super::step::Step::anew). What began before the last of them
    /// is over, also on another node.
    #[serde(skip_serializing_if = "is_zero")]
    pub begun_anew: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The work that a record asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Task<E> {
    /// An effect of the kind.
    Perform(E),
    /// Tell the children to delete themselves.
    Empty,
}

impl<'de, R: Resource> Deserialize<'de> for Kept<R> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Stored<S> {
            state: S,
            #[serde(default)]
            deleting: bool,
            #[serde(default)]
            awake: bool,
            #[serde(default)]
            begun_anew: u64,
            /// The pending effect, which earlier versions stored.
            intent: Option<Value>,
        }
        let Stored { state, deleting, awake, begun_anew, intent } =
            Stored::<R::State>::deserialize(d)?;
        let mut kept = Kept { state, deleting, awake, begun_anew };
        if let Some(intent) = intent {
            kept.awake = true;
            R::adopt(&mut kept, &intent);
        }
        Ok(kept)
    }
}

impl<R: Resource> Debug for Kept<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("state", &self.state)
            .field("deleting", &self.deleting)
            .field("awake", &self.awake)
            .field("begun_anew", &self.begun_anew)
            .finish()
    }
}

impl<R: Resource> Clone for Kept<R> {
    fn clone(&self) -> Self {
        let Kept { deleting, awake, begun_anew, .. } = *self;
        Kept { state: self.state.clone(), deleting, awake, begun_anew }
    }
}

impl<R: Resource> Kept<R> {
    /// The record of a state that asks for no work now.
    pub fn at_rest(state: R::State) -> Self {
        Kept { state, deleting: false, awake: false, begun_anew: 0 }
    }

    /// Whether callers do not see the resource.
    pub fn is_deleted(&self) -> bool {
        self.deleting || R::is_deleted(&self.state)
    }

    /// What the resource takes of the quotas of its organization.
    pub fn uses(&self) -> Uses {
        if self.is_deleted() { R::uses_when_deleted(&self.state) } else { R::uses(&self.state) }
    }

    /// What of the resource has ended and is kept for a time, and since when.
    pub fn retained(&self) -> Vec<(Retention, Timestamp)> {
        if self.is_deleted() { Vec::new() } else { R::retained(&self.state) }
    }

    /// Whether something ended before this time that the retention keeps.
    pub(super) fn has_retained(&self, retention: Retention, before: Timestamp) -> bool {
        self.retained().into_iter().any(|(of, since)| of == retention && since < before)
    }

    /// Whether the resource takes this command. One that is being deleted takes none.
    pub(super) fn accepts(&self, command: &R::Command) -> bool {
        !self.deleting && (!R::is_deleted(&self.state) || R::accepts_deleted(command))
    }

    /// What the owner of the resource is to do: what the state asks for, or to delete the children.
    pub fn work(&self) -> Option<Work<Task<R::Effect>>> {
        work::<R>(&self.state, self.deleting)
    }

    /// The task that is under way, or that the owner is about to begin. `None`: the resource is idle.
    pub fn task(&self) -> Option<Task<R::Effect>> {
        self.work().filter(|_| self.awake)?.effect
    }

    /// Whether the owner has work that does not wait for a later time.
    pub fn is_at_work(&self, now: Timestamp) -> bool {
        let begins = self.work().and_then(|work| work.at);
        self.task().is_some() && begins.is_none_or(|at| at <= now)
    }

    /// The effect of the kind that is under way, or about to begin.
    pub fn pending(&self) -> Option<R::Effect> {
        match self.task()? {
            Task::Perform(effect) => Some(effect),
            Task::Empty => None,
        }
    }
}

pub(super) fn work<R: Resource>(
    state: &R::State,
    is_deleting: bool,
) -> Option<Work<Task<R::Effect>>> {
    match is_deleting {
        true => Some(Work::now(Task::Empty)),
        false => R::next(state).map(|work| work.map(Task::Perform)),
    }
}

impl<R: Resource> Deref for Kept<R> {
    type Target = R::State;
    fn deref(&self) -> &R::State {
        &self.state
    }
}

/// The state of a resource, as a snapshot of its record has it. Clones share it.
pub struct StateOf<R: Resource>(pub(super) Snapshot<R>);

impl<R: Resource> Clone for StateOf<R> {
    fn clone(&self) -> Self {
        StateOf(self.0.clone())
    }
}

impl<R: Resource> fmt::Debug for StateOf<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.state.fmt(f)
    }
}

impl<R: Resource> Deref for StateOf<R> {
    type Target = R::State;
    fn deref(&self) -> &R::State {
        &self.0.state
    }
}
