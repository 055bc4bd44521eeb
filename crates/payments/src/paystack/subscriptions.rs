//! Subscriptions of Paystack.

use super::answers::time;
use crate::{RemoteError, Subscription, SubscriptionStatus};
use contract::{Timestamp, text::PlanCode};
use serde::Deserialize;
use std::time::Duration;

/// The clocks behind the two times of one transaction may differ by this.
const SLACK: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
pub(super) struct SubscriptionData {
    status: String,
    subscription_code: String,
    plan: PlanOf,
    customer: CustomerOf,
    #[serde(default)]
    next_payment_date: Option<String>,
    #[serde(default, rename = "createdAt")]
    created_at: Option<String>,
    #[serde(default)]
    most_recent_invoice: Option<Invoice>,
}

#[derive(Deserialize)]
struct PlanOf {
    plan_code: String,
}

#[derive(Deserialize)]
struct CustomerOf {
    email: String,
}

#[derive(Deserialize)]
struct Invoice {
    #[serde(default)]
    period_start: Option<String>,
    #[serde(default)]
    period_end: Option<String>,
    /// `success`, or `failed` or `pending` while it is not paid.
    #[serde(default)]
    status: Option<String>,
    /// Why it was not paid.
    #[serde(default)]
    description: Option<String>,
}

impl Invoice {
    /// Until when the subscription is paid: a period that is not paid begins where the last paid one
    /// ended.
    fn paid_until(&self) -> Option<Timestamp> {
        let is_paid = self.status.as_deref() == Some("success");
        let until = if is_paid { &self.period_end } else { &self.period_start };
        until.as_deref().and_then(time)
    }
}

impl SubscriptionData {
    pub fn subscription(&self) -> Result<Subscription, RemoteError> {
        let unreadable = |e: String| {
            let code = &self.subscription_code;
            RemoteError::Refused(format!(
                "The subscription {code} of Paystack cannot be read: {e}."
            ))
        };
        Ok(Subscription {
            id: self.subscription_code.clone(),
            plan: self.plan.plan_code.parse().map_err(unreadable)?,
            email: self.customer.email.parse().map_err(unreadable)?,
            status: self.state(),
            period_end: self.period_end(),
            said: self.status.clone(),
            renewal_failure: self.renewal_failure(),
        })
    }

    /// Source: "Subscription statuses" in "Subscriptions" of Paystack's documentation.
    fn state(&self) -> SubscriptionStatus {
        match self.status.as_str() {
            "active" => SubscriptionStatus::Active,
            "non-renewing" => SubscriptionStatus::Ending,
            "attention" => SubscriptionStatus::PastDue,
            // completed, cancelled; events say complete. What is not known gives nothing for free.
            _ => SubscriptionStatus::Ended,
        }
    }

    /// A period is paid until the next payment. If a renewal failed, the next payment is one period
    /// later, and only the invoice says what was paid.
    fn period_end(&self) -> Option<Timestamp> {
        let by_invoice = || self.most_recent_invoice.as_ref()?.paid_until();
        match self.state() {
            SubscriptionStatus::PastDue => by_invoice(),
            _ => self.next_payment_date.as_deref().and_then(time).or_else(by_invoice),
        }
    }

    /// An invoice that is not paid says nothing by itself: Paystack makes it days before it charges.
    fn renewal_failure(&self) -> Option<String> {
        if self.state() != SubscriptionStatus::PastDue {
            return None;
        }
        let invoice = self.most_recent_invoice.as_ref();
        let reason = invoice.and_then(|invoice| invoice.description.clone());
        Some(reason.filter(|reason| !reason.is_empty()).unwrap_or_else(|| {
            "The last renewal could not be charged, and Paystack does not say why.".into()
        }))
    }
}

/// The code of the first subscription to a plan since a payment.
pub(super) fn first_since<'a>(
    all: &'a [SubscriptionData],
    plan: &PlanCode,
    paid_at: Timestamp,
) -> Option<&'a str> {
    let made = |data: &SubscriptionData| data.created_at.as_deref().and_then(time);
    let since = all.iter().filter(|data| {
        data.plan.plan_code == plan.as_str()
            && made(data).is_some_and(|made| made >= paid_at - SLACK)
    });
    since.min_by_key(|data| made(data)).map(|data| data.subscription_code.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const EARLIER: &str = "2026-01-01T00:00:00.000Z";
    const LATER: &str = "2026-02-01T00:00:00.000Z";

    fn data(like: &Value) -> SubscriptionData {
        let mut data = json!({
            "status": "active", "subscription_code": "SUB_1", "plan": {"plan_code": "PLN_1"},
            "customer": {"email": "ada@example.com"}, "next_payment_date": null,
        });
        data.as_object_mut().unwrap().extend(like.as_object().unwrap().clone());
        serde_json::from_value(data).unwrap()
    }

    #[test]
    fn a_subscription_is_paid_until_the_end_of_what_was_paid() {
        use SubscriptionStatus::*;
        let invoice = |status: &str| json!({"status": status, "period_start": EARLIER, "period_end": LATER, "description": ""});
        let expected = [
            (json!({"next_payment_date": LATER}), Active, Some(LATER)),
            (json!({"status": "non-renewing", "next_payment_date": LATER}), Ending, Some(LATER)),
            (json!({"status": "non-renewing"}), Ending, None),
            (
                json!({"status": "non-renewing", "most_recent_invoice": invoice("success")}),
                Ending,
                Some(LATER),
            ),
            (
                json!({"status": "attention", "next_payment_date": LATER, "most_recent_invoice": invoice("pending")}),
                PastDue,
                Some(EARLIER),
            ),
            (json!({"status": "attention", "next_payment_date": LATER}), PastDue, None),
            (json!({"status": "completed"}), Ended, None),
            (json!({"status": "complete"}), Ended, None),
            (json!({"status": "cancelled"}), Ended, None),
            (json!({"status": "of a later year"}), Ended, None),
        ];
        for (like, status, end) in expected {
            let read = data(&like).subscription().unwrap();
            assert_eq!((read.status, read.period_end), (status, end.and_then(time)), "{like}");
            assert_eq!(read.renewal_failure.is_some(), status == PastDue, "{like}");
        }
    }

    #[test]
    fn a_payment_began_the_first_subscription_to_its_plan_since_then() {
        let made = |code: &str, plan: &str, at: &str| {
            let plan = json!({"plan_code": plan});
            data(&json!({"subscription_code": code, "plan": plan, "createdAt": at}))
        };
        let all = [
            made("SUB_next", "PLN_1", "2026-01-01T00:20:00.000Z"),
            made("SUB_other", "PLN_2", "2026-01-01T00:00:03.000Z"),
            made("SUB_own", "PLN_1", "2026-01-01T00:00:05.000Z"),
            made("SUB_past", "PLN_1", "2025-12-31T23:00:00.000Z"),
        ];
        let (plan, paid_at) = ("PLN_1".parse().unwrap(), time(EARLIER).unwrap());
        assert_eq!(first_since(&all, &plan, paid_at), Some("SUB_own"));
        assert_eq!(first_since(&all[3..], &plan, paid_at), None);
    }
}
