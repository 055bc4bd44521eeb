//! The time and the memory for counting the calls of a million callers.

use crate::{machine, outcome::Outcome, table::Row};
use actors::call::rate_limit::{Limiter, RateKey};
use contract::authentication::Tier;
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Mutex,
    time::{Duration, Instant},
};

pub const METHOD: &str = "In this process: one call of each of a million IPv6 addresses is counted, \
    with its two wider networks, then a second one, then the idle are forgotten. The yardstick is a hash \
    map of counters behind one lock, with the same keys.";

const CALLERS: u32 = 1_000_000;
/// A bucket of this tier is full again 120 ms after two calls.
const TIER: Tier = Tier::Professional;

const SLOWEST: f64 = 2.0;
const BINDS: &str = "the algorithm, which knows when each caller's calls come back, and not how many there \
    were.";
const KEPT: &str =
    "the allocator, which keeps the pages of what was freed for the next allocations.";

/// The cost of one caller: nanoseconds of the first and of the second call, and bytes of memory.
struct Cost {
    first: f64,
    second: f64,
    bytes: f64,
}

/// Measures the limiter against a hash map.
pub fn measure() -> Outcome<Vec<Row>> {
    machine::wait_until_quiet();
    let before = machine::resident(None)?;
    let limiter = Limiter::start(true);
    let ours = each(|who| limiter.take(who, TIER, 1).retry_after.is_none())?;
    std::thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    limiter.forget_idle();
    let forgot = begun.elapsed().as_secs_f64() * 1e3;
    if !limiter.is_empty() {
        return Err(format!("{} idle callers were not forgotten", limiter.len()));
    }
    // The allocator returns freed memory a moment later, at another allocation.
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(10));
        std::hint::black_box(vec![1_u8; 1 << 16]);
    }
    let kept = machine::resident(None)?.saturating_sub(before) as f64 / f64::from(CALLERS);

    machine::wait_until_quiet();
    let calls: Mutex<HashMap<RateKey, u64>> = Mutex::default();
    let bare = each(|who| {
        let Ok(mut calls) = calls.lock() else { return false };
        for key in std::iter::once(who).chain(who.wider().map(|(network, _)| network)) {
            *calls.entry(key).or_default() += 1;
        }
        true
    })?;
    let nanos = |n: f64| (n, format!("{n:.0} ns"));
    let bytes = |n: f64| (n, format!("{n:.0} B"));
    let map = |(value, text): (f64, String)| (value, format!("{text}, a hash map"));
    Ok(vec![
        Row::new(
            "first call of each of 1,000,000 callers",
            nanos(ours.first),
            map(nanos(bare.first)),
        )
        .at_most(SLOWEST, BINDS),
        Row::new("second call of each", nanos(ours.second), map(nanos(bare.second)))
            .at_most(SLOWEST, BINDS),
        Row::new("memory of each caller", bytes(ours.bytes), map(bytes(bare.bytes)))
            .at_most(1.0, BINDS),
        Row::new(
            "memory of each caller after the idle are forgotten",
            (kept, format!("{kept:.0} B (forgotten in {forgot:.0} ms)")),
            (ours.bytes, format!("{:.0} B, before", ours.bytes)),
        )
        .at_most(0.1, KEPT),
    ])
}

/// Counts two calls of every caller. Fails if a call is refused.
fn each(count: impl Fn(RateKey) -> bool) -> Outcome<Cost> {
    let callers = || (0..CALLERS).map(|n| RateKey::Address(address(n)));
    let pass = || {
        let begun = Instant::now();
        let refused = callers().filter(|who| !count(*who)).count();
        let nanos = begun.elapsed().as_secs_f64() * 1e9 / f64::from(CALLERS);
        if refused == 0 { Ok(nanos) } else { Err(format!("{refused} callers were refused")) }
    };
    let before = machine::resident(None)?;
    let first = pass()?;
    let bytes = machine::resident(None)?.saturating_sub(before) as f64 / f64::from(CALLERS);
    // At least one byte: what was freed before is used again, and a ratio needs a number.
    Ok(Cost { first, second: pass()?, bytes: bytes.max(1.0) })
}

/// The address of a caller. Successive addresses are far apart, like those of strangers.
fn address(n: u32) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(u128::from(n.wrapping_mul(2_654_435_761)) << 64 | u128::from(n)))
}
