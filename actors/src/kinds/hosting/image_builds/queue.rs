//! The queue of builds. A limited number of builds run at once on this machine. Tenants share them
//! fairly; the builds of one tenant run in the order of their ids, the oldest first.

use crate::runtime::{
    clock::Clock,
    turns::{NoTurn, Tenant, Turn, Turns, Waiting},
};
use contract::{OrganizationId, Timestamp};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use ulid::Ulid;

/// How many builds run at once, of deployments and of registered images together.
const AT_A_TIME: usize = 3;
/// How many of them are of one tenant: the next one finds a turn, however long these take.
const OF_TENANT: usize = 2;
/// A waiting build polls. One that has not polled for this long leaves the queue.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);

pub struct BuildQueue {
    turns: Turns<Tenant>,
    /// The builds that wait, and those whose turn has come and which have not begun, each with the
    /// time when it last polled.
    asked: Mutex<HashMap<Ulid, (Waiting<Tenant>, Timestamp)>>,
}

/// A build in the queue.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    pub id: Ulid,
    pub tenant: Tenant,
    /// Whose quotas the build uses. `None`: it is the service's own.
    pub organization: Option<OrganizationId>,
}

impl Default for BuildQueue {
    fn default() -> Self {
        BuildQueue { turns: Turns::new(AT_A_TIME, OF_TENANT), asked: Mutex::default() }
    }
}

impl BuildQueue {
    /// Whether the build may begin now. If not, the build joins the queue and must poll again.
    pub fn is_turn(&self, build: Ticket, now: Timestamp) -> Result<bool, NoTurn> {
        let mut asked = self.asked();
        if let Some((asked, polled)) = asked.get_mut(&build.id) {
            *polled = now;
            if asked.is_granted() {
                return Ok(true);
            }
        } else {
            asked.insert(build.id, (self.ask(build)?, now));
        }
        forget(&mut asked, now);
        Ok(asked.get(&build.id).is_some_and(|(asked, _)| asked.is_granted()))
    }

    /// Waits for a turn. A build that was under way before a restart, or before the engine was
    /// unreachable, comes here without a turn and may have to wait.
    pub async fn begin(&self, build: Ticket, clock: &Clock) -> Result<Turn<Tenant>, NoTurn> {
        let polled = self.asked().remove(&build.id);
        let mut asked = match polled {
            Some((asked, _)) => asked,
            None => self.ask(build)?,
        };
        loop {
            if let Some(turn) = clock.limit(FORGOTTEN_AFTER, &mut asked).await {
                return Ok(turn);
            }
            // Another build may have got a turn and not want it any more.
            forget(&mut self.asked(), clock.now());
        }
    }

    fn ask(&self, build: Ticket) -> Result<Waiting<Tenant>, NoTurn> {
        self.turns.ask(build.tenant, build.id.0)
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<Ulid, (Waiting<Tenant>, Timestamp)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the builds that do not poll any more.
fn forget(asked: &mut HashMap<Ulid, (Waiting<Tenant>, Timestamp)>, now: Timestamp) {
    asked.retain(|_, (_, polled)| now.since(*polled) < FORGOTTEN_AFTER);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::manual_clock::ManualClock;
    use contract::{Id, UserId};
    use futures_util::FutureExt;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1000)
    }

    fn of(tenant: u128, id: u128) -> Ticket {
        Ticket { id: Ulid(id), tenant: Tenant::User(UserId::of(Ulid(tenant))), organization: None }
    }

    #[test]
    fn two_of_a_tenant_at_a_time_in_the_order_in_which_they_came() {
        let (queue, clock) = (BuildQueue::default(), ManualClock::new(at(0)).port());
        let turns = |ids: &[u128], now| {
            let turns = ids.iter().map(|id| queue.is_turn(of(1, *id), at(now)).unwrap());
            turns.collect::<Vec<_>>()
        };
        let begin = |id| queue.begin(of(1, id), &clock).now_or_never().unwrap().unwrap();
        assert_eq!(turns(&[1, 2, 3, 4], 0), [true, true, false, false]);
        let (first, second) = (begin(1), begin(2));
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
    fn no_more_than_two_of_a_tenant_begin_whoever_was_called() {
        let (queue, clock) = (BuildQueue::default(), ManualClock::new(at(0)).port());
        let begin = |id| queue.begin(of(1, id), &clock).now_or_never().map(Result::unwrap);
        let under_way = [1, 2].map(|id| begin(id).unwrap());
        assert!(begin(3).is_none());
        drop(under_way);
        assert!(begin(3).is_some());
    }

    #[test]
    fn the_next_turn_goes_to_another_tenant_however_many_wait_before() {
        let (queue, clock) = (BuildQueue::default(), ManualClock::new(at(0)).port());
        let begin = |id| queue.begin(of(1, id), &clock).now_or_never().unwrap().unwrap();
        for id in 1..200 {
            queue.is_turn(of(1, id), at(0)).unwrap();
        }
        let [first, _second] = [begin(1), begin(2)];
        assert!(queue.is_turn(of(2, 900), at(1)).unwrap(), "one turn is left for others");
        assert!(!queue.is_turn(of(3, 901), at(1)).unwrap());
        drop(first);
        assert!(queue.is_turn(of(3, 901), at(2)).unwrap());
        assert!(!queue.is_turn(of(1, 3), at(2)).unwrap());
    }
}
