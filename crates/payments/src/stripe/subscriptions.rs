//! Subscriptions of Stripe.

use super::answers::{Expandable, Intent, ListBody, Named, seconds};
use crate::{RemoteError, Subscription, SubscriptionStatus};
use contract::{Email, Timestamp};
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct SubscriptionData {
    id: String,
    status: String,
    /// In seconds, as all times here.
    current_period_start: i64,
    current_period_end: i64,
    #[serde(default)]
    cancel_at_period_end: bool,
    cancel_at: Option<i64>,
    ended_at: Option<i64>,
    customer: Expandable<Customer>,
    items: ListBody<SubscriptionItem>,
    latest_invoice: Option<Expandable<Invoice>>,
}

#[derive(Deserialize)]
struct Customer {
    /// Missing if the customer was deleted.
    email: Option<String>,
}

#[derive(Deserialize)]
struct SubscriptionItem {
    price: Named,
}

#[derive(Deserialize)]
struct Invoice {
    customer_email: Option<String>,
    payment_intent: Option<Expandable<Intent>>,
}

impl SubscriptionData {
    pub fn subscription(&self) -> Result<Subscription, RemoteError> {
        let unreadable = |what: &str| {
            RemoteError::Refused(format!("The subscription {} of Stripe {what}.", self.id))
        };
        let item = self.items.data.first().ok_or_else(|| unreadable("has no price"))?;
        Ok(Subscription {
            id: self.id.clone(),
            plan: item.price.id.parse().map_err(|e: String| unreadable(&e))?,
            email: self.email().ok_or_else(|| unreadable("has no e-mail address"))?,
            status: self.state(),
            period_end: self.period_end(),
            said: self.status.clone(),
            renewal_failure: self.renewal_failure(),
        })
    }

    fn invoice(&self) -> Option<&Invoice> {
        self.latest_invoice.as_ref()?.object()
    }

    fn email(&self) -> Option<Email> {
        let of_customer = self.customer.object().and_then(|customer| customer.email.as_deref());
        let of_invoice = || self.invoice()?.customer_email.as_deref();
        of_customer.or_else(of_invoice)?.parse().ok()
    }

    /// Source: "Subscription statuses" in "How subscriptions work" of Stripe's documentation.
    fn state(&self) -> SubscriptionStatus {
        let is_ending = self.cancel_at_period_end || self.cancel_at.is_some();
        match self.status.as_str() {
            "active" | "trialing" if is_ending => SubscriptionStatus::Ending,
            "active" | "trialing" => SubscriptionStatus::Active,
            "incomplete" => SubscriptionStatus::Incomplete,
            // Nobody tries again by itself with `unpaid` and `paused`, but the buyer can go on.
            "past_due" | "unpaid" | "paused" => SubscriptionStatus::PastDue,
            _ => SubscriptionStatus::Ended,
        }
    }

    /// Stripe's period goes on when its invoice is not paid. What was paid ended where it begins.
    fn period_end(&self) -> Option<Timestamp> {
        let (start, end) = (self.current_period_start, self.current_period_end);
        Some(seconds(match self.state() {
            SubscriptionStatus::Incomplete => return None,
            SubscriptionStatus::Active => end,
            SubscriptionStatus::Ending => self.cancel_at.map_or(end, |at| at.min(end)),
            SubscriptionStatus::PastDue => start,
            SubscriptionStatus::Ended => self.ended_at.map_or(end, |at| at.min(end)),
        }))
    }

    fn renewal_failure(&self) -> Option<String> {
        if self.state() != SubscriptionStatus::PastDue {
            return None;
        }
        let intent = self.invoice().and_then(|invoice| invoice.payment_intent.as_ref()?.object());
        let error = intent.and_then(|intent| intent.last_payment_error.as_ref());
        Some(error.map_or_else(
            || "The last renewal is not paid, and Stripe does not say why.".into(),
            |error| error.reason(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn subscription(like: &Value) -> Subscription {
        let mut subscription = json!({
            "id": "sub_1", "current_period_start": 1000, "current_period_end": 2000,
            "customer": {"email": "ada@example.com"},
            "items": {"data": [{"price": {"id": "price_1"}}]},
        });
        subscription.as_object_mut().unwrap().extend(like.as_object().unwrap().clone());
        serde_json::from_value::<SubscriptionData>(subscription).unwrap().subscription().unwrap()
    }

    #[test]
    fn a_subscription_is_paid_until_the_end_of_what_was_paid() {
        use SubscriptionStatus::*;
        let expected = [
            (json!({"status": "incomplete"}), Incomplete, None),
            (json!({"status": "incomplete_expired"}), Ended, Some(2000)),
            (json!({"status": "trialing"}), Active, Some(2000)),
            (json!({"status": "active"}), Active, Some(2000)),
            (json!({"status": "active", "cancel_at_period_end": true}), Ending, Some(2000)),
            (json!({"status": "active", "cancel_at": 1500}), Ending, Some(1500)),
            (json!({"status": "active", "cancel_at": 9000}), Ending, Some(2000)),
            (json!({"status": "past_due"}), PastDue, Some(1000)),
            (json!({"status": "unpaid"}), PastDue, Some(1000)),
            (json!({"status": "paused"}), PastDue, Some(1000)),
            (json!({"status": "canceled", "ended_at": 1200}), Ended, Some(1200)),
            (json!({"status": "of a later year"}), Ended, Some(2000)),
        ];
        for (like, status, seconds) in expected {
            let read = subscription(&like);
            let end = read.period_end.map(Timestamp::as_seconds);
            assert_eq!((read.status, end), (status, seconds), "{like}");
            assert_eq!(read.renewal_failure.is_some(), status == PastDue, "{like}");
        }
    }

    #[test]
    fn a_deleted_customer_is_known_by_the_last_invoice() {
        let like = json!({
            "status": "canceled", "customer": {"id": "cus_1", "deleted": true},
            "latest_invoice": {"customer_email": "bo@example.com"},
        });
        assert_eq!(subscription(&like).email.as_str(), "bo@example.com");
    }
}
