//! Buckets of one size, which governor counts.

use super::{Allowance, RateKey};
use governor::{
    Quota, RateLimiter,
    clock::Clock,
    middleware::StateInformationMiddleware,
    nanos::Nanos,
    state::{
        NotKeyed, StateStore,
        keyed::{DashMapStateStore, ShrinkableKeyedStateStore},
    },
};
use std::{convert::Infallible, num::NonZeroU32, time::Duration};

#[derive(Clone, PartialEq, Eq, Hash)]
enum Ask {
    /// Take calls from the bucket.
    Take(RateKey),
    /// Tell whether the calls could be taken, and take none.
    Look(RateKey),
    /// Take calls that were made already, also if the bucket has not so many. This is the time in which they
    /// come back.
    Charge(RateKey, Duration),
}

/// The buckets as governor stores them. governor takes every call that it grants and none that it refuses, and
/// makes a bucket for every key. This store takes and makes nothing for an [`Ask::Look`], and takes always for an
/// [`Ask::Charge`].
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
            Ask::Charge(who, time) => self.0.measure_and_replace(who, &decide).inspect_err(|_| {
                // What governor refuses, it refuses because the bucket is full again only later than now.
                let later = |full_at: Option<Nanos>| {
                    Ok::<_, Infallible>(((), full_at.unwrap_or(Nanos::new(0)) + Nanos::from(*time)))
                };
                let Ok(()) = self.0.measure_and_replace(who, later);
            }),
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

/// The buckets of one size.
pub(super) struct Buckets<C: Clock> {
    size: NonZeroU32,
    rate: RateLimiter<Ask, Kept, C, StateInformationMiddleware>,
}

impl<C: Clock> Buckets<C> {
    pub fn new(size: NonZeroU32, clock: C) -> Self {
        let rate = RateLimiter::new(Quota::per_minute(size), Kept::default(), clock);
        Buckets { size, rate }
    }

    pub fn peek(&self, who: RateKey) -> Allowance {
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

    pub fn take(&self, who: RateKey, cost: NonZeroU32) -> Allowance {
        // What costs more than a bucket holds takes all of it.
        let cost = cost.min(self.size);
        match self.rate.check_key_n(&Ask::Take(who), cost) {
            Ok(Ok(left)) => self.with(left.remaining_burst_capacity(), None),
            Ok(Err(not_yet)) => {
                let wait = not_yet.wait_time_from(self.rate.clock().now());
                let missing = wait.as_nanos().div_ceil(self.each().as_nanos());
                let missing = u32::try_from(missing).unwrap_or(u32::MAX).min(cost.get());
                self.with(cost.get() - missing, Some(wait))
            }
            Err(_) => self.peek(who),
        }
    }

    /// Takes calls that were made already, so that the bucket may owe some.
    pub fn charge(&self, who: RateKey, cost: NonZeroU32) {
        let cost = cost.min(self.size);
        let time = self.each() * cost.get();
        let _ = self.rate.check_key_n(&Ask::Charge(who, time), cost);
    }

    /// The time after which one call comes back.
    fn each(&self) -> Duration {
        Duration::from_secs(60) / self.size.get()
    }

    /// What a caller has left who took calls just now. A second look-up would say more precisely when
    /// the bucket is full; this is at most one call later.
    fn with(&self, remaining: u32, retry_after: Option<Duration>) -> Allowance {
        let size = self.size.get();
        let full_in = self.each() * (size - remaining);
        Allowance { limit: size, remaining, full_in, retry_after }
    }

    /// Leaves at most `most` calls in a bucket.
    pub fn cap(&self, who: RateKey, most: u32) {
        let excess = || NonZeroU32::new(self.peek(who).remaining.saturating_sub(most));
        // governor refuses this if a call took from the bucket since. The excess is then smaller.
        while let Some(excess) = excess() {
            let _ = self.rate.check_key_n(&Ask::Take(who), excess);
        }
    }

    /// Drops the buckets that are full again.
    pub fn forget_idle(&self) {
        self.rate.retain_recent();
        self.rate.shrink_to_fit();
    }

    /// The number of buckets.
    pub fn len(&self) -> usize {
        self.rate.len()
    }
}
