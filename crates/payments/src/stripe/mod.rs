//! Stripe. Sources: its API reference at docs.stripe.com/api, "How Checkout works", "Idempotent
//! requests" and "Fulfill orders" in its documentation.

mod answers;
mod form;
mod price;
mod subscriptions;

use crate::{
    Payment, PaymentOrder, PaymentPage, Provider, ProviderKey, RemoteError, StripeKey,
    Subscription, SubscriptionPlan, amounts::Amounts,
};
use answers::{AccountBody, CheckoutSession, Disputes, IntentOwner, StripeError};
use async_trait::async_trait;
use contract::{
    Timestamp,
    checkouts::Reference,
    text::{Currency, PlanCode, WebUrl},
};
use form::Form;
use price::Price;
use remote::{Http, RemoteResponse, Repeat};
use serde::de::DeserializeOwned;
use subscriptions::SubscriptionData;

/// Where Stripe's API is.
pub const ADDRESS: &str = "https://api.stripe.com";
/// The version of the API whose shapes are read here. Stripe keeps every version. In later ones the
/// end of the period moves from the subscription to its items, and invoices name their subscription
/// and payment elsewhere.
pub const VERSION: &str = "2022-11-15";

/// Stripe, reached through its API.
///
/// Sessions of Checkout are made with the reference as idempotency key: the same order made again
/// gives the same session. Stripe keeps such keys for a day, and a session is open for a day at most.
pub struct Stripe {
    http: Http,
    /// Without a slash at the end.
    address: String,
}

impl Stripe {
    /// Stripe at this address; the real one is at [`ADDRESS`].
    pub fn new(address: &str) -> Result<Stripe, String> {
        let address = address.trim_end_matches('/').to_owned();
        Ok(Stripe { http: Http::new("Stripe")?, address })
    }

    async fn get(&self, key: &StripeKey, path: &str) -> Result<RemoteResponse, RemoteError> {
        let request = self.http.client().get(format!("{}{path}", self.address));
        let request = request.bearer_auth(&key.secret_key.0).header("Stripe-Version", VERSION);
        self.http.send(request, Repeat::Harmless).await
    }

    /// Sends a form. With an idempotency key, Stripe does it once however often it is sent.
    async fn post(
        &self,
        key: &StripeKey,
        path: &str,
        form: &Form,
        idempotency_key: Option<&str>,
    ) -> Result<RemoteResponse, RemoteError> {
        let mut request = self
            .http
            .client()
            .post(format!("{}{path}", self.address))
            .bearer_auth(&key.secret_key.0)
            .header("Stripe-Version", VERSION)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(form.encoded());
        if let Some(idempotency_key) = idempotency_key {
            request = request.header("Idempotency-Key", idempotency_key);
        }
        self.http.send(request, Repeat::Harmless).await
    }

    /// Asks for something of which `None` says that Stripe does not know it.
    async fn find<T: DeserializeOwned>(
        &self,
        key: &StripeKey,
        path: &str,
    ) -> Result<Option<T>, RemoteError> {
        let answer = self.get(key, path).await?;
        if answer.is_ok() {
            return answer.read().map(Some);
        }
        let failure = StripeError::of(&answer);
        if failure.status == 404 { Ok(None) } else { Err(failure.refused()) }
    }

    async fn session(
        &self,
        key: &StripeKey,
        id: &str,
    ) -> Result<Option<CheckoutSession>, RemoteError> {
        if !is_plain(id) {
            return Ok(None);
        }
        let path = format!(
            "/v1/checkout/sessions/{id}?expand[0]=payment_intent.latest_charge\
             &expand[1]=invoice.charge&expand[2]=line_items"
        );
        self.find(key, &path).await
    }
}

/// The key for Stripe; refused if it is one for another provider.
fn own(key: &ProviderKey) -> Result<&StripeKey, RemoteError> {
    match key {
        ProviderKey::Stripe(key) => Ok(key),
        ProviderKey::Paystack(_) => Err(RemoteError::Refused(
            "The credential is one for Paystack. Give the app a credential for Stripe.".into(),
        )),
    }
}

/// Whether an id of Stripe has nothing that means something in an address.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

fn refused(why: impl Into<String>) -> RemoteError {
    RemoteError::Refused(why.into())
}

/// The form that makes a session. Refused if the order contradicts itself.
fn session_form(order: &PaymentOrder) -> Result<Form, RemoteError> {
    let currency = &order.total.currency;
    let sum = order.lines.iter().try_fold(0_u64, |sum, line| {
        sum.checked_add(line.unit.minor().checked_mul(line.quantity.into())?)
    });
    if sum != Some(order.total.amount.minor()) {
        return Err(refused(format!(
            "The lines of the order do not add up to its total of {}. This is a defect of the \
             service: report it.",
            order.total
        )));
    }
    let mut return_to = url::Url::parse(order.return_to.as_str())
        .map_err(|e| refused(format!("The address of the app cannot be read: {e}.")))?;
    return_to.query_pairs_mut().append_pair("reference", &order.reference.to_string());
    let mut form = Form::default();
    form.add("mode", if order.plan.is_some() { "subscription" } else { "payment" });
    form.add("success_url", &return_to);
    form.add("cancel_url", &return_to);
    form.add("client_reference_id", order.reference);
    form.add("customer_email", &order.customer.email);
    form.add("expires_at", order.expires_at.as_seconds());
    match &order.plan {
        Some(plan) => {
            let quantity = order.lines.first().map_or(1, |line| line.quantity);
            form.add("line_items[0][price]", plan);
            form.add("line_items[0][quantity]", quantity);
        }
        None => {
            for (at, line) in order.lines.iter().enumerate() {
                let amount = Amounts::Stripe.given(line.unit, currency).map_err(refused)?;
                let of = |name: &str| format!("line_items[{at}]{name}");
                form.add(&of("[price_data][currency]"), currency.as_str().to_lowercase());
                form.add(&of("[price_data][unit_amount]"), amount);
                form.add(&of("[price_data][product_data][name]"), &line.name);
                form.add(&of("[quantity]"), line.quantity);
            }
        }
    }
    // What comes of the session carries the reference too, for people who see it in the dashboard and
    // for notices about it.
    let data = if order.plan.is_some() { "subscription_data" } else { "payment_intent_data" };
    for (name, value) in order.metadata.iter().filter(|(name, _)| *name != "reference") {
        form.add(&format!("metadata[{name}]"), value);
        form.add(&format!("{data}[metadata][{name}]"), value);
    }
    form.add("metadata[reference]", order.reference);
    form.add(&format!("{data}[metadata][reference]"), order.reference);
    Ok(form)
}

#[async_trait]
impl Provider for Stripe {
    /// [`PaymentOrder::expires_at`] must be from 30 minutes to 24 hours after the first call: Stripe refuses
    /// others. The repeated call must have exactly the same order.
    async fn open(
        &self,
        key: &ProviderKey,
        order: &PaymentOrder,
    ) -> Result<PaymentPage, RemoteError> {
        let key = own(key)?;
        let form = session_form(order)?;
        let reference = order.reference.to_string();
        let answer = self.post(key, "/v1/checkout/sessions", &form, Some(&reference)).await?;
        if !answer.is_ok() {
            let failure = StripeError::of(&answer);
            return Err(match failure.is_in_use() {
                true => failure.busy(),
                false => failure.refused(),
            });
        }
        let made: CheckoutSession = answer.read()?;
        // The stored answer says that the session is open, also when it was paid since.
        let now = match answer.header("Idempotent-Replayed") {
            Some("true") => self.session(key, &made.id).await?.unwrap_or(made),
            _ => made,
        };
        let url = now.url.as_deref().map(str::parse::<WebUrl>).transpose();
        Ok(PaymentPage {
            url: url
                .map_err(|e| refused(format!("Stripe says an address that is none: it {e}.")))?,
            session: Some(now.id),
            access_code: None,
            expires_at: Some(Timestamp::from_millis(now.expires_at.saturating_mul(1000))),
        })
    }

    /// Stripe finds a payment by its session. Without one there is no payment to find: the address
    /// of the page comes together with the session.
    async fn payment(
        &self,
        key: &ProviderKey,
        _reference: Reference,
        session: Option<&str>,
    ) -> Result<Option<Payment>, RemoteError> {
        let key = own(key)?;
        let Some(id) = session else { return Ok(None) };
        let Some(session) = self.session(key, id).await? else { return Ok(None) };
        let mut payment = session.payment()?;
        if let Some(charge) = session.charge().filter(|charge| charge.disputed) {
            let path = format!("/v1/disputes?charge={}&limit=100", charge.id);
            let disputes: Option<Disputes> = self.find(key, &path).await?;
            payment.dispute = disputes.and_then(|disputes| disputes.newest(&charge.id));
        }
        Ok(Some(payment))
    }

    /// The payment of a subscription has no metadata of its own, so the one of the subscription is
    /// read: a renewal has the reference of the payment that began the subscription.
    async fn reference_of(
        &self,
        key: &ProviderKey,
        payment_id: &str,
    ) -> Result<Option<Reference>, RemoteError> {
        if !is_plain(payment_id) {
            return Ok(None);
        }
        let path = format!("/v1/payment_intents/{payment_id}?expand[0]=invoice.subscription");
        let found = self.find::<IntentOwner>(own(key)?, &path).await?;
        Ok(found.and_then(|intent| intent.reference()))
    }

    async fn close(&self, key: &ProviderKey, session: &str) -> Result<bool, RemoteError> {
        let key = own(key)?;
        if !is_plain(session) {
            return Ok(false);
        }
        let path = format!("/v1/checkout/sessions/{session}/expire");
        let answer = self.post(key, &path, &Form::default(), None).await?;
        if answer.is_ok() {
            return answer.read::<CheckoutSession>().map(|session| session.is_expired());
        }
        let failure = StripeError::of(&answer);
        if failure.status == 401 || failure.status == 403 {
            return Err(failure.refused());
        }
        // It was not open any more.
        Ok(self.session(key, session).await?.is_some_and(|session| session.is_expired()))
    }

    async fn plan(
        &self,
        key: &ProviderKey,
        code: &PlanCode,
    ) -> Result<SubscriptionPlan, RemoteError> {
        let path = format!("/v1/prices/{code}?expand[0]=product");
        let found = self.find::<Price>(own(key)?, &path).await?;
        let unknown = || {
            refused(format!(
                "Stripe does not know the price {code}. A plan is the id of a recurring price, which \
                 begins with price_."
            ))
        };
        found.ok_or_else(unknown)?.plan()
    }

    async fn subscription(
        &self,
        key: &ProviderKey,
        id: &str,
    ) -> Result<Option<Subscription>, RemoteError> {
        if !is_plain(id) {
            return Ok(None);
        }
        let path = format!(
            "/v1/subscriptions/{id}?expand[0]=customer&expand[1]=latest_invoice.payment_intent"
        );
        let found = self.find::<SubscriptionData>(own(key)?, &path).await?;
        found.as_ref().map(SubscriptionData::subscription).transpose()
    }

    async fn subscription_of(
        &self,
        key: &ProviderKey,
        payment: &Payment,
    ) -> Result<Option<Subscription>, RemoteError> {
        match &payment.subscription {
            Some(id) => self.subscription(key, id).await,
            None => Ok(None),
        }
    }

    /// The default currency of the account. A restricted key needs the permission to read the account; without it, Stripe answers 403,
    /// and the currency is not known. Source: "Retrieve account" in Stripe's API reference.
    async fn currencies(&self, key: &ProviderKey) -> Result<Vec<Currency>, RemoteError> {
        let answer = self.get(own(key)?, "/v1/account").await?;
        if !answer.is_ok() {
            let failure = StripeError::of(&answer);
            return if failure.status == 403 { Ok(Vec::new()) } else { Err(failure.refused()) };
        }
        let account: AccountBody = answer.read()?;
        let read = |code: String| {
            code.to_uppercase().parse().map_err(|e| {
                refused(format!("Stripe says a currency that cannot be read: it {e}."))
            })
        };
        account.default_currency.map(read).into_iter().collect()
    }

    /// Looks at the sessions of Checkout, which is what a restricted key needs most.
    async fn check_access(&self, key: &ProviderKey) -> Result<String, RemoteError> {
        let key = own(key)?;
        let answer = self.get(key, "/v1/checkout/sessions?limit=1").await?;
        if !answer.is_ok() {
            return Err(StripeError::of(&answer).refused());
        }
        let notices = match key.webhook_secrets.is_empty() {
            true => " The credential has no signing secret, so notices of Stripe are refused.",
            false => "",
        };
        Ok(match key.is_live() {
            true => format!("Stripe accepts the key, which is live: money moves.{notices}"),
            false => {
                format!("Stripe accepts the key, which is for tests: no money moves.{notices}")
            }
        })
    }
}
