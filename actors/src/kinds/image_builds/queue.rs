//! The queue of builds. A limited number of builds run at once on this machine, oldest id first.

use contract::Timestamp;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use ulid::Ulid;

/// How many builds run at once, of deployments and of registered images together.
const AT_A_TIME: usize = 2;
/// A waiting build polls. One that has not polled for this long leaves the queue.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);

pub struct BuildQueue {
    slots: Arc<Semaphore>,
    asked: Mutex<Asked>,
}

/// When each build last polled. The ids sort by age.
#[derive(Default)]
struct Asked {
    waiting: BTreeMap<Ulid, Timestamp>,
    /// The builds whose turn has come, and which have not begun yet.
    called: BTreeMap<Ulid, Timestamp>,
}

impl Default for BuildQueue {
    fn default() -> Self {
        BuildQueue { slots: Arc::new(Semaphore::new(AT_A_TIME)), asked: Mutex::default() }
    }
}

impl BuildQueue {
    /// Whether the build may begin now. If not, the build joins the queue and must poll again.
    pub fn is_turn(&self, id: Ulid, now: Timestamp) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let Asked { waiting, called } = &mut *asked;
        let waits = |_: &Ulid, at: &mut Timestamp| now.since(*at) < FORGOTTEN_AFTER;
        waiting.retain(waits);
        called.retain(waits);
        if let Some(at) = called.get_mut(&id) {
            *at = now;
            return true;
        }
        waiting.insert(id, now);
        let free = self.slots.available_permits().saturating_sub(called.len());
        if waiting.range(..id).count() >= free {
            return false;
        }
        waiting.remove(&id);
        called.insert(id, now);
        true
    }

    /// Waits for a slot, which is held until it is dropped. A build that was under way before a
    /// restart, or before the engine was unreachable, comes here without a turn and may have to
    /// wait. `None`: the queue is closed.
    pub async fn begin(&self, id: Ulid) -> Option<OwnedSemaphorePermit> {
        {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.waiting.remove(&id);
            asked.called.remove(&id);
        }
        self.slots.clone().acquire_owned().await.ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1000)
    }

    #[test]
    fn two_at_a_time_in_the_order_in_which_they_came() {
        let queue = BuildQueue::default();
        let turns = |ids: &[u128], now| {
            ids.iter().map(|id| queue.is_turn(Ulid(*id), at(now))).collect::<Vec<_>>()
        };
        assert_eq!(turns(&[1, 2, 3, 4], 0), [true, true, false, false]);
        let first = queue.begin(Ulid(1)).now_or_never().flatten().unwrap();
        let second = queue.begin(Ulid(2)).now_or_never().flatten().unwrap();
        assert_eq!(turns(&[4, 3], 1), [false, false]);
        drop(first);
        assert_eq!(turns(&[4, 3], 2), [false, true], "the oldest first, whoever asks first");
        assert_eq!(turns(&[3, 4], 3), [true, false], "its turn until it begins");
        drop(second);
        assert_eq!(turns(&[5, 4], 4), [false, true]);
        assert_eq!(turns(&[5], 7), [false], "two were called");
        assert_eq!(turns(&[5], 20), [true], "and do not want it any more");
    }

    #[test]
    fn no_more_than_two_begin_whoever_was_called() {
        let queue = BuildQueue::default();
        let under_way = [1, 2].map(|id| queue.begin(Ulid(id)).now_or_never().flatten().unwrap());
        assert!(queue.begin(Ulid(3)).now_or_never().is_none());
        drop(under_way);
        assert!(queue.begin(Ulid(3)).now_or_never().flatten().is_some());
    }
}
