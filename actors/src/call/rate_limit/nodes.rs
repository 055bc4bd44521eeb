//! What nodes that share a store tell each other, each second, of the calls that they let pass. What others let pass
//! is taken from the buckets here, which may owe calls then. So a caller who asks all nodes gets more than the limit
//! for a second or two, and waits for it afterwards.

use super::{Limiter, RateKey};
use crate::runtime::{
    store::Store,
    told::{self, Heard, Told},
};
use contract::authentication::Tier;
use governor::clock::Clock;
use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{Mutex, PoisonError},
};

/// What the bulletins are about.
const TOPIC: &str = "calls";
/// A bulletin has so many seconds, because some may be told before others look.
const SECONDS: usize = 4;
/// Callers of one second that are told of.
const MOST_CALLERS: usize = 10_000;

/// The calls that this node let pass and has not told of.
#[derive(Default)]
pub(super) struct Passed(Mutex<HashMap<(RateKey, Tier), u32>>);

impl Passed {
    pub(super) fn count(&self, who: RateKey, tier: Tier, cost: NonZeroU32) {
        let mut passed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = passed.contains_key(&(who, tier));
        if is_known || passed.len() < MOST_CALLERS {
            let count = passed.entry((who, tier)).or_default();
            *count = count.saturating_add(cost.get());
        }
    }

    fn take(&self) -> Second {
        let passed = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        passed.into_iter().map(|((who, tier), cost)| (who, tier, cost)).collect()
    }
}

/// The calls of one second, and what they cost.
type Second = Vec<(RateKey, Tier, u32)>;

/// What was told, and what was heard of other nodes.
#[derive(Default)]
pub struct Exchange {
    told: Told<Second>,
    heard: Heard,
}

impl Exchange {
    /// Tells what passed here since the last time, and counts what passed elsewhere.
    pub fn tick<C: Clock>(&mut self, limiter: &Limiter<C>, store: &Store) {
        let Some(passed) = &limiter.passed else { return };
        let second = passed.take();
        // Once nothing has passed for a while, there is nothing to tell.
        let is_news = !second.is_empty() || self.told.last().any(|told| !told.is_empty());
        self.told.add(second, SECONDS);
        if is_news {
            told::tell(store, TOPIC, &self.told);
        }
        self.hear(told::told(store, TOPIC), limiter);
    }

    fn hear<C: Clock>(&mut self, told: Vec<(i32, Told<Second>)>, limiter: &Limiter<C>) {
        let news = self.heard.news(told).into_iter().flat_map(|news| news.things);
        for (who, tier, cost) in news.flatten() {
            if let (Some(sizes), Some(cost)) = (limiter.of(tier), NonZeroU32::new(cost)) {
                sizes.charge(who, cost);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use governor::clock::FakeRelativeClock;
    use std::{net::IpAddr, time::Duration};

    fn limiter(clock: &FakeRelativeClock) -> Limiter<FakeRelativeClock> {
        Limiter { passed: Some(Passed::default()), ..Limiter::new(clock) }
    }

    /// What a node tells of the calls that it let pass since the last time.
    fn told(
        exchange: &mut Exchange,
        limiter: &Limiter<FakeRelativeClock>,
    ) -> Vec<(i32, Told<Second>)> {
        exchange.told.add(limiter.passed.as_ref().unwrap().take(), SECONDS);
        let text = serde_json::to_vec(&exchange.told).unwrap();
        vec![(7, serde_json::from_slice(&text).unwrap())]
    }

    #[test]
    fn what_passed_elsewhere_is_taken_once_and_paid_back() {
        let clock = FakeRelativeClock::default();
        let (here, elsewhere) = (limiter(&clock), limiter(&clock));
        let (mut hears, mut tells) = (Exchange::default(), Exchange::default());
        let who = RateKey::Address(IpAddr::from([10, 0, 0, 1]));
        let pass = |node: &Limiter<_>| {
            (0..100).filter(|_| node.take(who, Tier::Free, 1).retry_after.is_none()).count()
        };
        assert_eq!((pass(&here), pass(&elsewhere)), (60, 60), "a full bucket on each node");
        let news = told(&mut tells, &elsewhere);
        for _ in 0..3 {
            hears.hear(news.clone(), &here);
        }
        // It owes 60 calls, a minute's: a call passes after that, and one second.
        let refused = here.take(who, Tier::Free, 1).retry_after;
        assert_eq!(refused, Some(Duration::from_secs(61)));
        clock.advance(Duration::from_secs(70));
        assert_eq!(pass(&here), 10);
        // What was told of before is not counted again with what is new.
        elsewhere.take(who, Tier::Free, 5);
        let news = told(&mut tells, &elsewhere);
        clock.advance(Duration::from_secs(60));
        hears.hear(news.clone(), &here);
        assert_eq!(here.peek(who, Tier::Free).remaining, 55);
    }

    #[test]
    fn the_networks_of_a_caller_are_taken_from_too() {
        let clock = FakeRelativeClock::default();
        let (here, elsewhere) = (limiter(&clock), limiter(&clock));
        let client = |n| RateKey::address(IpAddr::from([0x2001, 0xdb8, 7, n, 0, 0, 0, 1]));
        for n in 0..4 {
            for _ in 0..60 {
                elsewhere.take(client(n), Tier::Free, 1);
            }
        }
        let news = told(&mut Exchange::default(), &elsewhere);
        Exchange::default().hear(news, &here);
        assert_eq!(here.peek(client(9), Tier::Free).remaining, 0, "a /56 makes 240 calls");
    }
}
