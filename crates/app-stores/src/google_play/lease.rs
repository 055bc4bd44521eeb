//! One edit of an app at a time: a new edit ends the one before it.

use crate::StoreError;
use contract::PublicationId;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How long a publication holds an app after its last step. Then its caller has given up.
const HELD_FOR: Duration = Duration::from_secs(600);
/// The pause of those who wait.
const PAUSE: Duration = Duration::from_secs(5);

/// Who edits an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    Publication(PublicationId),
    /// A check of a key, which is over in seconds.
    Check,
}

/// The apps that are being edited by this process, by package name.
#[derive(Default)]
pub(super) struct Leases(Mutex<HashMap<String, (Holder, Instant)>>);

impl Leases {
    /// Takes an app, or renews the lease.
    pub fn take(&self, package: &str, holder: Holder) -> Result<(), StoreError> {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leases.retain(|_, (_, renewed)| renewed.elapsed() < HELD_FOR);
        match leases.get(package) {
            Some((other, _)) if *other != holder || holder == Holder::Check => {
                Err(StoreError::Busy {
                    why: format!("Another publication of {package} is being sent to Google Play."),
                    after: PAUSE,
                })
            }
            _ => {
                leases.insert(package.to_owned(), (holder, Instant::now()));
                Ok(())
            }
        }
    }

    /// Gives an app back.
    pub fn give_back(&self, package: &str, holder: Holder) {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if leases.get(package).is_some_and(|(other, _)| *other == holder) {
            leases.remove(package);
        }
    }
}
