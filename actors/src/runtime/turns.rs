//! Limits work that occupies this machine or its connections: a number of turns in total, shared
//! fairly by those for whom the work is done.
//!
//! A free turn goes to the holder that has the fewest. Of several, it goes to the one that has waited
//! for the longest since it began to wait, or since a turn of it began or ended. So a holder with a thousand requests
//! does not delay the first request of another, and nobody waits for ever.

use contract::{Fault, OrganizationId, UserId};
use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};
use tokio::sync::oneshot;

/// For whom work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tenant {
    /// All members of an organization together.
    Organization(OrganizationId),
    /// An account, for work that concerns no organization.
    User(UserId),
    /// A caller without an account: the address, or the network of an IPv6 address.
    Address(IpAddr),
    /// The operator of this service, and what all tenants use.
    Service,
}

/// How many requests of one holder wait at most.
const WAITING_OF_EACH: usize = 1_024;
/// How many requests wait at most. Beyond it, a holder with few that wait is let in still, so that
/// nobody is kept out by others.
const WAITING: usize = 16 * WAITING_OF_EACH;
const FEW: usize = 16;
/// The pause, in seconds, after which a caller that may not even wait tries again.
const AGAIN_AFTER: u64 = 5;

/// A number of turns. Requests of one holder are served by rank, and in the order in which they came.
#[derive(Clone)]
pub struct Turns<K: Eq + Hash + Copy>(Arc<Mutex<Queue<K>>>);

/// Why a request for a turn was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoTurn {
    #[error("too much work of this organization is waiting for its turn")]
    OfHolder,
    #[error("too much work is waiting for its turn")]
    OfAll,
}

impl From<NoTurn> for Fault {
    fn from(why: NoTurn) -> Self {
        match why {
            NoTurn::OfHolder => Fault::TooMany { what: why.to_string(), retry_after: AGAIN_AFTER },
            NoTurn::OfAll => Fault::Busy,
        }
    }
}

/// A turn lasts until it is dropped.
pub struct Turn<K: Eq + Hash + Copy> {
    turns: Turns<K>,
    holder: K,
    place: Place,
}

/// A request that waits for its turn. Dropped, it leaves the queue.
#[must_use = "a request that is dropped leaves the queue"]
pub struct Asked<K: Eq + Hash + Copy> {
    /// Taken by the end of the wait.
    turn: Option<Turn<K>>,
    granted: oneshot::Receiver<()>,
}

/// The rank of a request, and the number of requests before it.
type Place = (u128, u64);

struct Queue<K> {
    free: usize,
    of_each: usize,
    waiting: usize,
    most_waiting: usize,
    most_waiting_of_each: usize,
    /// Counts requests and turns.
    time: u64,
    /// Those that have or await a turn.
    holders: HashMap<K, Holder>,
}

struct Holder {
    taken: usize,
    waiting: BTreeMap<Place, oneshot::Sender<()>>,
    /// When it began to wait, or a turn of it began or ended last.
    since: u64,
}

impl<K: Eq + Hash + Copy> Turns<K> {
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
        Turns::with(count, of_each, WAITING)
    }

    /// A number of turns for each holder, whatever the others do.
    pub fn apart(of_each: usize) -> Self {
        Turns::with(usize::MAX, of_each, usize::MAX)
    }

    fn with(free: usize, of_each: usize, most_waiting: usize) -> Self {
        let holders = HashMap::new();
        Turns(Arc::new(Mutex::new(Queue {
            free,
            of_each,
            waiting: 0,
            most_waiting,
            most_waiting_of_each: WAITING_OF_EACH,
            time: 0,
            holders,
        })))
    }

    /// Sets how many requests wait at most, and of one holder.
    pub fn waiting(self, most: usize, of_each: usize) -> Self {
        let mut queue = self.queue();
        (queue.most_waiting, queue.most_waiting_of_each) = (most, of_each);
        drop(queue);
        self
    }

    /// Waits for a turn.
    pub async fn take(&self, holder: K) -> Result<Turn<K>, NoTurn> {
        Ok(self.ask(holder, 0)?.await)
    }

    /// Asks for a turn without waiting. Lower ranks of the same holder come first.
    pub fn ask(&self, holder: K, rank: u128) -> Result<Asked<K>, NoTurn> {
        let mut queue = self.queue();
        let waiting = queue.holders.get(&holder).map_or(0, |holder| holder.waiting.len());
        if waiting >= queue.most_waiting_of_each {
            return Err(NoTurn::OfHolder);
        }
        if queue.waiting >= queue.most_waiting && waiting >= FEW {
            return Err(NoTurn::OfAll);
        }
        queue.time += 1;
        let (since, place) = (queue.time, (rank, queue.time));
        let (tell, granted) = oneshot::channel();
        let new = || Holder { taken: 0, waiting: BTreeMap::new(), since };
        let of_holder = queue.holders.entry(holder).or_insert_with(new);
        if of_holder.waiting.is_empty() {
            of_holder.since = since;
        }
        of_holder.waiting.insert(place, tell);
        queue.waiting += 1;
        queue.grant();
        Ok(Asked { turn: Some(Turn { turns: self.clone(), holder, place }), granted })
    }

    fn queue(&self) -> MutexGuard<'_, Queue<K>> {
        // No code under the lock can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Queue<K> {
    /// Gives the free turns to those that wait.
    fn grant(&mut self) {
        while self.free > 0 {
            let may =
                |holder: &&mut Holder| holder.taken < self.of_each && !holder.waiting.is_empty();
            let waiting = self.holders.values_mut().filter(may);
            let Some(next) = waiting.min_by_key(|holder| (holder.taken, holder.since)) else {
                return;
            };
            if let Some((_, tell)) = next.waiting.pop_first() {
                // Whoever does not listen any more returns the turn.
                let _ = tell.send(());
            }
            self.time += 1;
            (next.taken, next.since) = (next.taken + 1, self.time);
            (self.free, self.waiting) = (self.free - 1, self.waiting - 1);
        }
    }
}

impl<K: Eq + Hash + Copy> Asked<K> {
    /// Whether its turn has come.
    pub fn is_granted(&self) -> bool {
        let Some(turn) = &self.turn else { return true };
        let queue = turn.turns.queue();
        let holder = queue.holders.get(&turn.holder);
        holder.is_some_and(|holder| !holder.waiting.contains_key(&turn.place))
    }
}

impl<K: Eq + Hash + Copy> Unpin for Asked<K> {}

impl<K: Eq + Hash + Copy> Future for Asked<K> {
    type Output = Turn<K>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Turn<K>> {
        // A sender is dropped only when it has sent, or with the request.
        let granted = Pin::new(&mut self.granted).poll(cx).is_ready();
        match granted.then(|| self.turn.take()).flatten() {
            Some(turn) => Poll::Ready(turn),
            None => Poll::Pending,
        }
    }
}

impl<K: Eq + Hash + Copy> Drop for Turn<K> {
    fn drop(&mut self) {
        let mut queue = self.turns.queue();
        queue.time += 1;
        let now = queue.time;
        let Some(holder) = queue.holders.get_mut(&self.holder) else { return };
        let waited = holder.waiting.remove(&self.place).is_some();
        if !waited {
            (holder.taken, holder.since) = (holder.taken - 1, now);
        }
        if holder.taken == 0 && holder.waiting.is_empty() {
            queue.holders.remove(&self.holder);
        }
        if waited {
            queue.waiting -= 1;
        } else {
            queue.free += 1;
            queue.grant();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{FutureExt, future::join_all};
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn is_empty<K: Eq + Hash + Copy>(turns: &Turns<K>) -> bool {
        let queue = turns.queue();
        queue.holders.is_empty() && queue.waiting == 0
    }

    #[test]
    fn one_takes_half_and_leaves_the_rest_to_others() {
        let turns = Turns::halved(4);
        let take = |holder| turns.take(holder).now_or_never().map(Result::unwrap);
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
    fn the_first_request_of_another_does_not_wait_for_a_thousand() {
        let turns = Turns::new(2, 2);
        let held = [(); 2].map(|()| turns.take('A').now_or_never().unwrap().unwrap());
        let flood: Vec<_> = (0..1_000).map(|_| turns.ask('A', 0).unwrap()).collect();
        let other = turns.ask('B', 0).unwrap();
        let [first, second] = held;
        drop(first);
        assert!(other.is_granted() && flood.iter().all(|asked| !asked.is_granted()));
        drop(second);
        assert!(flood.first().unwrap().is_granted());
        drop((flood, other));
        assert!(is_empty(&turns), "nobody is remembered");
    }

    #[test]
    fn ranks_count_among_the_requests_of_one_holder_only() {
        let turns = Turns::new(1, 1);
        let held = turns.take('A').now_or_never().unwrap().unwrap();
        let [late, early] = [9, 3].map(|rank| turns.ask('A', rank).unwrap());
        let other = turns.ask('B', 5).unwrap();
        drop(held);
        assert!(other.is_granted());
        drop(other);
        assert!(early.is_granted() && !late.is_granted());
    }

    #[test]
    fn too_many_that_wait_are_refused() {
        let turns = Turns::new(0, 1);
        let waiting: Vec<_> = (0..WAITING_OF_EACH).map(|_| turns.ask(0, 0).unwrap()).collect();
        assert_eq!(turns.ask(0, 0).err(), Some(NoTurn::OfHolder));
        let others = (1..16).flat_map(|holder| vec![holder; WAITING_OF_EACH]);
        let others: Vec<_> = others.map(|holder| turns.ask(holder, 0).unwrap()).collect();
        let late: Vec<_> = (0..FEW).map(|_| turns.ask(99, 0).unwrap()).collect();
        assert_eq!(turns.ask(99, 0).err(), Some(NoTurn::OfAll));
        drop(waiting);
        assert!(turns.ask(0, 0).is_ok() && turns.ask(99, 0).is_ok());
        drop((others, late));
        assert!(is_empty(&turns));
        assert_eq!(Fault::from(NoTurn::OfHolder).status(), 429);
        assert_eq!(Fault::from(NoTurn::OfAll).status(), 503);
    }

    #[test]
    fn never_more_than_so_many_at_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let turns = Turns::halved(3);
        let (busy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let work = (0..64).map(|n| {
            let (turns, busy, most) = (turns.clone(), busy.clone(), most.clone());
            runtime.spawn(async move {
                let _turn = turns.take(n % 4).await.unwrap();
                most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
                busy.fetch_sub(1, Ordering::SeqCst);
            })
        });
        let work: Vec<_> = work.collect();
        runtime.block_on(join_all(work)).into_iter().for_each(Result::unwrap);
        assert!(most.load(Ordering::SeqCst) <= 3 && is_empty(&turns));
    }

    #[test]
    fn sixteen_threads_leave_nothing_behind() {
        let turns = Turns::new(3, 2);
        std::thread::scope(|threads| {
            for n in 0..16_usize {
                let turns = &turns;
                threads.spawn(move || {
                    for rank in 0..500 {
                        let asked = turns.ask(n % 5, rank).unwrap();
                        if rank % 3 > 0 {
                            drop(futures_util::FutureExt::now_or_never(asked));
                        }
                    }
                });
            }
        });
        assert!(is_empty(&turns) && turns.queue().free == 3);
    }

    /// What happens to the turns: a request of a holder, or the end of one of its requests.
    #[derive(Debug, Clone, Copy)]
    enum Event {
        Ask(u8, u8),
        End(usize),
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let event = prop_oneof![
            3 => (0..6_u8, 0..4_u8).prop_map(|(holder, rank)| Event::Ask(holder, rank)),
            2 => (0..64_usize).prop_map(Event::End),
        ];
        proptest::collection::vec(event, 0..200)
    }

    struct Request {
        holder: u8,
        asked: Asked<u8>,
        /// How many turns others may get before it, if it was the first of a holder without a turn.
        patience: Option<usize>,
    }

    fn taken(requests: &[Request], holder: u8) -> usize {
        requests.iter().filter(|r| r.holder == holder && r.asked.is_granted()).count()
    }

    fn waits(requests: &[Request], holder: u8) -> bool {
        requests.iter().any(|r| r.holder == holder && !r.asked.is_granted())
    }

    proptest! {
        /// No turn is idle while somebody may have it. Whoever waits without a turn is overtaken by
        /// each other holder at most once.
        #[test]
        fn turns_are_shared_fairly(events in events(), count in 1..5_usize, of_each in 1..4_usize) {
            let turns = Turns::new(count, of_each);
            let mut requests: Vec<Request> = Vec::new();
            for event in events {
                let granted = requests.iter().filter(|r| r.asked.is_granted()).count();
                let mut ended = 0;
                match event {
                    Event::Ask(holder, rank) => {
                        let is_first = taken(&requests, holder) == 0 && !waits(&requests, holder);
                        let ahead = (0..6).filter(|other| waits(&requests, *other)).count();
                        let asked = turns.ask(holder, rank.into()).unwrap();
                        requests.push(Request { holder, asked, patience: is_first.then_some(ahead) });
                    }
                    Event::End(n) if !requests.is_empty() => {
                        let request = requests.swap_remove(n % requests.len());
                        ended = usize::from(request.asked.is_granted());
                        // Another request of the holder may now be its first.
                        for other in &mut requests {
                            if other.holder == request.holder {
                                other.patience = None;
                            }
                        }
                    }
                    Event::End(_) => {}
                }
                let now_granted = requests.iter().filter(|r| r.asked.is_granted()).count();
                prop_assert!(now_granted <= count);
                for holder in 0..6 {
                    let taken = taken(&requests, holder);
                    prop_assert!(taken <= of_each);
                    let may = waits(&requests, holder) && taken < of_each;
                    prop_assert!(!may || now_granted == count, "a turn is idle");
                }
                let given = now_granted + ended - granted;
                for request in &mut requests {
                    if request.asked.is_granted() || taken_by_any(&turns, request.holder) > 0 {
                        request.patience = None;
                    } else if let Some(patience) = &mut request.patience {
                        prop_assert!(*patience >= given, "overtaken twice");
                        *patience -= given;
                    }
                }
            }
            drop(requests);
            prop_assert!(is_empty(&turns) && turns.queue().free == count);
        }
    }

    fn taken_by_any(turns: &Turns<u8>, holder: u8) -> usize {
        turns.queue().holders.get(&holder).map_or(0, |holder| holder.taken)
    }
}
