//! Limits work that occupies this machine or its connections: a number of turns in total, shared
//! fairly by those for whom the work is done.
//!
//! A free turn goes to the holder that has the fewest. Of several, it goes to the one that has waited
//! for the longest since it began to wait, or since a turn of it began or ended. So a holder with a
//! thousand requests does not delay the first request of another, and nobody waits for ever.

#[cfg(test)]
mod tests;

use contract::{Fault, UserId};
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
    /// An account, with everything that belongs to the organizations that it owns.
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
    #[error("too much work of the owner of this organization is waiting for its turn")]
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
pub struct Waiting<K: Eq + Hash + Copy> {
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
    pub fn ask(&self, holder: K, rank: u128) -> Result<Waiting<K>, NoTurn> {
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
        Ok(Waiting { turn: Some(Turn { turns: self.clone(), holder, place }), granted })
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

impl<K: Eq + Hash + Copy> Waiting<K> {
    /// Whether its turn has come.
    pub fn is_granted(&self) -> bool {
        let Some(turn) = &self.turn else { return true };
        let queue = turn.turns.queue();
        let holder = queue.holders.get(&turn.holder);
        holder.is_some_and(|holder| !holder.waiting.contains_key(&turn.place))
    }
}

impl<K: Eq + Hash + Copy> Unpin for Waiting<K> {}

impl<K: Eq + Hash + Copy> Future for Waiting<K> {
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
