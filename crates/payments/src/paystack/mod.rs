//! Paystack. Sources: its API reference at paystack.com/docs/api, and the OpenAPI description in the
//! GitHub repository PaystackOSS/openapi.

mod answers;
mod subscriptions;

use crate::{
    Payment, PaymentOrder, PaymentPage, PaymentStatus, PaystackKey, Provider, ProviderKey,
    RemoteError, Subscription, SubscriptionPlan, amounts::Amounts,
};
use answers::{Balance, Initialized, PaystackError, PlanData, Transaction, data};
use async_trait::async_trait;
use contract::{
    checkouts::Reference,
    text::{Currency, PlanCode, WebUrl},
};
use remote::{Http, RemoteResponse, Repeat};
use serde::de::DeserializeOwned;
use serde_json::json;
use subscriptions::SubscriptionData;

/// Where Paystack's API is.
pub const ADDRESS: &str = "https://api.paystack.co";

/// Paystack, reached through its API.
///
/// It refuses a reference that it knows, so nobody pays one twice. When its answer to
/// [`Provider::open`] is lost, the address of the page is lost too: Paystack tells it only once. The
/// repeated call then returns [`PaymentPage`] without `url`. If nobody was given the address before,
/// nobody can pay.
pub struct Paystack {
    http: Http,
    /// Without a slash at the end.
    address: String,
}

impl Paystack {
    /// Paystack at this address; the real one is at [`ADDRESS`].
    pub fn new(address: &str) -> Result<Paystack, String> {
        let address = address.trim_end_matches('/').to_owned();
        Ok(Paystack { http: Http::new("Paystack")?, address })
    }

    /// Asks for something. Parts of the path must be safe in an address.
    async fn get(&self, key: &PaystackKey, path: &str) -> Result<RemoteResponse, RemoteError> {
        let request = self.http.client().get(format!("{}{path}", self.address));
        self.http.send(request.bearer_auth(&key.secret_key.0), Repeat::Harmless).await
    }

    /// Asks for something of which `None` says that Paystack does not know it.
    async fn find<T: DeserializeOwned>(
        &self,
        key: &PaystackKey,
        path: &str,
    ) -> Result<Option<T>, RemoteError> {
        let answer = self.get(key, path).await?;
        if answer.is_ok() {
            return data(&answer).map(Some);
        }
        let failure = PaystackError::of(&answer);
        if failure.is_unknown() { Ok(None) } else { Err(failure.refused()) }
    }

    /// Asks for a list.
    async fn list<T: DeserializeOwned>(
        &self,
        key: &PaystackKey,
        path: &str,
    ) -> Result<Vec<T>, RemoteError> {
        Ok(self.find::<Vec<T>>(key, path).await?.unwrap_or_default())
    }

    /// Adds what was given back, and the dispute, of a transaction that was paid.
    async fn add_refunds_and_dispute(
        &self,
        key: &PaystackKey,
        transaction: &Transaction,
        payment: &mut Payment,
    ) -> Result<(), RemoteError> {
        let id = transaction.id;
        let path = format!("/refund?transaction={id}&perPage=100");
        let refunds = self.list(key, &path).await?;
        payment.refunded = transaction.refunded(&refunds)?;
        let path = format!("/dispute?transaction={id}&perPage=100");
        let disputes = self.list(key, &path).await?;
        payment.dispute = transaction.dispute(&disputes);
        Ok(())
    }
}

/// The key for Paystack; refused if it is one for another provider.
fn own(key: &ProviderKey) -> Result<&PaystackKey, RemoteError> {
    match key {
        ProviderKey::Paystack(key) => Ok(key),
        ProviderKey::Stripe(_) => Err(RemoteError::Refused(
            "The credential is one for Stripe. Give the app a credential for Paystack.".into(),
        )),
    }
}

/// Whether an id of Paystack has nothing that means something in an address.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[async_trait]
impl Provider for Paystack {
    /// With a plan, Paystack takes the price of the plan, whatever the total is. Paystack closes no
    /// pages, so [`PaymentOrder::expires_at`] has no effect.
    async fn open(
        &self,
        key: &ProviderKey,
        order: &PaymentOrder,
    ) -> Result<PaymentPage, RemoteError> {
        let key = own(key)?;
        let amount = Amounts::Paystack
            .given(order.total.amount, &order.total.currency)
            .map_err(RemoteError::Refused)?;
        let mut body = json!({
            "email": order.customer.email,
            "amount": amount,
            "currency": order.total.currency,
            "reference": order.reference,
            "callback_url": order.return_to,
            "metadata": order.metadata,
        });
        if let (Some(plan), Some(body)) = (&order.plan, body.as_object_mut()) {
            body.insert("plan".into(), json!(plan));
        }
        let url = format!("{}/transaction/initialize", self.address);
        let request = self.http.client().post(url).bearer_auth(&key.secret_key.0).json(&body);
        let answer = self.http.send(request, Repeat::AfterALook).await?;
        if answer.is_ok() {
            let page: Initialized = data(&answer)?;
            if page.reference != order.reference.to_string() {
                return Err(RemoteError::Refused(format!(
                    "Paystack opened a page for the reference {}, which is another one.",
                    page.reference
                )));
            }
            let url: WebUrl = page.authorization_url.parse().map_err(|e| {
                RemoteError::Refused(format!("Paystack says an address that is none: it {e}."))
            })?;
            return Ok(PaymentPage {
                session: None,
                url: Some(url),
                access_code: Some(page.access_code),
                expires_at: None,
            });
        }
        let failure = PaystackError::of(&answer);
        if failure.is_duplicate() {
            return Ok(PaymentPage {
                session: None,
                url: None,
                access_code: None,
                expires_at: None,
            });
        }
        Err(failure.refused())
    }

    async fn payment(
        &self,
        key: &ProviderKey,
        reference: Reference,
        _session: Option<&str>,
    ) -> Result<Option<Payment>, RemoteError> {
        let key = own(key)?;
        let path = format!("/transaction/verify/{reference}");
        let Some(found) = self.find::<Transaction>(key, &path).await? else { return Ok(None) };
        let mut payment = found.payment()?;
        if payment.status == PaymentStatus::Paid {
            self.add_refunds_and_dispute(key, &found, &mut payment).await?;
        }
        Ok(Some(payment))
    }

    async fn reference_of(
        &self,
        key: &ProviderKey,
        payment_id: &str,
    ) -> Result<Option<Reference>, RemoteError> {
        if !is_plain(payment_id) {
            return Ok(None);
        }
        let path = format!("/transaction/{payment_id}");
        let found = self.find::<Transaction>(own(key)?, &path).await?;
        Ok(found.and_then(|found| found.reference.parse().ok()))
    }

    /// Paystack closes no pages, and has no sessions.
    async fn close(&self, _key: &ProviderKey, _session: &str) -> Result<bool, RemoteError> {
        Ok(false)
    }

    async fn plan(
        &self,
        key: &ProviderKey,
        code: &PlanCode,
    ) -> Result<SubscriptionPlan, RemoteError> {
        let found = self.find::<PlanData>(own(key)?, &format!("/plan/{code}")).await?;
        let unknown = || {
            RemoteError::Refused(format!(
                "Paystack does not know the plan {code}. Its plans are in the Paystack dashboard \
                 under Plans."
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
        let found =
            self.find::<SubscriptionData>(own(key)?, &format!("/subscription/{id}")).await?;
        found.as_ref().map(SubscriptionData::subscription).transpose()
    }

    /// Paystack does not say which payment began a subscription, and makes the subscription some
    /// seconds after the payment: it is the first one of the buyer to the plan since then.
    async fn subscription_of(
        &self,
        key: &ProviderKey,
        payment: &Payment,
    ) -> Result<Option<Subscription>, RemoteError> {
        let account = own(key)?;
        let (Some(customer), Some(plan), Some(paid_at)) =
            (&payment.customer, &payment.plan, payment.paid_at)
        else {
            return Ok(None);
        };
        if !is_plain(customer) {
            return Ok(None);
        }
        let path = format!("/subscription?customer={customer}&perPage=100");
        let all: Vec<SubscriptionData> = self.list(account, &path).await?;
        let Some(code) = subscriptions::first_since(&all, plan, paid_at) else { return Ok(None) };
        // The list does not have the last invoice.
        self.subscription(key, code).await
    }

    /// The currencies of the balances. Source: "Fetch Balance" in Paystack's API reference.
    async fn currencies(&self, key: &ProviderKey) -> Result<Vec<Currency>, RemoteError> {
        let balances: Vec<Balance> = self.list(own(key)?, "/balance").await?;
        let mut currencies: Vec<Currency> = Vec::new();
        for balance in balances {
            let currency = balance.currency.parse().map_err(|e| {
                RemoteError::Refused(format!(
                    "Paystack says a currency that cannot be read: it {e}."
                ))
            })?;
            if !currencies.contains(&currency) {
                currencies.push(currency);
            }
        }
        Ok(currencies)
    }

    async fn check_access(&self, key: &ProviderKey) -> Result<String, RemoteError> {
        let currencies: Vec<_> =
            self.currencies(key).await?.iter().map(Currency::to_string).collect();
        let held = match currencies.is_empty() {
            true => "no balance yet".into(),
            false => format!("balances in {}", currencies.join(", ")),
        };
        let key = own(key)?;
        Ok(match key.is_live() {
            true => format!(
                "Paystack accepts the key, which is live: money moves. The account has {held}."
            ),
            false => format!(
                "Paystack accepts the key, which is for tests: no money moves. The account has {held}."
            ),
        })
    }
}
