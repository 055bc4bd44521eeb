//! What Paystack answers.
//!
//! `status` at the top says only that the call was understood. What happened is in `data`.

use crate::{
    DisputeState, Payment, PaymentStatus, RemoteError, SubscriptionPlan, amounts::Amounts,
};
use contract::{Timestamp, text::PlanCode};
use remote::{RemoteResponse, quotation};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error},
};
use serde_json::Value;
use std::fmt;

/// What an answer is about.
pub(super) fn data<T: DeserializeOwned>(answer: &RemoteResponse) -> Result<T, RemoteError> {
    #[derive(Deserialize)]
    struct DataBody<T> {
        data: T,
    }
    answer.read::<DataBody<T>>().map(|body| body.data)
}

/// What a refusal says. Source: "Errors" in Paystack's API reference.
#[derive(Debug, Deserialize)]
pub(super) struct PaystackError {
    #[serde(skip)]
    status: u16,
    #[serde(default)]
    message: String,
    /// Such as `duplicate_reference`. Older answers have none.
    #[serde(default)]
    code: String,
}

impl PaystackError {
    pub fn of(answer: &RemoteResponse) -> PaystackError {
        let read = serde_json::from_slice(&answer.body);
        let unread =
            |_| PaystackError { status: 0, message: quotation(&answer.body), code: String::new() };
        let failure: PaystackError = read.unwrap_or_else(unread);
        PaystackError {
            status: answer.status,
            message: quotation(failure.message.as_bytes()),
            ..failure
        }
    }

    fn says(&self, part: &str) -> bool {
        self.message.to_lowercase().contains(part)
    }

    /// Whether Paystack does not know what was asked for. For an unknown reference it answers 400 in
    /// practice, and 404 by its description.
    pub fn is_unknown(&self) -> bool {
        self.status == 404
            || self.status == 400 && (self.code.ends_with("_not_found") || self.says("not found"))
    }

    pub fn is_duplicate(&self) -> bool {
        self.code == "duplicate_reference" || self.says("duplicate transaction reference")
    }

    /// A refusal: what to do, and Paystack's own words.
    pub fn refused(&self) -> RemoteError {
        RemoteError::Refused(format!(
            "{} {self}",
            match self.status {
                401 => "Paystack does not accept the secret key. Replace the credential.",
                403 => "Paystack does not let the account do this.",
                _ => "Paystack refuses this.",
            }
        ))
    }
}

impl fmt::Display for PaystackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PaystackError { status, message, code } = self;
        let separator = if code.is_empty() { "" } else { " " };
        write!(f, "Paystack says: {message} ({status}{separator}{code})")
    }
}

#[derive(Deserialize)]
pub(super) struct Initialized {
    pub authorization_url: String,
    pub access_code: String,
    pub reference: String,
}

#[derive(Deserialize)]
pub(super) struct Balance {
    pub currency: String,
}

/// A transaction. What its fields are that are not named here differs: `metadata` may be an object,
/// a text or 0.
#[derive(Deserialize)]
pub(super) struct Transaction {
    pub id: u64,
    status: String,
    pub reference: String,
    amount: u64,
    /// What was asked for, where the buyer pays the fees on top.
    #[serde(default)]
    requested_amount: Option<u64>,
    currency: String,
    #[serde(default)]
    paid_at: Option<String>,
    #[serde(default)]
    gateway_response: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    customer: Option<Customer>,
    /// The code of the plan. Some answers have an object here.
    #[serde(default)]
    plan: Value,
    #[serde(default)]
    plan_object: Value,
}

#[derive(Deserialize)]
struct Customer {
    #[serde(default)]
    id: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Refund {
    transaction: Value,
    #[serde(deserialize_with = "number_or_text")]
    amount: u64,
    status: String,
}

#[derive(Deserialize)]
pub(super) struct DisputeData {
    transaction: Value,
    status: String,
    #[serde(default)]
    resolution: Option<String>,
    #[serde(default, rename = "createdAt")]
    created_at: Option<String>,
}

/// A number, also as text: Paystack's notices about refunds have the amount as text.
fn number_or_text<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(d)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| D::Error::custom("must be a whole number"))
}

impl Transaction {
    pub fn payment(&self) -> Result<Payment, RemoteError> {
        let reason = || {
            let said = self.gateway_response.as_deref().or(self.message.as_deref());
            said.filter(|said| !said.is_empty()).unwrap_or("no reason").to_owned()
        };
        let status = match self.status.as_str() {
            "success" => PaymentStatus::Paid,
            // It was paid, and given back.
            "reversed" if self.paid_at.is_some() => PaymentStatus::Paid,
            "reversed" | "failed" => PaymentStatus::Failed(reason()),
            "abandoned" => PaymentStatus::Abandoned,
            // ongoing, pending, processing, queued, and what may come.
            _ => PaymentStatus::Pending,
        };
        // With less than what was asked for, the amount that came is what counts.
        let amount = self.requested_amount.filter(|asked| self.amount >= *asked && *asked > 0);
        let amount = Amounts::Paystack.money(amount.unwrap_or(self.amount), &self.currency);
        Ok(Payment {
            reference: Some(self.reference.clone()),
            status,
            amount: amount.map_err(RemoteError::Refused)?,
            paid_at: self.paid_at.as_deref().and_then(time),
            id: Some(self.id.to_string()),
            customer: self.customer.as_ref().and_then(|it| it.id).map(|id| id.to_string()),
            plan: self.plan_code(),
            subscription: None,
            refunded: 0,
            dispute: None,
        })
    }

    fn plan_code(&self) -> Option<PlanCode> {
        let texts = [
            self.plan.as_str(),
            self.plan.pointer("/plan_code").and_then(Value::as_str),
            self.plan_object.pointer("/plan_code").and_then(Value::as_str),
        ];
        texts.into_iter().flatten().find_map(|code| code.parse().ok())
    }

    /// How much was given back, in our minor unit. A refund that is asked for counts when Paystack has
    /// processed it: until then it may fail. Source: "Refunds" in Paystack's documentation.
    pub fn refunded(&self, refunds: &[Refund]) -> Result<u64, RemoteError> {
        let done = refunds
            .iter()
            .filter(|refund| self.is_named_by(&refund.transaction) && refund.status == "processed");
        let sum = done.fold(0_u64, |sum, refund| sum.saturating_add(refund.amount));
        let number = if self.status == "reversed" { sum.max(self.amount) } else { sum };
        let currency = self.currency.parse().map_err(RemoteError::Refused)?;
        Amounts::Paystack.read(number, &currency).map_err(RemoteError::Refused)
    }

    /// The newest dispute.
    pub fn dispute(&self, disputes: &[DisputeData]) -> Option<DisputeState> {
        let own = disputes.iter().filter(|dispute| self.is_named_by(&dispute.transaction));
        own.max_by_key(|dispute| dispute.created_at.clone()).map(DisputeData::dispute)
    }

    /// Lists that Paystack filters are filtered once more: a list of others would be fatal.
    fn is_named_by(&self, transaction: &Value) -> bool {
        let id = transaction.as_u64().or_else(|| transaction.pointer("/id")?.as_u64());
        id == Some(self.id)
    }
}

impl DisputeData {
    /// Source: "Resolve a dispute" in "Manage disputes" of Paystack's documentation: a dispute that
    /// is accepted gives the money back, a declined one does not.
    fn dispute(&self) -> DisputeState {
        match (self.status.as_str(), self.resolution.as_deref()) {
            (_, Some("declined")) => DisputeState::Won,
            (_, Some(accepted)) if accepted.ends_with("accepted") => DisputeState::Lost,
            _ => DisputeState::Open,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct PlanData {
    name: String,
    plan_code: String,
    amount: u64,
    currency: String,
    #[serde(default)]
    is_archived: bool,
    #[serde(default)]
    is_deleted: bool,
}

impl PlanData {
    pub fn plan(&self) -> Result<SubscriptionPlan, RemoteError> {
        let code: PlanCode = self.plan_code.parse().map_err(RemoteError::Refused)?;
        if self.is_archived || self.is_deleted {
            return Err(RemoteError::Refused(format!(
                "The plan {code} is archived or deleted at Paystack. Use another plan."
            )));
        }
        let price = Amounts::Paystack.money(self.amount, &self.currency);
        let free = || RemoteError::Refused(format!("The plan {code} has no price at Paystack."));
        let price = price.map_err(RemoteError::Refused)?.ok_or_else(free)?;
        Ok(SubscriptionPlan { code: code.clone(), name: self.name.clone(), price })
    }
}

/// A time in an answer. Paystack writes RFC 3339.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_about_the_transaction_counts() {
        let transaction = json!({
            "id": 7, "status": "success", "reference": "chk-1", "amount": 5750, "requested_amount": 5000,
            "currency": "NGN", "customer": {}, "metadata": 0, "plan": {"plan_code": "PLN_1"},
        });
        let transaction: Transaction = serde_json::from_value(transaction).unwrap();
        let payment = transaction.payment().unwrap();
        assert_eq!(payment.amount.unwrap().to_string(), "50.00 NGN");
        assert_eq!((payment.plan.unwrap().as_str(), payment.customer), ("PLN_1", None));

        let refunds = json!([
            {"transaction": 7, "amount": 1000, "status": "processed"},
            {"transaction": {"id": 7}, "amount": "500", "status": "processed"},
            {"transaction": 7, "amount": 300, "status": "needs-attention"},
            {"transaction": 8, "amount": 5000, "status": "processed"},
        ]);
        let refunds: Vec<Refund> = serde_json::from_value(refunds).unwrap();
        assert_eq!(transaction.refunded(&refunds), Ok(1500));

        let dispute = |transaction: u64, resolution: Value, at: &str| json!({"transaction": {"id": transaction}, "status": "resolved", "resolution": resolution, "createdAt": at});
        let disputes = json!([
            dispute(7, json!("declined"), "2026-01-02T00:00:00.000Z"),
            dispute(7, json!("merchant-accepted"), "2026-01-01T00:00:00.000Z"),
            dispute(8, json!("merchant-accepted"), "2026-01-03T00:00:00.000Z"),
        ]);
        let disputes: Vec<DisputeData> = serde_json::from_value(disputes).unwrap();
        assert_eq!(transaction.dispute(&disputes), Some(DisputeState::Won));
        assert_eq!(transaction.dispute(&disputes[2..]), None);
    }
}
