//! What organizations use of their quotas, and what instances are promised of [`machines`].
//!
//! Each change of a resource adds to the usage of its organization in the same transaction, and the store
//! refuses it if a limit would be exceeded. So the usage is never wrong, also after a crash, and sixteen
//! callers at once get no more than one by one.

mod machines;

pub use machines::{is_machine, machine, promises, to_promise};

use super::{accounts::Accounts, organizations::Organizations};
use crate::{
    kinds::{
        table::{self, KindVisitor, Owned},
        world::World,
    },
    runtime::{
        reindex::IndexVersion,
        resource::{Resource, Row},
        side_record::{End, SideRecord},
        store::Store,
        uses::{LimitsCount, Uses},
    },
};
use contract::{
    Fault, OrganizationId,
    authentication::Tier,
    quotas::{Quota, Unit},
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use store::{Change, Merge};

/// What counts changed since this version of the usage: a start counts everything again.
const VERSION: u16 = 6;
/// The key of [`VERSION`] beside those of the kinds' indexes.
const COUNTED: &str = "usage";

/// What one organization uses, or what is promised of a [`machine`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub uses: Uses,
}

impl SideRecord for Usage {
    fn end(&self) -> End {
        End::WhenUsed
    }
}

/// What a change adds to a usage, and takes from it.
#[derive(Debug, Clone)]
pub struct UsageDelta {
    adds: Uses,
    takes: Uses,
    /// `None`: the change tells of what has happened already.
    limits: Option<Limits>,
}

/// What an organization, or the machine, has.
#[derive(Debug, Clone)]
struct Limits {
    /// The tier of the organization. `None`: it is the machine.
    tier: Option<Tier>,
    quotas: BTreeMap<Quota, u64>,
}

impl Merge for Usage {
    type Delta = UsageDelta;

    fn merge(old: Option<Self>, delta: &UsageDelta) -> Option<Self> {
        let uses = old.unwrap_or_default().uses.and_all(&delta.adds).without(&delta.takes);
        (!uses.is_empty()).then_some(Usage { uses })
    }

    fn refuses(
        old: Option<&Self>,
        UsageDelta { adds, takes, limits }: &UsageDelta,
    ) -> Option<String> {
        let Limits { tier, quotas } = limits.as_ref()?;
        adds.iter().find_map(|(quota, added)| {
            let more = added.saturating_sub(takes.of(quota));
            let used = old.map_or(0, |old| old.uses.of(quota));
            let limit = *quotas.get(&quota)?;
            (more > 0 && used.saturating_add(more) > limit)
                .then(|| refusal(quota, (used, more, limit), *tier))
        })
    }
}

fn refusal(quota: Quota, (used, more, limit): (u64, u64, u64), tier: Option<Tier>) -> String {
    let (noun, unit) = (quota.noun(), quota.unit());
    let needs = match unit {
        Unit::Count => String::new(),
        Unit::Bytes | Unit::MilliCpus => format!(", and this needs {} more", unit.say(&more)),
    };
    match tier {
        None => format!(
            "this server has promised {} of {} {noun} (also to stopped ones){needs}; delete an instance first, or \
             ask an operator for a larger machine",
            unit.say(&used),
            unit.say(&limit)
        ),
        Some(tier) => of_organization(quota, (used, limit), tier, &needs),
    }
}

fn of_organization(quota: Quota, (used, limit): (u64, u64), tier: Tier, needs: &str) -> String {
    let (name, noun, unit) = (quota.name(), quota.noun(), quota.unit());
    let (used, limit) = (unit.say(&used), unit.say(&limit));
    let tier = format!("{tier:?}").to_lowercase();
    let less = match quota {
        // Without its data, a deleted one holds as much as before.
        Quota::InstanceDisk => "delete an instance with its data first",
        Quota::BuildMinutes => "wait for the next month",
        Quota::ImageBytes => {
            "wait twenty minutes, in which images that serve no longer are removed, or delete an instance"
        }
        _ => "delete some first",
    };
    let whose = if quota == Quota::Organizations { "you made" } else { "this organization uses" };
    format!(
        "{whose} {used} of {limit} {noun} (quota {name} of the tier {tier}){needs}; {less}, or \
         ask an operator for a higher tier"
    )
}

/// The change of the usage that a change of a resource makes.
pub(crate) fn accounted<R: Resource<Host = World>>(
    world: &World,
    id: &R::Key,
    (before, took): (Option<&R::State>, Uses),
    (after, takes): (Option<&R::State>, Uses),
    limits: LimitsCount,
) -> Result<Change, Fault> {
    let machines = |state: Option<&R::State>| -> BTreeSet<_> {
        state.map(R::machines).into_iter().flatten().collect()
    };
    let (of_before, of_after) = (machines(before), machines(after));
    if took == takes && of_before == of_after {
        return Ok(Change::new());
    }
    // What an instance had before it was deleted was promised once, and its owner can free nothing of it.
    let comes_back = before.is_some() && took.only(&machines::OF_MACHINE).is_empty();
    let counts = if comes_back { LimitsCount::No } else { limits };
    let mut change = machines::promised(world, (&of_before, &took), (&of_after, &takes), counts);
    let of = |state: Option<&R::State>, uses: &Uses| match state.filter(|_| !uses.is_empty()) {
        Some(state) => R::organization(id, state, &world.store),
        None => Ok(None),
    };
    let (from, to) = (of(before, &took)?, of(after, &takes)?);
    let delta = |to: OrganizationId, adds: Uses, takes: Uses| {
        let limits = match limits {
            LimitsCount::Yes if !adds.is_empty() => Some(limits_of(world, to)?),
            LimitsCount::Yes | LimitsCount::No => None,
        };
        Ok::<_, Fault>(UsageDelta { adds, takes, limits })
    };
    match (from, to) {
        (Some(from), Some(to)) if from == to => {
            change = change.merge::<Usage>(&to, delta(to, takes, took)?);
        }
        (from, to) => {
            if let Some(from) = from {
                change = change.merge::<Usage>(&from, delta(from, Uses::default(), took)?);
            }
            if let Some(to) = to {
                change = change.merge::<Usage>(&to, delta(to, takes, Uses::default())?);
            }
        }
    }
    Ok(change)
}

fn limits_of(world: &World, organization: OrganizationId) -> Result<Limits, Fault> {
    let tier = tier(&world.store, organization)?;
    let quotas = &world.ports.site.quotas;
    let limit = |quota: &Quota| Some((*quota, quotas.limit(tier, *quota)?));
    Ok(Limits { tier: Some(tier), quotas: Quota::ALL.iter().filter_map(limit).collect() })
}

/// The most that an organization may use of a quota. `None`: there is no limit.
pub fn limit(
    world: &World,
    organization: OrganizationId,
    quota: Quota,
) -> Result<Option<u64>, Fault> {
    Ok(limits_of(world, organization)?.quotas.get(&quota).copied())
}

/// How much of a quota an organization has left, as its resources count. `None`: there is no limit.
pub fn left(
    world: &World,
    organization: OrganizationId,
    quota: Quota,
) -> Result<Option<u64>, Fault> {
    let used = usage(&world.store, organization)?.of(quota);
    Ok(limit(world, organization, quota)?.map(|limit| limit.saturating_sub(used)))
}

/// What the members of an organization are told that uses more of a quota than it may.
pub fn told(
    world: &World,
    organization: OrganizationId,
    quota: Quota,
    used: u64,
) -> Result<String, Fault> {
    let limit = limit(world, organization, quota)?.unwrap_or(used);
    Ok(of_organization(quota, (used, limit), tier(&world.store, organization)?, ""))
}

/// The tier of an organization: that of its owner. The organizations of an administrator have no limits.
pub fn tier(store: &Store, organization: OrganizationId) -> Result<Tier, Fault> {
    let Some(found) = store.get::<Organizations>(&organization)? else { return Ok(Tier::Free) };
    let owner = store.get::<Accounts>(&found.owner)?;
    Ok(owner.map_or(Tier::Free, |owner| match owner.superadmin {
        true => Tier::Enterprise,
        false => owner.tier(),
    }))
}

/// What an organization uses.
pub fn usage(store: &Store, organization: OrganizationId) -> Result<Uses, Fault> {
    Ok(store.get::<Usage>(&organization)?.map(|found| found.uses.clone()).unwrap_or_default())
}

/// Counts what all organizations use, unless the store has it: for stores of earlier versions. Runs before
/// any owner exists.
pub async fn count_once(store: &Store) -> Result<(), Fault> {
    let key = COUNTED.to_owned();
    let known = store.get::<IndexVersion>(&key)?;
    if known.as_ref().is_some_and(|known| known.0 >= VERSION) {
        return Ok(());
    }
    let mut list = store.whole::<Usage>(None);
    while let Some(page) = list.next_keys().await? {
        let forget = |change: Change, id: &OrganizationId| change.drop_row::<Usage>(id);
        store.commit(page.iter().fold(Change::new(), forget)).await?;
    }
    for (organization, uses) in count(store)? {
        let delta = UsageDelta { adds: uses, takes: Uses::default(), limits: None };
        store.commit(Change::new().merge::<Usage>(&organization, delta)).await?;
    }
    let version = IndexVersion(VERSION);
    store.commit(Change::new().replace::<IndexVersion>(&key, known.as_deref(), version)).await
}

/// The organizations whose usage is not what is counted now.
pub fn miscounted(store: &Store) -> Result<Vec<OrganizationId>, Fault> {
    let mut counted = count(store)?;
    let mut wrong = Vec::new();
    for found in store.whole::<Usage>(None) {
        let (id, usage) = found?;
        if counted.remove(&id).unwrap_or_default() != usage.uses {
            wrong.push(id);
        }
    }
    wrong.extend(counted.into_keys());
    Ok(wrong)
}

/// What all organizations use, counted from the resources.
fn count(store: &Store) -> Result<BTreeMap<OrganizationId, Uses>, Fault> {
    let mut counting = Counting { store, sums: BTreeMap::new() };
    table::visit(&mut counting)?;
    Ok(counting.sums)
}

struct Counting<'a> {
    store: &'a Store,
    sums: BTreeMap<OrganizationId, Uses>,
}

impl Counting<'_> {
    fn add(&mut self, to: OrganizationId, uses: &Uses) {
        if !uses.is_empty() {
            let sum = self.sums.entry(to).or_default();
            *sum = std::mem::take(sum).and_all(uses);
        }
    }
}

impl KindVisitor for Counting<'_> {
    type Error = Fault;

    fn visit<R: Owned>(&mut self) -> Result<(), Fault> {
        for found in self.store.whole::<R>(None) {
            let (id, kept) = found?;
            let uses = kept.uses();
            if uses.is_empty() {
                continue;
            }
            if let Some(organization) = <R as Row>::organization(&id, &kept.state, self.store)? {
                self.add(organization, &uses);
            }
            for engine in R::machines(&kept.state) {
                self.add(machine(engine), &uses.only(&machines::OF_MACHINE));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(adds: Uses, takes: Uses, most: u64) -> UsageDelta {
        let quotas = BTreeMap::from([(Quota::Instances, most), (Quota::ArtifactBytes, most)]);
        UsageDelta { adds, takes, limits: Some(Limits { tier: Some(Tier::Free), quotas }) }
    }

    #[test]
    fn a_quota_is_used_up_to_its_limit_and_the_refusal_says_so() {
        let one = || Uses::one(Quota::Instances);
        let mut usage = None;
        for _ in 0..2 {
            let more = delta(one(), Uses::default(), 2);
            assert_eq!(Usage::refuses(usage.as_ref(), &more), None);
            usage = Usage::merge(usage, &more);
        }
        let refused = Usage::refuses(usage.as_ref(), &delta(one(), Uses::default(), 2)).unwrap();
        assert!(refused.starts_with("this organization uses 2 of 2 instances (quota instances "));
        // What takes no more is never refused, also beyond a limit that was lowered.
        assert_eq!(Usage::refuses(usage.as_ref(), &delta(one(), one(), 1)), None);
        let happened = UsageDelta { adds: one(), takes: Uses::default(), limits: None };
        assert_eq!(Usage::refuses(usage.as_ref(), &happened), None);
        let less = delta(Uses::default(), one().and_all(&one()), 2);
        assert_eq!(Usage::merge(usage, &less), None);
    }

    #[test]
    fn a_larger_amount_is_said_with_what_is_needed() {
        let used = Usage { uses: Uses::default().and(Quota::ArtifactBytes, 3 << 30) };
        let more = Uses::default().and(Quota::ArtifactBytes, 2 << 30);
        let refused = Usage::refuses(Some(&used), &delta(more, Uses::default(), 4 << 30)).unwrap();
        assert_eq!(
            refused,
            "this organization uses 3 GiB of 4 GiB artifacts (quota artifactBytes of the tier free), and this \
             needs 2 GiB more; delete some first, or ask an operator for a higher tier"
        );
    }
}
