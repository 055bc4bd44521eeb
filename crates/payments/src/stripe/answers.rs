//! What Stripe answers.

use crate::{DisputeState, Payment, PaymentStatus, RemoteError, amounts::Amounts};
use contract::{
    Timestamp,
    checkouts::Reference,
    money::Money,
    text::{Currency, PlanCode},
};
use remote::{RemoteResponse, quotation};
use serde::Deserialize;
use std::{collections::BTreeMap, fmt, time::Duration};

/// The pause when another request for the same session is under way.
const PAUSE: Duration = Duration::from_secs(2);

/// The account of a key.
#[derive(Deserialize)]
pub(super) struct AccountBody {
    /// In small letters. An account that has not been set up may have none.
    pub default_currency: Option<String>,
}

/// What a refusal says. Source: "Errors" in Stripe's API reference.
#[derive(Debug)]
pub(super) struct StripeError {
    pub status: u16,
    message: String,
    /// The code, or the type of the error if it has none.
    code: String,
}

impl StripeError {
    pub fn of(answer: &RemoteResponse) -> StripeError {
        #[derive(Deserialize)]
        struct ErrorBody {
            error: ErrorDetails,
        }
        #[derive(Deserialize)]
        struct ErrorDetails {
            #[serde(default)]
            message: Option<String>,
            #[serde(default)]
            code: Option<String>,
            #[serde(default, rename = "type")]
            kind: Option<String>,
        }
        let status = answer.status;
        match serde_json::from_slice(&answer.body) {
            Ok(ErrorBody { error }) => StripeError {
                status,
                message: quotation(error.message.unwrap_or_default().as_bytes()),
                code: error.code.or(error.kind).unwrap_or_default(),
            },
            Err(_) => StripeError { status, message: quotation(&answer.body), code: String::new() },
        }
    }

    /// Whether a request with the same idempotency key is under way.
    pub fn is_in_use(&self) -> bool {
        self.status == 409
    }

    pub fn busy(&self) -> RemoteError {
        RemoteError::Busy { why: self.to_string(), after: PAUSE }
    }

    /// A refusal: what to do, and Stripe's own words.
    pub fn refused(&self) -> RemoteError {
        RemoteError::Refused(format!(
            "{} {self}",
            match self.status {
                401 => "Stripe does not accept the secret key. Replace the credential.",
                403 => {
                    "The key may not do this. Give the restricted key the permissions that the \
                     documentation names, or use a secret key."
                }
                _ => "Stripe refuses this.",
            }
        ))
    }
}

impl fmt::Display for StripeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StripeError { status, message, code } = self;
        let separator = if code.is_empty() { "" } else { " " };
        write!(f, "Stripe says: {message} ({status}{separator}{code})")
    }
}

pub(super) fn refused(why: String) -> RemoteError {
    RemoteError::Refused(why)
}

/// An object, or its id where it is not expanded.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Expandable<T> {
    Id(String),
    Object(T),
}

impl<T> Expandable<T> {
    pub fn object(&self) -> Option<&T> {
        match self {
            Expandable::Id(_) => None,
            Expandable::Object(object) => Some(object),
        }
    }
}

/// Something of which only the id matters.
#[derive(Deserialize)]
pub(super) struct Named {
    pub id: String,
}

impl Expandable<Named> {
    pub fn id(&self) -> &str {
        match self {
            Expandable::Id(id) => id,
            Expandable::Object(object) => &object.id,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct CheckoutSession {
    pub id: String,
    status: Option<String>,
    payment_status: String,
    mode: String,
    amount_total: Option<u64>,
    currency: Option<String>,
    /// Only while the session is open.
    pub url: Option<String>,
    /// In seconds.
    pub expires_at: i64,
    client_reference_id: Option<String>,
    customer: Option<Expandable<Named>>,
    subscription: Option<Expandable<Named>>,
    payment_intent: Option<Expandable<Intent>>,
    invoice: Option<Expandable<Invoice>>,
    line_items: Option<ListBody<LineItem>>,
}

#[derive(Deserialize)]
pub(super) struct ListBody<T> {
    pub data: Vec<T>,
}

#[derive(Deserialize)]
struct LineItem {
    price: Option<Named>,
}

#[derive(Deserialize)]
pub(super) struct Intent {
    id: String,
    #[serde(default)]
    status: String,
    latest_charge: Option<Expandable<Charge>>,
    pub last_payment_error: Option<PaymentError>,
}

#[derive(Deserialize)]
pub(super) struct PaymentError {
    pub message: Option<String>,
    pub code: Option<String>,
}

impl PaymentError {
    pub fn reason(&self) -> String {
        let message = self.message.as_deref().unwrap_or("no reason");
        quotation(
            self.code
                .as_ref()
                .map_or(message.into(), |code| format!("{message} ({code})"))
                .as_bytes(),
        )
    }
}

#[derive(Deserialize)]
struct Invoice {
    charge: Option<Expandable<Charge>>,
}

#[derive(Deserialize)]
pub(super) struct Charge {
    pub id: String,
    /// In seconds.
    created: i64,
    amount_refunded: u64,
    currency: String,
    pub disputed: bool,
    payment_intent: Option<Expandable<Named>>,
}

impl CheckoutSession {
    pub fn is_expired(&self) -> bool {
        self.status.as_deref() == Some("expired")
    }

    fn intent(&self) -> Option<&Intent> {
        self.payment_intent.as_ref()?.object()
    }

    /// The charge that paid the session: of a subscription, the one of its first invoice.
    pub fn charge(&self) -> Option<&Charge> {
        let of_intent = || self.intent()?.latest_charge.as_ref()?.object();
        let of_invoice = || self.invoice.as_ref()?.object()?.charge.as_ref()?.object();
        of_intent().or_else(of_invoice)
    }

    /// Source: "Fulfill orders": a session that is complete is paid unless `payment_status` says
    /// `unpaid`, which is a payment that takes days.
    fn status(&self) -> PaymentStatus {
        let error = self.intent().and_then(|intent| intent.last_payment_error.as_ref());
        match (self.status.as_deref(), self.payment_status.as_str()) {
            (Some("complete"), "paid" | "no_payment_required") => PaymentStatus::Paid,
            // A payment that took days failed. The session stays complete.
            (Some("complete"), _)
                if self.intent().is_some_and(|intent| {
                    matches!(intent.status.as_str(), "requires_payment_method" | "canceled")
                }) =>
            {
                PaymentStatus::Expired
            }
            (Some("complete"), _) => PaymentStatus::Pending,
            (Some("expired"), _) => PaymentStatus::Expired,
            _ => match error {
                Some(error) => PaymentStatus::Failed(error.reason()),
                None => PaymentStatus::Pending,
            },
        }
    }

    pub fn payment(&self) -> Result<Payment, RemoteError> {
        let status = self.status();
        let charge = self.charge().filter(|_| status == PaymentStatus::Paid);
        let id = || match &self.payment_intent {
            Some(Expandable::Id(id)) => Some(id.clone()),
            Some(Expandable::Object(intent)) => Some(intent.id.clone()),
            None => charge?.payment_intent.as_ref().map(|intent| intent.id().to_owned()),
        };
        let prices = self.line_items.iter().flat_map(|items| &items.data);
        let plan =
            prices.filter_map(|item| item.price.as_ref()?.id.parse::<PlanCode>().ok()).next();
        Ok(Payment {
            reference: self.client_reference_id.clone(),
            status,
            amount: self.amount()?,
            paid_at: charge.map(|charge| seconds(charge.created)),
            id: id(),
            customer: self.customer.as_ref().map(|customer| customer.id().to_owned()),
            plan: plan.filter(|_| self.mode == "subscription"),
            subscription: self.subscription.as_ref().map(|it| it.id().to_owned()),
            refunded: charge.map_or(Ok(0), Charge::refunded)?,
            dispute: None,
        })
    }

    fn amount(&self) -> Result<Option<Money>, RemoteError> {
        match (self.amount_total, &self.currency) {
            (Some(number), Some(currency)) => {
                Amounts::Stripe.money(number, currency).map_err(refused)
            }
            _ => Ok(None),
        }
    }
}

impl Charge {
    /// In our minor unit.
    fn refunded(&self) -> Result<u64, RemoteError> {
        let currency: Currency = self.currency.to_uppercase().parse().map_err(refused)?;
        Amounts::Stripe.read(self.amount_refunded, &currency).map_err(refused)
    }
}

pub(super) fn seconds(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds.saturating_mul(1000))
}

#[derive(Deserialize)]
pub(super) struct Disputes {
    data: Vec<DisputeData>,
}

#[derive(Deserialize)]
struct DisputeData {
    charge: Expandable<Named>,
    created: i64,
    status: String,
}

impl Disputes {
    /// How the newest dispute about a charge stands. An inquiry, whose status begins with
    /// `warning_`, takes no money: closed, it is won.
    pub fn newest(&self, charge: &str) -> Option<DisputeState> {
        let about = self.data.iter().filter(|dispute| dispute.charge.id() == charge);
        let newest = about.max_by_key(|dispute| dispute.created)?;
        Some(match newest.status.as_str() {
            "won" | "warning_closed" | "prevented" => DisputeState::Won,
            "lost" | "charge_refunded" => DisputeState::Lost,
            _ => DisputeState::Open,
        })
    }
}

/// A payment intent, as far as it says whose payment it is.
#[derive(Deserialize)]
pub(super) struct IntentOwner {
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    invoice: Option<Expandable<InvoiceOwner>>,
}

#[derive(Deserialize)]
struct InvoiceOwner {
    subscription: Option<Expandable<SubscriptionOwner>>,
}

#[derive(Deserialize)]
struct SubscriptionOwner {
    #[serde(default)]
    metadata: BTreeMap<String, String>,
}

impl IntentOwner {
    pub fn reference(&self) -> Option<Reference> {
        let of = |metadata: &BTreeMap<String, String>| metadata.get("reference")?.parse().ok();
        let subscription = || self.invoice.as_ref()?.object()?.subscription.as_ref()?.object();
        of(&self.metadata).or_else(|| of(&subscription()?.metadata))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A session with a payment intent like these.
    fn status(status: &str, payment_status: &str, intent: &serde_json::Value) -> PaymentStatus {
        let session = json!({
            "id": "cs_1", "mode": "payment", "expires_at": 1_760_000_000, "status": status,
            "payment_status": payment_status, "payment_intent": intent,
        });
        serde_json::from_value::<CheckoutSession>(session).unwrap().status()
    }

    #[test]
    fn a_session_is_paid_only_when_its_money_came() {
        let intent = |status: &str| json!({"id": "pi_1", "status": status});
        let expected = [
            ("complete", "paid", intent("succeeded"), PaymentStatus::Paid),
            ("complete", "no_payment_required", json!(null), PaymentStatus::Paid),
            // A bank transfer is under way, and then fails.
            ("complete", "unpaid", intent("processing"), PaymentStatus::Pending),
            ("complete", "unpaid", json!("pi_1"), PaymentStatus::Pending),
            ("complete", "unpaid", intent("requires_payment_method"), PaymentStatus::Expired),
            ("complete", "unpaid", intent("canceled"), PaymentStatus::Expired),
            ("expired", "unpaid", json!(null), PaymentStatus::Expired),
            // Contradictions do not pay.
            ("open", "paid", intent("succeeded"), PaymentStatus::Pending),
            ("expired", "paid", intent("succeeded"), PaymentStatus::Expired),
            ("of a later year", "unpaid", json!(null), PaymentStatus::Pending),
        ];
        for (session, payment, intent, expected) in expected {
            assert_eq!(status(session, payment, &intent), expected, "{session} {payment} {intent}");
        }
    }

    #[test]
    fn the_newest_dispute_about_the_charge_counts() {
        let dispute = |charge: &str, created: i64, status: &str| json!({"charge": charge, "created": created, "status": status});
        let data = [
            dispute("ch_1", 1, "lost"),
            dispute("ch_1", 3, "won"),
            dispute("ch_1", 2, "needs_response"),
            dispute("ch_2", 4, "lost"),
        ];
        let disputes: Disputes = serde_json::from_value(json!({"data": data})).unwrap();
        assert_eq!(disputes.newest("ch_1"), Some(DisputeState::Won));
        assert_eq!(disputes.newest("ch_3"), None);
    }
}
