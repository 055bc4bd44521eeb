//! What this process uses of the engine's machine, by name.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The names in use.
#[derive(Clone, Default)]
pub(in crate::docker) struct InUse(Arc<Mutex<HashSet<String>>>);

/// The right to use what has this name, until it is dropped.
pub(in crate::docker) struct Taken {
    name: String,
    all: InUse,
}

impl InUse {
    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has(&self, name: &str) -> bool {
        self.names().contains(name)
    }

    /// Takes the name, unless it is in use.
    pub fn take(&self, name: &str) -> Option<Taken> {
        let is_free = self.names().insert(name.to_owned());
        is_free.then(|| Taken { name: name.to_owned(), all: self.clone() })
    }
}

impl Taken {
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.all.names().remove(&self.name);
    }
}
