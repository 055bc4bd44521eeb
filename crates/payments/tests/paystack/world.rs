//! A Paystack, and orders for it.

use contract::{Timestamp, checkouts::Reference};
use payments::{
    Line, Payment, PaymentOrder, PaystackKey, Provider, ProviderKey, RemoteError, SecretText,
    paystack::Paystack,
};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use test_support::payments::{PaymentProvider, SECRET_KEY};

pub struct World {
    pub rig: Arc<PaymentProvider>,
    pub paystack: Paystack,
    pub key: ProviderKey,
}

/// A client of a Paystack that the tests share. No requests go wrong there.
pub fn world() -> World {
    static SHARED: OnceLock<Arc<PaymentProvider>> = OnceLock::new();
    world_of(SHARED.get_or_init(|| Arc::new(PaymentProvider::paystack())).clone())
}

/// A client of a Paystack of its own.
pub fn own_world() -> World {
    world_of(Arc::new(PaymentProvider::paystack()))
}

fn world_of(rig: Arc<PaymentProvider>) -> World {
    World { paystack: Paystack::new(&rig.address).unwrap(), rig, key: key(SECRET_KEY) }
}

pub fn key(secret: &str) -> ProviderKey {
    let secret_key = SecretText(secret.into());
    ProviderKey::Paystack(PaystackKey { secret_key, previous_keys: Vec::new() })
}

/// A reference that no other test has.
pub fn reference(number: u32) -> Reference {
    format!("chk-01K6J3C8Q9V7M2N4P5R6{number:06}").parse().unwrap()
}

/// An order of 50.00 NGN.
pub fn order(reference: Reference) -> PaymentOrder {
    priced(reference, 5000, "NGN")
}

pub fn priced(reference: Reference, minor: u64, currency: &str) -> PaymentOrder {
    let money = json!({"amount": minor, "currency": currency});
    let total: contract::money::Money = serde_json::from_value(money).unwrap();
    PaymentOrder {
        reference,
        lines: vec![Line { name: "Bread".into(), unit: total.amount, quantity: 1 }],
        total,
        customer: serde_json::from_value(json!({"email": "ada@example.com"})).unwrap(),
        plan: None,
        return_to: "https://shop.example.com/done?from=app".parse().unwrap(),
        metadata: [("app".to_owned(), "app_1".to_owned())].into(),
        expires_at: Timestamp::from_millis(1_760_000_000_000),
    }
}

impl World {
    pub async fn payment(&self, reference: Reference) -> Payment {
        self.paystack.payment(&self.key, reference, None).await.unwrap().unwrap()
    }

    pub fn tell(&self, command: Value) {
        self.rig.tell(&command);
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
