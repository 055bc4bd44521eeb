//! One edit of an app at a time: a new edit ends the one before it.

use crate::RemoteError;
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
pub(super) struct Leases(Mutex<HashMap<String, Lease>>);

struct Lease {
    holder: Holder,
    is_urgent: bool,
    renewed: Instant,
}

impl Leases {
    /// Takes an app, or renews the lease. What is urgent, such as a halt, takes it from what is not:
    /// an upload may take an hour, and begins again then.
    pub fn take(&self, package: &str, holder: Holder, is_urgent: bool) -> Result<(), RemoteError> {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leases.retain(|_, lease| lease.renewed.elapsed() < HELD_FOR);
        let is_free = leases.get(package).is_none_or(|lease| {
            lease.holder == holder && holder != Holder::Check || is_urgent && !lease.is_urgent
        });
        if !is_free {
            let why = format!("Another publication of {package} is being sent to Google Play.");
            return Err(RemoteError::Busy { why, after: PAUSE });
        }
        leases.insert(package.to_owned(), Lease { holder, is_urgent, renewed: Instant::now() });
        Ok(())
    }

    /// Gives an app back.
    pub fn give_back(&self, package: &str, holder: Holder) {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if leases.get(package).is_some_and(|lease| lease.holder == holder) {
            leases.remove(package);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_publication_at_a_time_edits_an_app_and_a_halt_does_not_wait() {
        let leases = Leases::default();
        let holder =
            |n| Holder::Publication(format!("pub_01J9ZQ8F5W7V3T6M2K4N8R000{n}").parse().unwrap());
        leases.take("a", holder(1), false).unwrap();
        leases.take("a", holder(1), false).unwrap();
        leases.take("b", holder(2), false).unwrap();
        for other in [holder(2), Holder::Check] {
            let busy = leases.take("a", other, false).unwrap_err();
            assert!(matches!(busy, RemoteError::Busy { after: PAUSE, .. }));
            leases.give_back("a", other);
        }
        leases.take("a", holder(3), true).unwrap();
        leases.take("a", holder(1), false).unwrap_err();
        leases.take("a", holder(4), true).unwrap_err();
        leases.give_back("a", holder(3));
        leases.take("a", Holder::Check, false).unwrap();
        leases.take("a", Holder::Check, false).unwrap_err();
    }
}
