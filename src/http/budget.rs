//! A budget that many holders share and no holder can exhaust: connections, memory for arriving
//! bodies, running uploads.
//!
//! A holder may grow to a quarter of what it leaves free. So the first holder gets at most a fifth
//! of the budget, the second a fifth of the rest, and so on. Many holders are needed to exhaust the
//! budget, and no limit per holder must be configured. All holders of one IPv6 site together may grow
//! to half of what they leave free.

use actors::call::rate_limit::RateKey;
use contract::Fault;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A holder that grows must leave this many times its own amount free.
const FOR_OTHERS: usize = 4;
/// The same for all holders of one IPv6 network.
const FOR_OTHER_NETWORKS: usize = 2;

pub struct Budget {
    total: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    all: usize,
    by: HashMap<RateKey, usize>,
}

impl Budget {
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Budget { total, held: Mutex::default() })
    }

    /// Takes an amount for a holder. Without a holder, only the total limits the amount.
    pub fn share(self: &Arc<Self>, holder: Option<RateKey>, amount: usize) -> Result<Share, Fault> {
        let mut share = Share { budget: self.clone(), holder, amount: 0 };
        share.grow(amount)?;
        Ok(share)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Only two numbers change under the lock, and no code between them can panic.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of a budget. Dropping it returns the amount.
pub struct Share {
    budget: Arc<Budget>,
    holder: Option<RateKey>,
    amount: usize,
}

impl Share {
    /// Takes more. After a refusal the share has its old amount.
    pub fn grow(&mut self, amount: usize) -> Result<(), Fault> {
        let mut held = self.budget.held();
        let Some(left) = self.budget.total.checked_sub(held.all + amount) else {
            return Err(Fault::Busy);
        };
        for (holder, for_others) in counted(self.holder) {
            let known = held.by.get(&holder).copied().unwrap_or(0);
            if known > 0 && (known + amount) * for_others > left {
                return Err(Fault::RateLimited { retry_after: 1 });
            }
        }
        for (holder, _) in counted(self.holder) {
            *held.by.entry(holder).or_default() += amount;
        }
        held.all += amount;
        self.amount += amount;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.budget.held();
        held.all -= self.amount;
        for (holder, _) in counted(self.holder) {
            let left = held.by.get(&holder).map_or(0, |known| known - self.amount);
            if left > 0 {
                held.by.insert(holder, left);
            } else {
                held.by.remove(&holder);
            }
        }
    }
}

/// For whom an amount counts: the holder, and the networks that it is in.
fn counted(holder: Option<RateKey>) -> impl Iterator<Item = (RateKey, usize)> {
    let own = holder.map(|holder| (holder, FOR_OTHERS));
    let wider = holder.into_iter().flat_map(RateKey::wider);
    own.into_iter().chain(wider.map(|(network, _)| (network, FOR_OTHER_NETWORKS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn holder(n: u8) -> Option<RateKey> {
        Some(RateKey::address(IpAddr::from([10, 0, 0, n])))
    }

    /// Takes shares of one until a refusal; returns the shares and the refusal.
    fn take_all(budget: &Arc<Budget>, holder: Option<RateKey>) -> (Vec<Share>, Fault) {
        let mut shares = Vec::new();
        loop {
            match budget.share(holder, 1) {
                Ok(share) => shares.push(share),
                Err(fault) => return (shares, fault),
            }
        }
    }

    #[test]
    fn however_many_take_all_they_get_the_next_one_gets_something() {
        for greedy in 1..=16 {
            let budget = Budget::new(128);
            let taken: Vec<_> = (0..greedy).map(|n| take_all(&budget, holder(n))).collect();
            assert!(taken.iter().all(|(_, why)| matches!(why, Fault::RateLimited { .. })));
            assert!(budget.share(holder(99), 1).is_ok(), "{greedy} took all");
        }
        let budget = Budget::new(128);
        assert_eq!(take_all(&budget, holder(1)).0.len(), 25, "one alone gets a fifth");
        assert!(budget.held().by.is_empty() && budget.held().all == 0, "all went back");
    }

    #[test]
    fn one_ipv6_site_gets_a_third_however_many_networks_it_uses() {
        let client = |site: u16, n: u16| {
            Some(RateKey::address(IpAddr::from([0x2001, 0xdb8, site, n, 0, 0, 0, 1])))
        };
        let budget = Budget::new(300);
        let taken: Vec<_> =
            (0..=u16::MAX).map_while(|n| budget.share(client(1, n), 1).ok()).collect();
        assert_eq!(taken.len(), 100);
        assert!(budget.share(client(2, 1), 1).is_ok());
        drop(taken);
        assert!(budget.held().by.is_empty());
    }

    #[test]
    fn the_whole_bounds_what_is_anybodys() {
        let budget = Budget::new(10);
        let (all, why) = take_all(&budget, None);
        assert_eq!((all.len(), why), (10, Fault::Busy));
        assert_eq!(budget.share(holder(1), 1).err(), Some(Fault::Busy));
    }

    #[test]
    fn a_share_that_may_not_grow_stays_as_it_is() {
        let budget = Budget::new(10);
        let mut share = budget.share(holder(1), 1).unwrap();
        assert!(share.grow(2).is_err() && share.grow(1).is_ok());
        assert_eq!(budget.held().all, 2);
    }

    #[test]
    fn sixteen_at_once_leave_nothing_behind() {
        let budget = Budget::new(100);
        std::thread::scope(|threads| {
            for n in 0..16 {
                let budget = &budget;
                threads.spawn(move || {
                    for _ in 0..1000 {
                        drop(take_all(budget, holder(n % 4)));
                    }
                });
            }
        });
        assert!(budget.held().by.is_empty() && budget.held().all == 0);
    }
}
