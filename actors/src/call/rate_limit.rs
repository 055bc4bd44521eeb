//! The rate limit: GCRA with one bucket for each caller. A bucket holds the calls of one minute. A
//! call takes its cost. The calls without an account from one IPv6 network also share wider buckets:
//! who rents a /48 has 65,536 networks of 64 bits.

mod buckets;
mod nodes;

pub use nodes::Exchange;

use buckets::Buckets;
use contract::{Fault, UserId, authentication::Tier};
use governor::clock::{Clock, DefaultClock};
use nodes::Passed;
use serde::{Deserialize, Serialize};
use std::{
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    time::Duration,
};

/// The caller that a bucket counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RateKey {
    /// An account, whatever its credential.
    User(UserId),
    /// The address of a caller without an account, as [`network`] returns it.
    Address(IpAddr),
    /// All callers of an IPv6 network: its first address, and the length of its prefix.
    Network(Ipv6Addr, u8),
}

/// The prefixes of the networks that count together, and how many clients each may be.
const WIDER: [(u8, u32); 2] = [(56, 4), (48, 16)];

impl RateKey {
    pub fn address(address: IpAddr) -> Self {
        RateKey::Address(network(address))
    }

    /// The wider networks of an IPv6 address, and how many clients each may be.
    pub fn wider(self) -> impl Iterator<Item = (RateKey, u32)> {
        let address = match self {
            RateKey::Address(IpAddr::V6(address)) => Some(address),
            _ => None,
        };
        let network = |address, (length, clients)| {
            (RateKey::Network(first_of(address, length), length), clients)
        };
        address.into_iter().flat_map(move |address| WIDER.map(|wide| network(address, wide)))
    }
}

/// The part of an address that stands for one client: all of IPv4, the first 64 bits of IPv6. A
/// client has the other 64 bits to itself.
pub fn network(address: IpAddr) -> IpAddr {
    prefix(address, 64)
}

/// The part of an address that stands for one site: all of IPv4, the first 48 bits of IPv6.
pub fn site(address: IpAddr) -> IpAddr {
    prefix(address, 48)
}

fn prefix(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V6(v6) => IpAddr::V6(first_of(v6, length)),
        v4 => v4,
    }
}

/// The first address of the network with this prefix, from 1 to 127 bits.
fn first_of(address: Ipv6Addr, length: u8) -> Ipv6Addr {
    Ipv6Addr::from_bits(address.to_bits() & !(u128::MAX >> length))
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

/// The buckets of one tier.
struct Sizes<C: Clock> {
    callers: Buckets<C>,
    /// Those of the networks of [`WIDER`].
    wider: Vec<Buckets<C>>,
}

impl<C: Clock + Clone> Sizes<C> {
    fn new(size: NonZeroU32, clock: &C) -> Self {
        let of = |clients| {
            let clients = NonZeroU32::new(clients).unwrap_or(NonZeroU32::MIN);
            Buckets::new(size.saturating_mul(clients), clock.clone())
        };
        Sizes { callers: of(1), wider: WIDER.iter().map(|(_, clients)| of(*clients)).collect() }
    }
}

impl<C: Clock> Sizes<C> {
    /// A caller takes from the own bucket first, so a caller that is refused takes nothing from its
    /// neighbours.
    fn take(&self, who: RateKey, cost: NonZeroU32) -> Allowance {
        let mut allowance = self.callers.take(who, cost);
        for ((network, _), buckets) in who.wider().zip(&self.wider) {
            if allowance.retry_after.is_some() {
                break;
            }
            let shared = buckets.take(network, cost);
            allowance.remaining = allowance.remaining.min(shared.remaining);
            allowance.retry_after = shared.retry_after;
        }
        allowance
    }

    /// Takes calls that another node let pass.
    fn charge(&self, who: RateKey, cost: NonZeroU32) {
        self.callers.charge(who, cost);
        for ((network, _), buckets) in who.wider().zip(&self.wider) {
            buckets.charge(network, cost);
        }
    }

    fn peek(&self, who: RateKey) -> Allowance {
        let own = self.callers.peek(who);
        let shared = who.wider().zip(&self.wider).map(|((n, _), b)| b.peek(n).remaining);
        Allowance { remaining: shared.fold(own.remaining, u32::min), ..own }
    }

    fn all(&self) -> impl Iterator<Item = &Buckets<C>> {
        std::iter::once(&self.callers).chain(&self.wider)
    }
}

/// The buckets of all callers, one set for each tier.
pub struct Limiter<C: Clock = DefaultClock> {
    tiers: Vec<(Tier, Sizes<C>)>,
    /// What other nodes are told of. `None`: there are none.
    passed: Option<Passed>,
}

impl Limiter {
    pub fn start(is_alone: bool) -> Self {
        let passed = (!is_alone).then(Passed::default);
        Limiter { passed, ..Limiter::new(&DefaultClock::default()) }
    }
}

impl<C: Clock + Clone> Limiter<C> {
    fn new(clock: &C) -> Self {
        let tiers = [Tier::Free, Tier::Developer, Tier::Professional, Tier::Enterprise];
        let limited = |tier: Tier| {
            let size = NonZeroU32::new(tier.per_minute()?)?;
            Some((tier, Sizes::new(size, clock)))
        };
        Limiter { tiers: tiers.into_iter().filter_map(limited).collect(), passed: None }
    }
}

impl<C: Clock> Limiter<C> {
    fn of(&self, tier: Tier) -> Option<&Sizes<C>> {
        self.tiers.iter().find(|(t, _)| *t == tier).map(|(_, sizes)| sizes)
    }

    /// Takes the cost of a call from the caller's bucket. A cost of 0 only looks.
    pub fn take(&self, who: RateKey, tier: Tier, cost: u32) -> Allowance {
        let Some(cost) = NonZeroU32::new(cost) else { return self.peek(who, tier) };
        let Some(sizes) = self.of(tier) else { return Allowance::unlimited() };
        let allowance = sizes.take(who, cost);
        if let Some(passed) = self.passed.as_ref().filter(|_| allowance.retry_after.is_none()) {
            passed.count(who, tier, cost);
        }
        allowance
    }

    /// The calls that a caller has left, without taking one.
    pub fn peek(&self, who: RateKey, tier: Tier) -> Allowance {
        self.of(tier).map_or(Allowance::unlimited(), |buckets| buckets.peek(who))
    }

    /// Moves a caller between tiers. The bucket of a higher tier is not changed. The bucket of a
    /// lower tier is capped at the calls left in the old one.
    pub fn change_tier(&self, who: RateKey, from: Tier, to: Tier) {
        let Some(sizes) = self.of(to).filter(|_| to < from) else { return };
        sizes.callers.cap(who, self.peek(who, from).remaining);
    }

    /// Drops the buckets that are full again: their callers are idle.
    pub fn forget_idle(&self) {
        for buckets in self.tiers.iter().flat_map(|(_, sizes)| sizes.all()) {
            buckets.forget_idle();
        }
    }

    /// The number of buckets.
    pub fn len(&self) -> usize {
        self.tiers.iter().flat_map(|(_, sizes)| sizes.all()).map(Buckets::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use governor::clock::FakeRelativeClock;

    fn address(last: u8) -> RateKey {
        RateKey::Address(IpAddr::from([10, 0, 0, last]))
    }

    fn in_network(customer: u8, network: u8) -> RateKey {
        let groups = [0x2001, 0xdb8, 7, u16::from_be_bytes([customer, network]), 1, 2, 3, 4];
        RateKey::address(IpAddr::from(groups))
    }

    /// A limiter whose time stands still.
    fn limiter() -> Limiter<FakeRelativeClock> {
        Limiter::new(&FakeRelativeClock::default())
    }

    #[test]
    fn a_bucket_holds_a_minutes_calls_and_counts_down() {
        let limiter = limiter();
        for left in (0..60).rev() {
            let allowance = limiter.take(address(1), Tier::Free, 1);
            assert_eq!((allowance.remaining, allowance.retry_after), (left, None));
        }
        let refused = limiter.take(address(1), Tier::Free, 1);
        assert_eq!((refused.remaining, refused.retry_after), (0, Some(Duration::from_secs(1))));
        assert_eq!(limiter.take(address(2), Tier::Free, 1).remaining, 59, "others are not touched");
        assert_eq!(limiter.take(address(1), Tier::Enterprise, 1), Allowance::unlimited());
    }

    #[test]
    fn a_call_takes_its_cost_and_one_that_is_refused_takes_nothing() {
        let limiter = limiter();
        let take = |cost| limiter.take(address(1), Tier::Free, cost);
        assert_eq!((take(20).remaining, take(20).remaining), (40, 20));
        let refused = take(21);
        assert_eq!((refused.remaining, refused.retry_after), (20, Some(Duration::from_secs(1))));
        assert_eq!((take(5).remaining, take(0).remaining, take(15).remaining), (15, 15, 0));
        assert_eq!(
            limiter.take(address(2), Tier::Free, 1000).remaining,
            0,
            "it takes all there is"
        );
    }

    #[test]
    fn the_networks_of_one_ipv6_customer_and_site_count_together() {
        let limiter = limiter();
        let passed = |who| limiter.take(who, Tier::Free, 1).retry_after.is_none();
        let of_one = (0..=255).filter(|n| (0..60).any(|_| passed(in_network(0, *n)))).count();
        assert_eq!(of_one, 240, "a /56 makes four times the calls of a client");
        let mut calls = 240;
        for customer in 1..=255 {
            for network in 0..4 {
                calls += (0..60).filter(|_| passed(in_network(customer, network))).count();
            }
        }
        assert_eq!(calls, 16 * 60, "a /48 makes 16 times the calls of a client");
        assert_eq!(limiter.peek(in_network(9, 9), Tier::Free).remaining, 0);
        let elsewhere = RateKey::address(IpAddr::from([0x2001, 0xdb8, 8, 0, 0, 0, 0, 1]));
        assert!(passed(elsewhere) && passed(address(1)));
    }

    #[test]
    fn one_client_that_is_refused_takes_nothing_from_its_neighbours() {
        let limiter = limiter();
        for _ in 0..10_000 {
            limiter.take(in_network(1, 1), Tier::Free, 1);
        }
        assert_eq!(limiter.take(in_network(1, 2), Tier::Free, 1).remaining, 59);
    }

    #[test]
    fn a_lowered_tier_caps_what_is_left_and_a_raised_one_is_free_at_once() {
        let limiter = limiter();
        for _ in 0..290 {
            limiter.take(address(1), Tier::Developer, 1);
        }
        limiter.change_tier(address(1), Tier::Developer, Tier::Free);
        assert_eq!(limiter.peek(address(1), Tier::Free).remaining, 10);
        limiter.change_tier(address(1), Tier::Free, Tier::Professional);
        assert_eq!(limiter.take(address(1), Tier::Professional, 1).remaining, 999);
    }

    #[test]
    fn a_lowered_tier_counts_what_was_taken_in_it_before() {
        for (taken, left) in [(20, 10), (55, 5)] {
            let limiter = limiter();
            for _ in 0..290 {
                limiter.take(address(1), Tier::Developer, 1);
            }
            for _ in 0..taken {
                limiter.take(address(1), Tier::Free, 1);
            }
            limiter.change_tier(address(1), Tier::Developer, Tier::Free);
            assert_eq!(limiter.peek(address(1), Tier::Free).remaining, left);
        }
    }

    #[test]
    fn buckets_of_idle_callers_are_dropped() {
        let clock = FakeRelativeClock::default();
        let limiter = Limiter::new(&clock);
        limiter.take(address(1), Tier::Professional, 1);
        limiter.forget_idle();
        assert_eq!(limiter.len(), 1, "it is not full yet");
        clock.advance(Duration::from_secs(1));
        limiter.forget_idle();
        assert!(limiter.is_empty());
    }

    #[test]
    fn a_look_counts_nothing() {
        let limiter = limiter();
        limiter.take(address(1), Tier::Free, 1);
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
            assert_eq!(limiter.take(address(1), Tier::Free, 1).retry_after, None);
        }
        let refused = limiter.take(address(1), Tier::Free, 1);
        assert_eq!((refused.retry_after, refused.full_in), (Some(second), second * 60));
        clock.advance(second);
        let passed = limiter.take(address(1), Tier::Free, 1);
        assert_eq!((passed.retry_after, passed.remaining), (None, 0));
        clock.advance(second * 30 + second / 2);
        let later = limiter.peek(address(1), Tier::Free);
        assert_eq!((later.remaining, later.full_in), (30, second * 30 - second / 2));
    }
}
