//! A Stripe, and orders for it.

use contract::{Timestamp, checkouts::Reference, money::Money};
use payments::{
    Line, Payment, PaymentOrder, PaymentPage, Provider, ProviderKey, RemoteError, SecretText,
    StripeKey, stripe::Stripe,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, OnceLock},
    time::{Duration, UNIX_EPOCH},
};
use test_support::payments::{PaymentProvider, SECRET_KEY, WEBHOOK_SECRET};

pub struct World {
    pub rig: Arc<PaymentProvider>,
    pub stripe: Stripe,
    pub key: ProviderKey,
}

/// A client of a Stripe that the tests share. No requests go wrong there.
pub fn world() -> World {
    static SHARED: OnceLock<Arc<PaymentProvider>> = OnceLock::new();
    world_of(SHARED.get_or_init(|| Arc::new(PaymentProvider::stripe())).clone())
}

/// A client of a Stripe of its own.
pub fn own_world() -> World {
    world_of(Arc::new(PaymentProvider::stripe()))
}

fn world_of(rig: Arc<PaymentProvider>) -> World {
    World { stripe: Stripe::new(&rig.address).unwrap(), rig, key: key(SECRET_KEY) }
}

pub fn key(secret: &str) -> ProviderKey {
    ProviderKey::Stripe(StripeKey {
        secret_key: SecretText(secret.into()),
        webhook_secrets: vec![SecretText(WEBHOOK_SECRET.into())],
    })
}

pub fn now() -> Timestamp {
    #[allow(clippy::disallowed_methods, reason = "the programs of the tests have this clock")]
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

/// A reference that no other test has.
pub fn reference(number: u32) -> Reference {
    format!("chk-01K6J3C8Q9V7M2N4P5R6{number:06}").parse().unwrap()
}

pub fn money(minor: u64, currency: &str) -> Money {
    serde_json::from_value(json!({"amount": minor, "currency": currency})).unwrap()
}

/// An order of two things for 50.00 EUR.
pub fn order(reference: Reference) -> PaymentOrder {
    let line = |name: &str, minor, quantity| Line {
        name: name.into(),
        unit: money(minor, "EUR").amount,
        quantity,
    };
    PaymentOrder {
        lines: vec![line("Bread & butter", 1000, 3), line("Käse [alt]", 2000, 1)],
        ..priced(reference, 5000, "EUR")
    }
}

pub fn priced(reference: Reference, minor: u64, currency: &str) -> PaymentOrder {
    let total = money(minor, currency);
    PaymentOrder {
        reference,
        lines: vec![Line { name: "Bread".into(), unit: total.amount, quantity: 1 }],
        total,
        customer: serde_json::from_value(json!({"email": "ada@example.com"})).unwrap(),
        plan: None,
        return_to: "https://shop.example.com/done?from=app".parse().unwrap(),
        metadata: [("app".to_owned(), "app_1".to_owned())].into(),
        expires_at: now() + Duration::from_secs(3600),
    }
}

impl World {
    pub async fn open(&self, order: &PaymentOrder) -> PaymentPage {
        self.stripe.open(&self.key, order).await.unwrap()
    }

    pub async fn payment(&self, reference: Reference, opened: &PaymentPage) -> Payment {
        let session = opened.session.as_deref();
        self.stripe.payment(&self.key, reference, session).await.unwrap().unwrap()
    }

    /// Opens the page of an order, and pays it.
    pub async fn paid(&self, order: &PaymentOrder) -> (PaymentPage, Payment) {
        let opened = self.open(order).await;
        self.rig.pay(&order.reference.to_string());
        let payment = self.payment(order.reference, &opened).await;
        (opened, payment)
    }

    pub fn tell(&self, command: Value) -> Value {
        self.rig.tell(&command)
    }
}

/// The sentence of a refusal.
#[track_caller]
pub fn refusal<T: std::fmt::Debug>(result: Result<T, RemoteError>) -> String {
    match result {
        Err(RemoteError::Refused(sentence)) => sentence,
        other => panic!("not refused: {other:?}"),
    }
}
