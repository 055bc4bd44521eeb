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
    /// `success`, `failed` or `pending`.
    #[serde(default)]
    status: Option<String>,
    /// Why it was not paid.
    #[serde(default)]
    description: Option<String>,
}

impl Invoice {
    fn is_failed(&self) -> bool {
        self.status.as_deref() == Some("failed")
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
    /// later, and what was paid ended where the unpaid invoice begins.
    fn period_end(&self) -> Option<Timestamp> {
        let invoice = self.most_recent_invoice.as_ref();
        if self.state() == SubscriptionStatus::PastDue {
            return invoice?.period_start.as_deref().and_then(time);
        }
        let next = self.next_payment_date.as_deref().and_then(time);
        next.or_else(|| {
            let paid = invoice.filter(|invoice| !invoice.is_failed())?;
            paid.period_end.as_deref().and_then(time)
        })
    }

    fn renewal_failure(&self) -> Option<String> {
        let failed = self.most_recent_invoice.as_ref().filter(|invoice| invoice.is_failed());
        if failed.is_none() && self.state() != SubscriptionStatus::PastDue {
            return None;
        }
        let reason = failed.and_then(|invoice| invoice.description.clone());
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
