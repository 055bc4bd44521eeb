//! How many calls a caller may make: GCRA, one bucket for each caller, as large as a minute's
//! allowance.

use contract::{UserId, authentication::Tier};
use dashmap::DashMap;
use std::{
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

/// Who is counted: the account, or the address where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counted {
    /// An account, however it signed in.
    User(UserId),
    /// A client address.
    Address(IpAddr),
}

impl Counted {
    /// A client's address. An IPv6 network of 64 bits is one client: it has them all to itself.
    pub fn address(address: IpAddr) -> Self {
        Counted::Address(match address {
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
            v4 => v4,
        })
    }
}

/// What is left for a caller after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Calls a minute; `u32::MAX / 2` stands for unlimited.
    pub limit: u32,
    /// Calls left now.
    pub remaining: u32,
    /// Until the full allowance is back.
    pub full_in: Duration,
    /// With a refusal: until a call will pass.
    pub retry_after: Option<Duration>,
}

/// What unlimited looks like on the wire.
pub const UNLIMITED: u32 = 2_147_483_647;

impl Allowance {
    /// Of those who are not limited.
    pub const fn unlimited() -> Self {
        Allowance {
            limit: UNLIMITED,
            remaining: UNLIMITED,
            full_in: Duration::ZERO,
            retry_after: None,
        }
    }
}

/// A bucket is full again this long after it was emptied, whatever its size.
const MINUTE: Duration = Duration::from_secs(60);

/// The buckets of a tier. A bucket is known by when it will be full, counted from the limiter's
/// start; one that is not known is full.
struct Buckets {
    limit: u32,
    full_at: DashMap<Counted, Duration>,
}

impl Buckets {
    fn new(limit: u32) -> Self {
        Buckets { limit, full_at: DashMap::new() }
    }

    /// What is left in a bucket that will be full then.
    fn left(&self, full_at: Duration, now: Duration) -> Allowance {
        let full_in = full_at.saturating_sub(now);
        let free = MINUTE.saturating_sub(full_in).as_nanos() * u128::from(self.limit);
        let remaining = u32::try_from(free / MINUTE.as_nanos()).unwrap_or(self.limit);
        Allowance { limit: self.limit, remaining, full_in, retry_after: None }
    }

    fn peek(&self, who: &Counted, now: Duration) -> Allowance {
        self.left(self.full_at.get(who).map_or(now, |full_at| *full_at), now)
    }

    /// Takes a call out of a bucket.
    fn take(&self, who: Counted, now: Duration) -> Allowance {
        let mut full_at = self.full_at.entry(who).or_default();
        let after = (*full_at).max(now) + MINUTE / self.limit;
        let missing = after.saturating_sub(now + MINUTE);
        if missing > Duration::ZERO {
            return Allowance { retry_after: Some(missing), ..self.left(*full_at, now) };
        }
        *full_at = after;
        self.left(after, now)
    }

    /// Leaves at most so many calls in a bucket.
    fn cap(&self, who: Counted, most: u32, now: Duration) {
        let full_at = now + MINUTE / self.limit * self.limit.saturating_sub(most);
        let mut known = self.full_at.entry(who).or_default();
        *known = (*known).max(full_at);
    }
}

/// The buckets of all callers, a set for each tier.
pub struct Limiter {
    start: Instant,
    tiers: Vec<(Tier, Buckets)>,
}

impl Default for Limiter {
    fn default() -> Self {
        let tiers = [Tier::Free, Tier::Developer, Tier::Professional, Tier::Enterprise];
        let limited = |tier: Tier| Some((tier, Buckets::new(tier.per_minute()?)));
        Limiter { start: Instant::now(), tiers: tiers.into_iter().filter_map(limited).collect() }
    }
}

impl Limiter {
    fn of(&self, tier: Tier) -> Option<&Buckets> {
        self.tiers.iter().find(|(t, _)| *t == tier).map(|(_, buckets)| buckets)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Takes one call from the caller's bucket.
    pub fn take(&self, who: Counted, tier: Tier) -> Allowance {
        self.of(tier).map_or(Allowance::unlimited(), |buckets| buckets.take(who, self.now()))
    }

    /// What a caller has left, without counting anything.
    pub fn peek(&self, who: &Counted, tier: Tier) -> Allowance {
        self.of(tier).map_or(Allowance::unlimited(), |buckets| buckets.peek(who, self.now()))
    }

    /// Moves a caller between tiers: a raised tier is free at once, a lowered one caps what is
    /// left.
    pub fn change_tier(&self, who: Counted, from: Tier, to: Tier) {
        let Some(buckets) = self.of(to).filter(|_| to < from) else { return };
        buckets.cap(who, self.peek(&who, from).remaining, self.now());
    }

    /// Drops the buckets that are full again: their callers are idle.
    pub fn forget_idle(&self) {
        self.forget_full(self.now());
    }

    fn forget_full(&self, now: Duration) {
        for (_, buckets) in &self.tiers {
            buckets.full_at.retain(|_, full_at| *full_at > now);
            buckets.full_at.shrink_to_fit();
        }
    }

    /// How many buckets there are.
    pub fn len(&self) -> usize {
        self.tiers.iter().map(|(_, buckets)| buckets.full_at.len()).sum()
    }

    /// Whether nobody has a bucket.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn address(last: u8) -> Counted {
        Counted::Address(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn a_bucket_holds_a_minutes_calls_and_counts_down() {
        let limiter = Limiter::default();
        for left in (0..60).rev() {
            let allowance = limiter.take(address(1), Tier::Free);
            assert!(
                allowance.remaining >= left && allowance.retry_after.is_none(),
                "{allowance:?}"
            );
        }
        let refused = limiter.take(address(1), Tier::Free);
        assert!(
            refused.retry_after.is_some_and(|wait| wait <= Duration::from_secs(1)),
            "{refused:?}"
        );
        assert_eq!(limiter.take(address(2), Tier::Free).remaining, 59, "others are not touched");
        assert_eq!(limiter.take(address(1), Tier::Enterprise), Allowance::unlimited());
    }

    #[test]
    fn a_lowered_tier_caps_what_is_left_and_a_raised_one_is_free_at_once() {
        let limiter = Limiter::default();
        for _ in 0..290 {
            limiter.take(address(1), Tier::Developer);
        }
        limiter.change_tier(address(1), Tier::Developer, Tier::Free);
        assert!(limiter.take(address(1), Tier::Free).remaining <= 10);
        limiter.change_tier(address(1), Tier::Free, Tier::Professional);
        assert_eq!(limiter.take(address(1), Tier::Professional).remaining, 999);
    }

    #[test]
    fn buckets_of_idle_callers_are_dropped() {
        let limiter = Limiter::default();
        limiter.take(address(1), Tier::Professional);
        limiter.forget_full(limiter.now());
        assert_eq!(limiter.len(), 1, "it is not full yet");
        limiter.forget_full(limiter.now() + MINUTE / 1000);
        assert!(limiter.is_empty());
    }

    #[test]
    fn a_look_counts_nothing() {
        let limiter = Limiter::default();
        limiter.take(address(1), Tier::Free);
        for _ in 0..100 {
            assert_eq!(limiter.peek(&address(1), Tier::Free).remaining, 59);
            assert_eq!(limiter.peek(&address(2), Tier::Free).remaining, 60);
        }
        assert_eq!(limiter.len(), 1);
        assert_eq!(limiter.peek(&address(1), Tier::Enterprise), Allowance::unlimited());
    }

    #[test]
    fn an_empty_bucket_fills_a_call_at_a_time() {
        let (buckets, second) = (Buckets::new(60), Duration::from_secs(1));
        for _ in 0..60 {
            assert_eq!(buckets.take(address(1), second).retry_after, None);
        }
        let refused = buckets.take(address(1), second);
        assert_eq!((refused.retry_after, refused.full_in), (Some(second), MINUTE));
        let passed = buckets.take(address(1), second * 2);
        assert_eq!((passed.retry_after, passed.remaining), (None, 0));
        assert_eq!(buckets.peek(&address(1), second * 32).remaining, 30);
    }
}
