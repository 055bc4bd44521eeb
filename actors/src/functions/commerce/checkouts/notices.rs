//! Notices of payment providers. A notice only says what to look at, so one that comes twice, late
//! or in another order does no harm.

use crate::kinds::{
    commerce::{
        checkouts::{Checkouts, Command},
        provider_key::provider_key,
        subscriptions,
    },
    world::World,
};
use contract::{
    AppId, Fault,
    checkouts::{NoticeReceived, PaymentProvider, Reference},
};
use payments::{About, Notice, NoticeRefused, RemoteError, Signature, read_notice};
use std::time::Duration;

/// How long the provider may take to say which of our payments a notice is about.
const ASKED_WITHIN: Duration = Duration::from_secs(15);

/// Takes a notice that a provider posted for an app. It is answered when what follows from it is
/// on the disk: a provider repeats what is not answered, and what is refused because there are
/// [too many](crate::kinds::commerce::notice_limit).
pub async fn payment_notice(
    world: &World,
    app: AppId,
    provider: PaymentProvider,
    signature: &Signature,
    body: &[u8],
) -> Result<NoticeReceived, Fault> {
    let (key, _) = provider_key(world, app, provider)?
        .ok_or(Fault::NotFound("app with a credential of this provider"))?;
    let notice = read_notice(&key, signature, body, world.ports.clock.now());
    let Notice { event, about } = notice.map_err(|refused| match refused {
        NoticeRefused::Signature(why) => Fault::Unauthenticated(why),
        unreadable @ NoticeRefused::Unreadable(_) => Fault::Malformed(unreadable.to_string()),
    })?;
    // Only what the app's own secret signed takes of what the app has left.
    world.notice_limit.count(app)?;
    tracing::debug!(%app, provider = provider.name(), event, ?about, "a notice of a payment provider");
    match about {
        About::Payment(reference) => look_at(world, app, reference).await?,
        About::PaymentId(id) => {
            let client = world.ports.payments.get(&provider).ok_or(Fault::Internal)?;
            let asked = world.ports.clock.limit(ASKED_WITHIN, client.reference_of(&key, &id));
            match asked.await {
                Some(Ok(Some(reference))) => look_at(world, app, reference).await?,
                // A payment that was not made here.
                Some(Ok(None) | Err(RemoteError::Refused(_))) => {}
                _ => return Err(Fault::Unavailable("the payment provider")),
            }
        }
        About::Subscription(id) => subscriptions::noticed(world, (app, provider), &id).await?,
        About::Nothing => {}
    }
    Ok(NoticeReceived { received: true })
}

/// Lets the owner of a checkout look at its payment. A reference of somebody else's system, or of
/// another app, is none of ours.
async fn look_at(world: &World, app: AppId, Reference(id): Reference) -> Result<(), Fault> {
    let seen = world.store.get::<Checkouts>(&id)?;
    match seen {
        Some(seen) if seen.state.app_id == app => {
            world.to::<Checkouts>(id).ask_if_there(Command::Look).await
        }
        _ => Ok(()),
    }
}
