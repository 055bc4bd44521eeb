//! What accounts use of their rate limits, and organizations of their quotas.

use crate::{
    call::{context::Call, platform::Platform},
    functions::people::organizations::made,
    kinds::{
        hosting::image_builds::quotas::minutes,
        people::{
            organizations::Organizations,
            usage::{Usage as StoredUsage, is_machine, promises, tier, usage},
        },
        world::World,
    },
};
use contract::{
    Fault, OrganizationId, Serves, Timestamp,
    authentication::{GetUsage, Usage},
    operators::{GetLargestUsers, LargestUsers, QuotaUser},
    quotas::{Quota, QuotaUse},
};
use std::{cmp::Reverse, collections::BTreeSet};

impl Serves<GetUsage> for Platform {
    async fn serve(&self, cx: &Call, p: GetUsage) -> Result<Usage, Fault> {
        let user = cx.user()?;
        let tier = user.account.state.tier();
        let calls_per_minute = tier.per_minute();
        let left = self.authn.peek_user(&self.world, user.id).map(|allowance| allowance.remaining);
        let organization_id = p.organization_id.unwrap_or(user.account.state.personal);
        Ok(Usage {
            tier,
            calls_per_minute,
            calls_left: calls_per_minute.and(left),
            organization_id,
            organization_tier: self::tier(&self.world.store, organization_id)?,
            quotas: self.quotas(organization_id, cx.now)?,
        })
    }
}

impl Serves<GetLargestUsers> for Platform {
    async fn serve(&self, cx: &Call, p: GetLargestUsers) -> Result<LargestUsers, Fault> {
        let mut largest = BTreeSet::new();
        let mut list = self.world.store.whole::<StoredUsage>(None);
        while let Some(page) = list.next_keys().await? {
            for id in page {
                if is_machine(&self.world.store, id)? {
                    continue;
                }
                let used = self.used(id, p.quota, cx.now)?.unwrap_or_default();
                if used > 0 {
                    largest.insert((Reverse(used), id));
                }
            }
            while largest.len() > p.limit.get() {
                largest.pop_last();
            }
        }
        let user = |(Reverse(used), id)| quota_user(&self.world, id, p.quota, used).transpose();
        let organizations = largest.into_iter().filter_map(user).collect::<Result<_, Fault>>()?;
        let promised = promises(&self.world)?;
        Ok(LargestUsers { quota: p.quota, unit: p.quota.unit(), organizations, promised })
    }
}

impl Platform {
    /// What an organization uses of each quota.
    fn quotas(&self, organization: OrganizationId, now: Timestamp) -> Result<Vec<QuotaUse>, Fault> {
        let tier = tier(&self.world.store, organization)?;
        let of = |quota: &Quota| {
            let used = self.used(organization, *quota, now).transpose()?;
            Some(used.map(|used| QuotaUse {
                quota: *quota,
                unit: quota.unit(),
                used,
                limit: self.world.ports.site.quotas.limit(tier, *quota),
            }))
        };
        Quota::ALL.iter().filter_map(of).collect()
    }

    /// What an organization uses of a quota. `None`: it does not have the quota.
    fn used(&self, id: OrganizationId, quota: Quota, now: Timestamp) -> Result<Option<u64>, Fault> {
        let store = &self.world.store;
        Ok(Some(match quota {
            Quota::Organizations => return made_by_owner(&self.world, id),
            Quota::BuildMinutes => minutes(store, id, now)?,
            Quota::Mails => self.invitations.sent_by(&id.to_string(), now)? as u64,
            _ => usage(store, id)?.of(quota),
        }))
    }
}

/// How many organizations the owner of a personal organization made. `None`: it is none.
fn made_by_owner(world: &World, id: OrganizationId) -> Result<Option<u64>, Fault> {
    let found = world.store.get::<Organizations>(&id)?;
    let owner = found.filter(|found| found.personal).map(|found| found.owner);
    owner.map(|owner| made(world, owner)).transpose()
}

/// An organization with its use of a quota; `None` if it is gone.
fn quota_user(
    world: &World,
    id: OrganizationId,
    quota: Quota,
    used: u64,
) -> Result<Option<QuotaUser>, Fault> {
    let Some(found) = world.store.get::<Organizations>(&id)? else { return Ok(None) };
    let tier = tier(&world.store, id)?;
    let limit = world.ports.site.quotas.limit(tier, quota);
    Ok(Some(QuotaUser { organization_id: id, name: found.name.clone(), tier, used, limit }))
}
