//! Opens checkouts.

use super::checkout;
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        commerce::{
            checkouts::{
                CheckoutClaim, Checkouts, Command, New, Ordered, Price, RequestId, State,
                price::{ProviderAccount, price},
                view::session,
            },
            provider_key::provider_key,
        },
        world::World,
    },
    runtime::resource::Input,
};
use contract::{
    AppId, CheckoutId, Fault, Serves,
    checkouts::{CheckoutSession, CheckoutState, CreateCheckout, PaymentProvider, Reference},
};
use std::time::Duration;

/// How long a call waits for the page of the provider.
const OPENS_WITHIN: Duration = Duration::from_secs(25);

impl Serves<CreateCheckout> for Platform {
    async fn serve(&self, cx: &Call, p: CreateCheckout) -> Result<CheckoutSession, Fault> {
        let id = begin_checkout(cx, p).await?;
        let mut state = checkout(&self.world, id)?;
        if !state.is_open() {
            // Without a page after that time, the same call can wait for it again.
            let _ = self.world.to::<Checkouts>(id).wait_idle(OPENS_WITHIN).await;
            state = checkout(&self.world, id)?;
        }
        let opened = session(id, &state).ok_or_else(|| match &state.problem {
            Some(problem) if !problem.unreachable => Fault::Refused(problem.text.clone()),
            _ => unreachable(&state),
        })?;
        cx.keep(&opened, false).await;
        Ok(opened)
    }
}

/// Nothing was paid, and the same call may succeed later.
fn unreachable(state: &State) -> Fault {
    let why = state.problem.as_ref().map_or("", |problem| problem.text.as_str());
    tracing::warn!(app = %state.app_id, why, "a checkout could not be opened");
    Fault::Unavailable(match state.state {
        CheckoutState::OrderBuilding if state.order.is_none() => "the shop",
        _ if state.total.is_none() && matches!(state.ordered.price, Price::Shop { .. }) => {
            "the shop"
        }
        _ => "the payment provider",
    })
}

/// The checkout of this call: a new one, or that of an earlier call with the same request id.
async fn begin_checkout(cx: &Call, p: CreateCheckout) -> Result<CheckoutId, Fault> {
    let world = &cx.world;
    let request = cx.idempotency.as_ref().map(|request| RequestId {
        key: request.key.clone(),
        fingerprint: request.fingerprint.clone(),
    });
    if let Some(request) = &request {
        let claim = CheckoutClaim::Request { key: request.key.clone() };
        if let Some(id) = world.store.holder::<Checkouts>(&claim)? {
            let state = checkout(world, id)?;
            if state.request.as_ref() != Some(request) {
                return Err(Fault::Malformed("this request id was used before with other parameters; use a new one for a new call".into()));
            }
            if state.can_begin_again() {
                world.to::<Checkouts>(id).ask(Command::Again).await?;
            }
            return Ok(id);
        }
    }
    let account = account(world, p.app_id)?;
    let price = price(world, &account, &p).await?;
    let id: CheckoutId = world.ports.random.id(cx.now);
    let return_to = match p.callback_url {
        Some(url) => url,
        None => {
            let page = format!("{}/checkouts/{}", world.ports.site.api_url, Reference(id));
            page.parse().map_err(|_| Fault::Internal)?
        }
    };
    let ordered = Ordered {
        price,
        store_id: p.store_id,
        customer: p.customer,
        return_to,
        metadata: p.metadata,
    };
    let new = New { app_id: p.app_id, provider: account.provider, ordered, request };
    cx.to::<Checkouts>(id).tell(Input::Create(Box::new(new))).await?;
    Ok(id)
}

/// The account for which the app stored a credential last.
fn account(world: &World, app: AppId) -> Result<ProviderAccount, Fault> {
    let mut newest: Option<ProviderAccount> = None;
    for provider in PaymentProvider::ALL {
        if let Some((key, credential)) = provider_key(world, app, provider)?
            && newest
                .as_ref()
                .is_none_or(|other| other.credential.updated_at <= credential.updated_at)
        {
            newest = Some(ProviderAccount { provider, key, credential });
        }
    }
    newest.ok_or_else(|| {
        Fault::NotNow(
            "the app takes no payments yet: store a credential of the kind paystack or stripe \
             with svc_setCredential"
                .into(),
        )
    })
}
