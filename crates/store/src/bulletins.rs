//! What processes that share the rows tell each other each second, and nobody needs later: the last text on each
//! topic.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What another process told last on a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bulletin {
    /// The process, by a number that no other one has had.
    pub node: i32,
    /// What it told.
    pub text: Arc<[u8]>,
}

/// The bulletins of this process, and those of others.
#[derive(Default)]
pub(crate) struct Bulletins {
    own: Mutex<BTreeMap<&'static str, Vec<u8>>>,
    of_others: Mutex<BTreeMap<String, Vec<Bulletin>>>,
}

impl Bulletins {
    pub(crate) fn post(&self, topic: &'static str, text: Vec<u8>) {
        locked(&self.own).insert(topic, text);
    }

    pub(crate) fn of_others(&self, topic: &str) -> Vec<Bulletin> {
        locked(&self.of_others).get(topic).cloned().unwrap_or_default()
    }

    /// What this process tells, once.
    pub(crate) fn take_own(&self) -> BTreeMap<&'static str, Vec<u8>> {
        std::mem::take(&mut *locked(&self.own))
    }

    /// What could not be told is told the next time, unless something newer was posted.
    pub(crate) fn take_back(&self, own: BTreeMap<&'static str, Vec<u8>>) {
        let mut newer = locked(&self.own);
        for (topic, text) in own {
            newer.entry(topic).or_insert(text);
        }
    }

    pub(crate) fn heard(&self, of_others: BTreeMap<String, Vec<Bulletin>>) {
        *locked(&self.of_others) = of_others;
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
