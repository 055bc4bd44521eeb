//! The payment provider of the market.

use super::market::{Market, Model, Page, Step, price};
use actors::runtime::clock::Time;
use async_trait::async_trait;
use contract::{
    checkouts::{PaymentProvider, Reference},
    text::{Currency, PlanCode},
};
use payments::{
    Payment, PaymentPage, PaymentStatus, Provider, ProviderKey, RemoteError, Subscription,
    SubscriptionPlan,
};
use std::time::Duration;

/// How long after a payment the provider makes the subscription.
const SUBSCRIBES_AFTER: Duration = Duration::from_secs(3);

/// The two ways of providers.
pub struct Till {
    pub market: Market,
    pub provider: PaymentProvider,
}

impl Till {
    /// Stripe tells the address of a page again, closes pages, and says that they are closed.
    /// Paystack does neither: a page takes money for ever.
    fn is_stripe(&self) -> bool {
        self.provider == PaymentProvider::Stripe
    }
}

#[async_trait]
impl Provider for Till {
    async fn open(
        &self,
        _: &ProviderKey,
        order: &payments::PaymentOrder,
    ) -> Result<PaymentPage, RemoteError> {
        let (is_stripe, now) = (self.is_stripe(), self.market.clock.now());
        let open = |model: &mut Model| {
            let reference = order.reference.to_string();
            let known = model.pages.contains_key(&reference);
            let page = model.pages.entry(reference.clone()).or_insert_with(|| Page {
                order: order.clone(),
                told: 0,
                charges: 0,
                paid: None,
                refunded: 0,
                closed: false,
                ends: is_stripe.then_some(order.expires_at),
                declined: false,
            });
            if is_stripe && page.order.total != order.total {
                return Err(RemoteError::Refused("idempotency_error".into()));
            }
            let is_payable = page.paid.is_none() && !page.is_over(now);
            let is_told = if is_stripe { is_payable } else { !known };
            let url = format!("https://pay.example.com/{reference}").parse().unwrap();
            if is_told {
                page.told += 1;
            }
            Ok(PaymentPage {
                session: is_stripe.then(|| format!("cs_{reference}")),
                url: is_told.then_some(url),
                access_code: None,
                expires_at: None,
            })
        };
        self.market.step(Step::Open, open).await
    }

    async fn payment(
        &self,
        _: &ProviderKey,
        reference: Reference,
        session: Option<&str>,
    ) -> Result<Option<Payment>, RemoteError> {
        let (is_stripe, now) = (self.is_stripe(), self.market.clock.now());
        let reference = reference.to_string();
        assert!(!is_stripe || session == Some(&format!("cs_{reference}")) || session.is_none());
        let look = |model: &mut Model| {
            let Some(page) = model.pages.get(&reference) else { return Ok(None) };
            let status = match page.paid {
                Some(_) => PaymentStatus::Paid,
                None if page.is_over(now) => PaymentStatus::Expired,
                None if page.declined => PaymentStatus::Failed("declined".into()),
                None if is_stripe => PaymentStatus::Pending,
                None => PaymentStatus::Abandoned,
            };
            Ok(Some(Payment {
                reference: Some(reference.clone()),
                status,
                amount: page.paid.as_ref().map(|(sum, _)| sum.clone()),
                paid_at: page.paid.as_ref().map(|(_, at)| *at),
                id: Some(format!("pi_{reference}")),
                customer: None,
                plan: page.order.plan.clone(),
                subscription: None,
                refunded: page.refunded,
                dispute: None,
            }))
        };
        self.market.step(Step::Look, look).await
    }

    async fn close(&self, _: &ProviderKey, session: &str) -> Result<bool, RemoteError> {
        let is_stripe = self.is_stripe();
        let close = |model: &mut Model| {
            let page = model.pages.get_mut(session.trim_start_matches("cs_")).unwrap();
            page.closed |= is_stripe && page.paid.is_none();
            Ok(page.closed)
        };
        self.market.step(Step::Close, close).await
    }

    async fn plan(
        &self,
        _: &ProviderKey,
        code: &PlanCode,
    ) -> Result<SubscriptionPlan, RemoteError> {
        let plan = SubscriptionPlan { code: code.clone(), name: "Gold".into(), price: price() };
        self.market.step(Step::Plan, |_| Ok(plan)).await
    }

    async fn subscription(
        &self,
        _: &ProviderKey,
        id: &str,
    ) -> Result<Option<Subscription>, RemoteError> {
        let look = |model: &mut Model| Ok(model.subscriptions.get(id).cloned());
        self.market.step(Step::LookAtSubscription, look).await
    }

    async fn subscription_of(
        &self,
        _: &ProviderKey,
        payment: &Payment,
    ) -> Result<Option<Subscription>, RemoteError> {
        let now = self.market.clock.now();
        let id = format!("sub-{}", payment.reference.as_ref().unwrap());
        let find = |model: &mut Model| {
            let is_made = payment.paid_at.is_some_and(|paid| now >= paid + SUBSCRIBES_AFTER);
            Ok(model.subscriptions.get(&id).filter(|_| is_made).cloned())
        };
        self.market.step(Step::FindSubscription, find).await
    }

    async fn reference_of(
        &self,
        _: &ProviderKey,
        id: &str,
    ) -> Result<Option<Reference>, RemoteError> {
        Ok(id.trim_start_matches("pi_").parse().ok())
    }

    async fn currencies(&self, _: &ProviderKey) -> Result<Vec<Currency>, RemoteError> {
        Ok(vec![price().currency])
    }

    async fn check_access(&self, _: &ProviderKey) -> Result<String, RemoteError> {
        Ok("A key for tests.".into())
    }
}
