//! The effect of a certificate: the next step to a valid one.

use super::{
    account,
    names::{certificate_name, is_known, tenant_of},
    rules::{Certificates, Issued, Order, Outcome},
};
use crate::{
    kinds::world::World,
    ports::certificate_authority::{self as authority, CertificateAuthority, NotIssued},
    runtime::{
        resource::Retry,
        turns::{Tenant, Turns},
    },
};
use contract::CertificateId;
use std::{sync::Arc, time::Duration};
use store::Snapshot;

/// How long one step may take. The authority looks at the name from several places of the world.
const WITHIN: Duration = Duration::from_secs(120);
/// How long a step waits in memory for its turn.
const AWAITS_TURN: Duration = Duration::from_secs(300);
/// How many names an authority works on at the same time.
const AT_ONCE: usize = 32;

/// The turns at the authority.
pub fn turns() -> Turns<Tenant> {
    Turns::halved(AT_ONCE)
}

/// Orders a certificate; in the next step, proves the name and fetches it. The order is written in between,
/// so that a crash repeats no order: authorities allow few of them for one name.
pub(super) async fn advance(
    id: CertificateId,
    kept: Snapshot<Certificates>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let Some(authority) = &world.ports.certificates else { return Ok(Outcome::Unneeded) };
    let site = &world.ports.site;
    // Whether it is the one that this name is served with.
    let serves = certificate_name(site, &kept.name, authority.issues_wildcards()) == kept.name;
    if !serves || !is_known(&world, kept.name.as_str())? {
        return Ok(Outcome::Unneeded);
    }
    let clock = &world.ports.clock;
    let turn = world.certificate_turns.take(tenant_of(&world, &kept.name)?);
    let turn = clock.limit(AWAITS_TURN, turn).await;
    let _turn = turn.ok_or_else(|| Retry("there was no turn at the authority".into()))??;
    match clock.limit(WITHIN, step(id, &kept, &world, &**authority)).await {
        Some(outcome) => outcome,
        None => Ok(Outcome::Failed(NotIssued::Unavailable(format!(
            "the authority did not answer within {} seconds",
            WITHIN.as_secs()
        )))),
    }
}

async fn step(
    id: CertificateId,
    kept: &Snapshot<Certificates>,
    world: &World,
    authority: &dyn CertificateAuthority,
) -> Result<Outcome, Retry> {
    let credentials = match account::credentials(world, authority).await? {
        Ok(credentials) => credentials,
        Err(e) => return Ok(Outcome::Failed(e)),
    };
    let (sealer, owner) = (&world.ports.sealer, id.to_string());
    let under_way = kept.order.as_ref().filter(|order| order.authority == authority.address());
    let key = under_way.map(|order| sealer.open(&owner, &order.key));
    // An order whose key cannot be opened is worth nothing.
    let done = match under_way.zip(key.and_then(Result::ok)) {
        None => authority.order(&credentials, &kept.name).await.map(Done::Ordered),
        Some((order, key)) => {
            let order = authority::Order { url: order.url.clone(), key };
            authority
                .complete(&credentials, &kept.name, &order, kept.failures)
                .await
                .map(|issued| Done::Issued(issued, order.key))
        }
    };
    Ok(match done {
        Ok(Done::Ordered(order)) => Outcome::Ordered(Order {
            authority: authority.address().to_owned(),
            url: order.url,
            key: sealer.seal(&owner, &order.key)?,
        }),
        Ok(Done::Issued(issued, key)) => Outcome::Issued(Issued {
            chain: issued.chain,
            key: sealer.seal(&owner, &key)?,
            valid_from: issued.valid_from,
            expires_at: issued.expires_at,
        }),
        Err(e) => {
            if matches!(e, NotIssued::NoAccount(_)) {
                account::forget(world, &credentials).await?;
            }
            Outcome::Failed(e)
        }
    })
}

/// What the authority did.
enum Done {
    Ordered(authority::Order),
    Issued(authority::Issued, String),
}
