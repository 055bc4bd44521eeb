//! The record of a resource.

use super::resource::Resource;
use serde::{Deserialize, Serialize};
use std::{
    fmt::{self, Debug},
    ops::Deref,
};

/// The record of a resource: its state, and whether its owner is awake for it.
#[derive(Serialize)]
#[serde(bound = "")]
pub struct Kept<R: Resource> {
    pub state: R::State,
    /// Whether the owner has begun the work that the state asks for, or waits for it in memory. Otherwise
    /// the sweeper wakes the owner.
    pub awake: bool,
}

impl<'de, R: Resource> Deserialize<'de> for Kept<R> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Stored<S, E> {
            state: S,
            #[serde(default)]
            awake: bool,
            /// Earlier versions stored the effect itself.
            intent: Option<Pending<E>>,
        }
        /// The program may have an effect no longer that an earlier version stored.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Pending<E> {
            Known(E),
            Unknown(serde::de::IgnoredAny),
        }
        let Stored { mut state, awake, intent } = Stored::<R::State, R::Effect>::deserialize(d)?;
        if let Some(Pending::Known(effect)) = &intent {
            R::adopt(&mut state, effect);
        }
        Ok(Kept { state, awake: awake || intent.is_some() })
    }
}

impl<R: Resource> Debug for Kept<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("state", &self.state).field("awake", &self.awake).finish()
    }
}

impl<R: Resource> Clone for Kept<R> {
    fn clone(&self) -> Self {
        Kept { state: self.state.clone(), awake: self.awake }
    }
}

impl<R: Resource> Kept<R> {
    /// The record of a state that asks for no work now.
    pub fn at_rest(state: R::State) -> Self {
        Kept { state, awake: false }
    }

    /// The effect that is under way, or that the owner is about to begin. `None`: the resource is idle.
    pub fn pending(&self) -> Option<R::Effect> {
        R::next(&self.state).filter(|_| self.awake)?.effect
    }
}

impl<R: Resource> Deref for Kept<R> {
    type Target = R::State;
    fn deref(&self) -> &R::State {
        &self.state
    }
}
