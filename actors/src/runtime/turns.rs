//! Limits work that occupies this machine: a number of turns in total, and fewer for one holder, such
//! as an app.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Turns are granted in the order of requests. A holder that asks for many waits for its own
/// turns first, not ahead of others.
pub struct Turns<K> {
    all: Arc<Semaphore>,
    of_each: usize,
    /// Those that hold or await a turn.
    holders: Mutex<HashMap<K, Weak<Semaphore>>>,
}

/// A turn lasts until it is dropped.
pub struct Turn {
    _of_holder: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl<K: Eq + Hash> Turns<K> {
    /// Two turns for each processor: while one job reads the disk, another computes.
    pub fn two_for_each_processor() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Turns::halved(processors.saturating_mul(2))
    }

    /// A number of turns, and at most half of them for one holder.
    pub fn halved(count: usize) -> Self {
        Turns::new(count, count.div_ceil(2))
    }

    /// A number of turns, and how many of them one holder gets at most.
    pub fn new(count: usize, of_each: usize) -> Self {
        Turns { all: Arc::new(Semaphore::new(count)), of_each, holders: Mutex::default() }
    }

    pub async fn take(&self, holder: K) -> Result<Turn, AcquireError> {
        let of_holder = self.of(holder).acquire_owned().await?;
        let of_all = self.all.clone().acquire_owned().await?;
        Ok(Turn { _of_holder: of_holder, _of_all: of_all })
    }

    fn of(&self, holder: K) -> Arc<Semaphore> {
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = holders.get(&holder).and_then(Weak::upgrade) {
            return known;
        }
        holders.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(self.of_each));
        holders.insert(holder, Arc::downgrade(&turns));
        turns
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use contract::AppId;
    use futures_util::{FutureExt, future::join_all};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn app(letter: char) -> AppId {
        let id = format!("app_01ARZ3NDEKTSV4RRFFQ69G5FA{letter}");
        id.parse().unwrap()
    }

    #[test]
    fn one_app_takes_half_and_leaves_the_rest_to_others() {
        let turns = Turns::halved(4);
        let take = |letter| turns.take(app(letter)).now_or_never().map(Result::unwrap);
        let first = (take('A').unwrap(), take('A').unwrap());
        assert!(take('A').is_none(), "half is its share");
        let second = (take('B').unwrap(), take('B').unwrap());
        assert!(take('C').is_none(), "all are taken");
        drop(second.0);
        assert!(take('A').is_none(), "half is its share still");
        assert!(take('C').is_some());
        drop(first);
        assert!(take('A').is_some());
    }

    #[test]
    fn those_who_wait_are_served_in_their_order_and_forgotten() {
        let turns = Turns::halved(1);
        let held = turns.take(app('A')).now_or_never().unwrap().unwrap();
        let mut flood = turns.take(app('A')).boxed();
        let mut other = turns.take(app('B')).boxed();
        assert!((&mut flood).now_or_never().is_none());
        assert!((&mut other).now_or_never().is_none());
        drop(held);
        // B is first in the common queue: A's second request waited for A's own turns.
        assert!(other.now_or_never().is_some());
        drop(flood);
        drop(turns.take(app('C')).now_or_never());
        assert_eq!(turns.holders.lock().unwrap().len(), 1);
    }

    #[test]
    fn never_more_than_so_many_at_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let turns = Arc::new(Turns::halved(3));
        let (busy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = (0..64).map(|n| {
            let (turns, busy, most) = (turns.clone(), busy.clone(), most.clone());
            runtime.spawn(async move {
                let _turn = turns.take(app(char::from(b'A' + n % 4))).await.unwrap();
                most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
                busy.fetch_sub(1, Ordering::SeqCst);
            })
        });
        let work: Vec<_> = work.collect();
        runtime.block_on(join_all(work)).into_iter().for_each(Result::unwrap);
        assert!(most.load(Ordering::SeqCst) <= 3);
    }
}
