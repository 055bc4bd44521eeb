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
