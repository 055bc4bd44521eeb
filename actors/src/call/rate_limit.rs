//! How many calls a caller may make: GCRA, one bucket for each caller, as large as a minute's
//! allowance.

use contract::{Fault, UserId, authentication::Tier};
use governor::{
    Quota, RateLimiter,
    clock::{Clock as _, DefaultClock},
    middleware::StateInformationMiddleware,
    state::keyed::DashMapStateStore,
};
use std::{
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    time::Duration,
};

/// Who is counted: the account, or the address where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateKey {
    /// An account, however it signed in.
    User(UserId),
    /// A client address.
    Address(IpAddr),
}

impl RateKey {
    /// A client's address.
    pub fn address(address: IpAddr) -> Self {
        RateKey::Address(network(address))
    }
}

/// What of an address is one client. An IPv6 network of 64 bits is: it has them all to itself.
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
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
    /// Refuses a call that the caller has nothing left for.
    pub fn check(&self) -> Result<(), Fault> {
        match self.retry_after {
            Some(wait) => Err(Fault::RateLimited { retry_after: wait.as_secs() + 1 }),
            None => Ok(()),
        }
    }

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

type Buckets =
    RateLimiter<RateKey, DashMapStateStore<RateKey>, DefaultClock, StateInformationMiddleware>;

/// The buckets of all callers, a set for each tier.
pub struct Limiter {
    tiers: Vec<(Tier, u32, Buckets)>,
}

impl Default for Limiter {
    fn default() -> Self {
        let tiers = [Tier::Free, Tier::Developer, Tier::Professional, Tier::Enterprise];
        let buckets = tiers.into_iter().filter_map(|tier| {
            let per_minute = tier.per_minute()?;
            let quota = Quota::per_minute(NonZeroU32::new(per_minute)?);
            Some((tier, per_minute, RateLimiter::dashmap(quota).with_middleware()))
        });
        Limiter { tiers: buckets.collect() }
    }
}

impl Limiter {
    fn of(&self, tier: Tier) -> Option<(u32, &Buckets)> {
        self.tiers.iter().find(|(t, ..)| *t == tier).map(|(_, limit, buckets)| (*limit, buckets))
    }

    /// Takes one call from the caller's bucket.
    pub fn take(&self, who: RateKey, tier: Tier) -> Allowance {
        let Some((limit, buckets)) = self.of(tier) else { return Allowance::unlimited() };
        let interval = Duration::from_secs(60) / limit;
        match buckets.check_key(&who) {
            Ok(left) => {
                let remaining = left.remaining_burst_capacity();
                let used = limit.saturating_sub(remaining);
                Allowance {
                    limit,
                    remaining,
                    full_in: interval.saturating_mul(used),
                    retry_after: None,
                }
            }
            Err(refused) => {
                let wait = refused.wait_time_from(DefaultClock::default().now());
                Allowance {
                    limit,
                    remaining: 0,
                    full_in: Duration::from_secs(60),
                    retry_after: Some(wait),
                }
            }
        }
    }

    /// Moves a caller between tiers: a raised tier is free at once, a lowered one caps what is
    /// left.
    pub fn change_tier(&self, who: RateKey, from: Tier, to: Tier) {
        let Some((limit, buckets)) = self.of(to) else { return };
        let left = match self.of(from) {
            Some((_, old)) => old.check_key(&who).map_or(0, |left| left.remaining_burst_capacity()),
            None => limit,
        };
        if to < from
            && let Some(spent) = NonZeroU32::new(limit.saturating_sub(left.min(limit)))
        {
            let _ = buckets.check_key_n(&who, spent);
        }
    }

    /// Drops the buckets that are full again: their callers are idle.
    pub fn forget_idle(&self) {
        for (_, _, buckets) in &self.tiers {
            buckets.retain_recent();
            buckets.shrink_to_fit();
        }
    }

    /// How many buckets there are.
    pub fn len(&self) -> usize {
        self.tiers.iter().map(|(_, _, buckets)| buckets.len()).sum()
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

    fn address(last: u8) -> RateKey {
        RateKey::Address(IpAddr::from([10, 0, 0, last]))
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
        std::thread::sleep(Duration::from_millis(300));
        limiter.forget_idle();
        assert!(limiter.is_empty());
    }
}
