//! What a resource takes of the quotas of its organization.

use contract::quotas::Quota;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Amounts of quotas. A quota without an amount is not used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uses(BTreeMap<Quota, u64>);

/// Whether a change is refused that exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitsCount {
    /// Somebody asks for the change.
    Yes,
    /// The change tells what has happened already.
    No,
}

impl Uses {
    /// One thing of a quota.
    pub fn one(quota: Quota) -> Self {
        Uses::default().and(quota, 1)
    }

    /// Adds an amount.
    pub fn and(mut self, quota: Quota, amount: u64) -> Self {
        if amount > 0 {
            let used = self.0.entry(quota).or_default();
            *used = used.saturating_add(amount);
        }
        self
    }

    /// Adds other amounts.
    pub fn and_all(self, other: &Uses) -> Self {
        other.iter().fold(self, |sum, (quota, amount)| sum.and(quota, amount))
    }

    /// Takes amounts away, down to nothing.
    pub fn without(&self, other: &Uses) -> Self {
        let left = |(quota, amount): (Quota, u64)| (quota, amount.saturating_sub(other.of(quota)));
        self.iter().map(left).fold(Uses::default(), |sum, (quota, amount)| sum.and(quota, amount))
    }

    /// The amounts of these quotas.
    pub fn only(&self, quotas: &[Quota]) -> Uses {
        quotas.iter().fold(Uses::default(), |sum, quota| sum.and(*quota, self.of(*quota)))
    }

    /// How much of a quota is used.
    pub fn of(&self, quota: Quota) -> u64 {
        self.0.get(&quota).copied().unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Quota, u64)> {
        self.0.iter().map(|(quota, amount)| (*quota, *amount))
    }
}
