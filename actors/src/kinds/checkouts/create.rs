//! Opens checkouts.

use super::{
    CheckoutClaim, Checkouts, Command, New, Ordered, Price, RequestId, State, view::session,
};
use crate::{
    call::context::Call,
    kinds::{checkouts::effects::provider_key, commerce_channels},
    platform::Platform,
    runtime::resource::Input,
};
use contract::{
    AppId, CheckoutId, Fault, Name, Serves,
    checkouts::{
        CheckoutFlow, CheckoutSession, CheckoutState, CreateCheckout, LineItem, PaymentProvider,
        Reference,
    },
    money::Amount,
    text::Currency,
};
use std::time::Duration;

/// How long a call waits for the page of the provider.
const OPENS_WITHIN: Duration = Duration::from_secs(25);
const MOST_LINES: usize = 100;
const MOST_OF_A_LINE: u32 = 10_000;

impl Serves<CreateCheckout> for Platform {
    async fn serve(&self, cx: &Call, p: CreateCheckout) -> Result<CheckoutSession, Fault> {
        let id = self.begin_checkout(cx, p).await?;
        let owners = &self.owners()?.checkouts;
        let mut state = self.checkout(id)?;
        if !state.is_open() {
            // Without a page after that time, the same call can wait for it again.
            let _ = owners.wait_idle(id, OPENS_WITHIN).await;
            state = self.checkout(id)?;
        }
        let opened = session(id, &state).ok_or_else(|| match &state.problem {
            Some(problem) if !problem.unreachable => Fault::Refused(problem.text.clone()),
            _ => unreachable(&state),
        })?;
        cx.keep(&self.world, &opened, false);
        Ok(opened)
    }
}

/// Nothing was paid, and the same call may succeed later.
fn unreachable(state: &State) -> Fault {
    let why = state.problem.as_ref().map_or("", |problem| problem.text.as_str());
    tracing::warn!(app = %state.app_id, why, "a checkout could not be opened");
    Fault::Unavailable(match state.state {
        CheckoutState::OrderBuilding => "the shop",
        _ if state.total.is_none() && matches!(state.ordered.price, Price::Shop { .. }) => {
            "the shop"
        }
        _ => "the payment provider",
    })
}

impl Platform {
    /// The checkout of this call: a new one, or that of an earlier call with the same request id.
    async fn begin_checkout(&self, cx: &Call, p: CreateCheckout) -> Result<CheckoutId, Fault> {
        let (world, owners) = (&self.world, &self.owners()?.checkouts);
        let request = cx.idempotency.as_ref().map(|request| RequestId {
            key: request.key.clone(),
            fingerprint: request.fingerprint.clone(),
        });
        if let Some(request) = &request {
            let claim = CheckoutClaim::Request { key: request.key.clone() };
            if let Some(id) = world.store.holder::<Checkouts>(&claim)? {
                let state = self.checkout(id)?;
                if state.request.as_ref() != Some(request) {
                    return Err(Fault::Malformed("this request id was used before with other parameters; use a new one for a new call".into()));
                }
                if state.can_begin_again() {
                    owners.ask(id, Command::Again).await?;
                }
                return Ok(id);
            }
        }
        let provider = self.payment_provider(p.app_id)?;
        let price = self.price(&p)?;
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
        let new = New { app_id: p.app_id, provider, ordered, request };
        cx.tell(world, owners, id, Input::Create(Box::new(new))).await?;
        Ok(id)
    }

    /// The provider for which the app stored a credential last.
    fn payment_provider(&self, app: AppId) -> Result<PaymentProvider, Fault> {
        let mut newest = None;
        for provider in PaymentProvider::ALL {
            if let Some((_, credential)) = provider_key(&self.world, app, provider)? {
                newest = newest.max(Some((credential.updated_at, provider)));
            }
        }
        newest.map(|(_, provider)| provider).ok_or_else(|| {
            Fault::NotNow(
                "the app takes no payments yet: store a credential of the kind paystack or stripe \
                 with svc_setCredential"
                    .into(),
            )
        })
    }

    fn price(&self, p: &CreateCheckout) -> Result<Price, Fault> {
        let given = |field: &str, is_given: bool, why: &str| match is_given {
            true => Err(Fault::invalid(field, why)),
            false => Ok(()),
        };
        match (p.flow, &p.payment_plan_code) {
            (CheckoutFlow::Commerce, plan) => {
                let why = "is not for the flow commerce: the shop says what is to be paid";
                given("amount", p.amount.is_some(), why)?;
                given("currency", p.currency.is_some(), why)?;
                given("paymentPlanCode", plan.is_some(), why)?;
                let Some(store) = &p.store_id else {
                    return Err(Fault::invalid("storeId", "is required for the flow commerce"));
                };
                let items = p.line_items.as_deref().unwrap_or_default();
                Ok(Price::Shop {
                    channel: commerce_channels::of_store(&self.world, p.app_id, store)?,
                    lines: lines(items, ordered_line)?,
                    shipping_address: p.shipping_address.clone().map(Box::new),
                    shipping_method: p.shipping_method.clone(),
                })
            }
            (CheckoutFlow::Direct, plan) => {
                let why = "is only for the flow commerce";
                given("shippingAddress", p.shipping_address.is_some(), why)?;
                given("shippingMethod", p.shipping_method.is_some(), why)?;
                if let Some(code) = plan {
                    let why = "cannot be given with paymentPlanCode: the plan has its price";
                    given("lineItems", p.line_items.is_some(), why)?;
                    return Ok(Price::Plan { code: code.clone(), expected: p.amount });
                }
                direct(p)
            }
        }
    }

    pub(super) fn checkout(&self, id: CheckoutId) -> Result<State, Fault> {
        let seen = self.world.store.get::<Checkouts>(&id)?.filter(|seen| !seen.state.deleting);
        Ok(seen.ok_or(Fault::NotFound("checkout"))?.state.clone())
    }
}

/// The price that the caller says.
fn direct(p: &CreateCheckout) -> Result<Price, Fault> {
    let currency = currency(p.currency.as_ref())?;
    let lines = match (p.amount, &p.line_items) {
        (Some(unit), None) => vec![payments::Line { name: "Payment".into(), unit, quantity: 1 }],
        (None, Some(items)) => lines(items, priced_line)?,
        (None, None) => {
            let why = "is required for the flow direct, or lineItems, or paymentPlanCode";
            return Err(Fault::invalid("amount", why));
        }
        (Some(_), Some(_)) => {
            let why = "cannot be given with amount: the sum of the lines is charged";
            return Err(Fault::invalid("lineItems", why));
        }
    };
    let sum = lines.iter().try_fold(0_u64, |sum, line| {
        sum.checked_add(line.unit.minor().checked_mul(u64::from(line.quantity))?)
    });
    match sum.and_then(Amount::new) {
        Some(_) => Ok(Price::Lines { lines, currency }),
        None => Err(Fault::invalid("lineItems", format!("the sum is more than {}", Amount::MOST))),
    }
}

fn currency(given: Option<&Currency>) -> Result<Currency, Fault> {
    let Some(currency) = given else {
        return Err(Fault::invalid("currency", "is required for the flow direct, such as EUR"));
    };
    match currency.decimals() {
        Some(_) => Ok(currency.clone()),
        None => {
            Err(Fault::invalid("currency", "is not a currency of ISO 4217 that people pay with"))
        }
    }
}

/// Reads the lines; `read` gets each with its path.
fn lines<T>(
    items: &[LineItem],
    read: impl Fn(&LineItem, &str) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    if items.is_empty() || items.len() > MOST_LINES {
        return Err(Fault::invalid("lineItems", format!("must have 1 to {MOST_LINES} lines")));
    }
    let line = |(number, item): (usize, &LineItem)| {
        let at = format!("lineItems[{number}]");
        if !(1..=MOST_OF_A_LINE).contains(&item.quantity) {
            let why = format!("must be 1 to {MOST_OF_A_LINE}");
            return Err(Fault::invalid(&format!("{at}.quantity"), why));
        }
        read(item, &at)
    };
    items.iter().enumerate().map(line).collect()
}

fn priced_line(item: &LineItem, at: &str) -> Result<payments::Line, Fault> {
    if item.variant_id.is_some() || item.sku.is_some() {
        return Err(Fault::invalid(at, "must have name and unitAmount, not variantId or sku"));
    }
    let field = |field: &str| format!("{at}.{field}");
    let name = item.name.as_ref().map(Name::to_string);
    Ok(payments::Line {
        name: name.ok_or_else(|| Fault::invalid(&field("name"), "is required"))?,
        unit: item
            .unit_amount
            .ok_or_else(|| Fault::invalid(&field("unitAmount"), "is required"))?,
        quantity: item.quantity,
    })
}

fn ordered_line(item: &LineItem, at: &str) -> Result<commerce::Line, Fault> {
    if item.unit_amount.is_some() || item.name.is_some() {
        let why = "must not have name or unitAmount: the shop says what is to be paid";
        return Err(Fault::invalid(at, why));
    }
    let text = |name: &Name| name.as_str().to_owned();
    let variant = match (&item.variant_id, &item.sku) {
        (Some(id), None) => commerce::Variant::Id(text(id)),
        (None, Some(sku)) => commerce::Variant::Sku(text(sku)),
        _ => return Err(Fault::invalid(at, "must have either variantId or sku")),
    };
    Ok(commerce::Line { variant, quantity: item.quantity })
}
