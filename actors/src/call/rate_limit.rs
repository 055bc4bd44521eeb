//! The rate limit: GCRA with one bucket for each caller. A bucket holds the calls of one minute.

use contract::{Fault, UserId, authentication::Tier};
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::StateInformationMiddleware,
    nanos::Nanos,
    state::{
        NotKeyed, StateStore,
        keyed::{DashMapStateStore, ShrinkableKeyedStateStore},
    },
};
use std::{
    convert::Infallible,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    time::Duration,
};

/// The caller that a bucket counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateKey {
    /// An account, whatever its credential.
    User(UserId),
    /// The address of a caller without an account, as [`network`] returns it.
    Address(IpAddr),
}

impl RateKey {
    pub fn address(address: IpAddr) -> Self {
        RateKey::Address(network(address))
    }
}

/// The part of an address that stands for one client: all of IPv4, the first 64 bits of IPv6. A
/// client has the other 64 bits to itself.
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

/// The calls that a caller has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Calls a minute; [`UNLIMITED`] if there is no limit.
    pub limit: u32,
    pub remaining: u32,
    /// The time until the bucket is full again.
    pub full_in: Duration,
    /// The time until a call passes, if this call is refused.
    pub retry_after: Option<Duration>,
}

/// The limit on the wire of a caller without a limit.
pub const UNLIMITED: u32 = 2_147_483_647;

impl Allowance {
    /// Refuses the call if the caller had no call left.
    pub fn check(&self) -> Result<(), Fault> {
        match self.retry_after {
            Some(wait) => Err(Fault::RateLimited { retry_after: wait.as_secs() + 1 }),
            None => Ok(()),
        }
    }

    /// The allowance of a caller without a limit.
    pub const fn unlimited() -> Self {
        Allowance {
            limit: UNLIMITED,
            remaining: UNLIMITED,
            full_in: Duration::ZERO,
            retry_after: None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Ask {
    /// Take calls from the bucket.
    Take(RateKey),
    /// Tell whether the calls could be taken, and take none.
    Look(RateKey),
}

/// The buckets as governor stores them. governor takes every call that it grants, and makes a
/// bucket for every key. This store does neither for an [`Ask::Look`].
#[derive(Default)]
struct Kept(DashMapStateStore<RateKey>);

impl StateStore for Kept {
    type Key = Ask;

    fn measure_and_replace<T, F, E>(&self, ask: &Ask, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let look = |full_at| decide(full_at).map(|(granted, _)| granted);
        match ask {
            Ask::Take(who) => self.0.measure_and_replace(who, decide),
            Ask::Look(who) => match self.0.get(who) {
                None => look(None),
                Some(bucket) => {
                    let refuse = |full_at| Err::<(Infallible, Nanos), _>(look(full_at));
                    let Err(answer) = bucket.measure_and_replace(&NotKeyed::NonKey, refuse);
                    answer
                }
            },
        }
    }
}

impl ShrinkableKeyedStateStore<Ask> for Kept {
    fn retain_recent(&self, drop_below: Nanos) {
        self.0.retain_recent(drop_below);
    }

    fn shrink_to_fit(&self) {
        self.0.shrink_to_fit();
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The buckets of one tier. Each holds the calls of one minute.
struct Buckets<C: Clock> {
    size: NonZeroU32,
    rate: RateLimiter<Ask, Kept, C, StateInformationMiddleware>,
}

impl<C: Clock> Buckets<C> {
    fn new(size: NonZeroU32, clock: C) -> Self {
        let rate = RateLimiter::new(Quota::per_minute(size), Kept::default(), clock);
        Buckets { size, rate }
    }

    fn peek(&self, who: RateKey) -> Allowance {
        let look = Ask::Look(who);
        // governor counts the calls left after the one it grants, which a look does not take.
        let remaining =
            self.rate.check_key(&look).map_or(0, |left| left.remaining_burst_capacity() + 1);
        // A bucket is full if all its calls could be taken.
        let full_in = match self.rate.check_key_n(&look, self.size) {
            Ok(Err(not_yet)) => not_yet.wait_time_from(self.rate.clock().now()),
            Ok(Ok(_)) | Err(_) => Duration::ZERO,
        };
        Allowance { limit: self.size.get(), remaining, full_in, retry_after: None }
    }

    fn take(&self, who: RateKey) -> Allowance {
        let taken = self.rate.check_key(&Ask::Take(who));
        let now = self.peek(who);
        match taken {
            Ok(left) => Allowance { remaining: left.remaining_burst_capacity(), ..now },
            Err(not_yet) => {
                let wait = not_yet.wait_time_from(self.rate.clock().now());
                Allowance { remaining: 0, retry_after: Some(wait), ..now }
            }
        }
    }

    /// Leaves at most `most` calls in a bucket.
    fn cap(&self, who: RateKey, most: u32) {
        let excess = || NonZeroU32::new(self.peek(who).remaining.saturating_sub(most));
        // governor refuses this if a call took from the bucket since. The excess is then smaller.
        while let Some(excess) = excess() {
            let _ = self.rate.check_key_n(&Ask::Take(who), excess);
        }
    }
}

/// The buckets of all callers, one set for each tier.
pub struct Limiter<C: Clock = DefaultClock> {
    tiers: Vec<(Tier, Buckets<C>)>,
}

impl Default for Limiter {
    fn default() -> Self {
        Limiter::new(&DefaultClock::default())
    }
}

impl<C: Clock + Clone> Limiter<C> {
    fn new(clock: &C) -> Self {
        let tiers = [Tier::Free, Tier::Developer, Tier::Professional, Tier::Enterprise];
        let limited = |tier: Tier| {
            let size = NonZeroU32::new(tier.per_minute()?)?;
            Some((tier, Buckets::new(size, clock.clone())))
        };
        Limiter { tiers: tiers.into_iter().filter_map(limited).collect() }
    }
}

impl<C: Clock> Limiter<C> {
    fn of(&self, tier: Tier) -> Option<&Buckets<C>> {
        self.tiers.iter().find(|(t, _)| *t == tier).map(|(_, buckets)| buckets)
    }

    /// Takes one call from the caller's bucket.
    pub fn take(&self, who: RateKey, tier: Tier) -> Allowance {
        self.of(tier).map_or(Allowance::unlimited(), |buckets| buckets.take(who))
    }

    /// The calls that a caller has left, without taking one.
    pub fn peek(&self, who: RateKey, tier: Tier) -> Allowance {
        self.of(tier).map_or(Allowance::unlimited(), |buckets| buckets.peek(who))
    }

    /// Moves a caller between tiers. The bucket of a higher tier is not changed. The bucket of a
    /// lower tier is capped at the calls left in the old one.
    pub fn change_tier(&self, who: RateKey, from: Tier, to: Tier) {
        let Some(buckets) = self.of(to).filter(|_| to < from) else { return };
        buckets.cap(who, self.peek(who, from).remaining);
    }

    /// Drops the buckets that are full again: their callers are idle.
    pub fn forget_idle(&self) {
        for (_, buckets) in &self.tiers {
            buckets.rate.retain_recent();
            buckets.rate.shrink_to_fit();
        }
    }

    /// The number of buckets.
    pub fn len(&self) -> usize {
        self.tiers.iter().map(|(_, buckets)| buckets.rate.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use governor::clock::FakeRelativeClock;

    fn address(last: u8) -> RateKey {
        RateKey::Address(IpAddr::from([10, 0, 0, last]))
    }

    /// A limiter whose time stands still.
    fn limiter() -> Limiter<FakeRelativeClock> {
        Limiter::new(&FakeRelativeClock::default())
    }

    #[test]
    fn a_bucket_holds_a_minutes_calls_and_counts_down() {
        let limiter = limiter();
        for left in (0..60).rev() {
            let allowance = limiter.take(address(1), Tier::Free);
            assert_eq!((allowance.remaining, allowance.retry_after), (left, None));
        }
        let refused = limiter.take(address(1), Tier::Free);
        assert_eq!((refused.remaining, refused.retry_after), (0, Some(Duration::from_secs(1))));
        assert_eq!(limiter.take(address(2), Tier::Free).remaining, 59, "others are not touched");
        assert_eq!(limiter.take(address(1), Tier::Enterprise), Allowance::unlimited());
    }

    #[test]
    fn a_lowered_tier_caps_what_is_left_and_a_raised_one_is_free_at_once() {
        let limiter = limiter();
        for _ in 0..290 {
            limiter.take(address(1), Tier::Developer);
        }
        limiter.change_tier(address(1), Tier::Developer, Tier::Free);
        assert_eq!(limiter.peek(address(1), Tier::Free).remaining, 10);
        limiter.change_tier(address(1), Tier::Free, Tier::Professional);
        assert_eq!(limiter.take(address(1), Tier::Professional).remaining, 999);
    }

    #[test]
    fn a_lowered_tier_counts_what_was_taken_in_it_before() {
        for (taken, left) in [(20, 10), (55, 5)] {
            let limiter = limiter();
            for _ in 0..290 {
                limiter.take(address(1), Tier::Developer);
            }
            for _ in 0..taken {
                limiter.take(address(1), Tier::Free);
            }
            limiter.change_tier(address(1), Tier::Developer, Tier::Free);
            assert_eq!(limiter.peek(address(1), Tier::Free).remaining, left);
        }
    }

    #[test]
    fn buckets_of_idle_callers_are_dropped() {
        let clock = FakeRelativeClock::default();
        let limiter = Limiter::new(&clock);
        limiter.take(address(1), Tier::Professional);
        limiter.forget_idle();
        assert_eq!(limiter.len(), 1, "it is not full yet");
        clock.advance(Duration::from_secs(1));
        limiter.forget_idle();
        assert!(limiter.is_empty());
    }

    #[test]
    fn a_look_counts_nothing() {
        let limiter = limiter();
        limiter.take(address(1), Tier::Free);
        for _ in 0..100 {
            assert_eq!(limiter.peek(address(1), Tier::Free).remaining, 59);
            assert_eq!(limiter.peek(address(2), Tier::Free).remaining, 60);
        }
        assert_eq!(limiter.len(), 1, "a look makes no bucket");
        assert_eq!(limiter.peek(address(1), Tier::Enterprise), Allowance::unlimited());
    }

    #[test]
    fn an_empty_bucket_fills_a_call_at_a_time() {
        let (clock, second) = (FakeRelativeClock::default(), Duration::from_secs(1));
        let limiter = Limiter::new(&clock);
        assert_eq!(limiter.peek(address(1), Tier::Free).full_in, Duration::ZERO);
        for _ in 0..60 {
            assert_eq!(limiter.take(address(1), Tier::Free).retry_after, None);
        }
        let refused = limiter.take(address(1), Tier::Free);
        assert_eq!((refused.retry_after, refused.full_in), (Some(second), second * 60));
        clock.advance(second);
        let passed = limiter.take(address(1), Tier::Free);
        assert_eq!((passed.retry_after, passed.remaining), (None, 0));
        clock.advance(second * 30 + second / 2);
        let later = limiter.peek(address(1), Tier::Free);
        assert_eq!((later.remaining, later.full_in), (30, second * 30 - second / 2));
    }
}
