//! Payment providers for tests: `tests/support/payments/paystack/paystack.mjs` and
//! `tests/support/payments/stripe/stripe.mjs`.

use super::{requires, rig::Rig};
use serde_json::{Value, json};
use std::ffi::OsStr;

/// The secret key that both accept at the start.
pub const SECRET_KEY: &str = "sk_test_0123456789abcdef0123456789abcdef";
/// With this, Stripe signs its notices at the start.
pub const WEBHOOK_SECRET: &str = "whsec_0123456789abcdef0123456789abcdef";

/// A payment provider of the tests. Its commands are in its script.
pub struct PaymentProvider {
    rig: Rig,
    /// The address of its API, and of the pages on which buyers pay.
    pub address: String,
}

impl PaymentProvider {
    /// Paystack without plans and payments.
    pub fn paystack() -> PaymentProvider {
        PaymentProvider::start("paystack/paystack.mjs", &json!({"secretKey": SECRET_KEY}))
    }

    /// Stripe without prices and payments.
    pub fn stripe() -> PaymentProvider {
        let config = json!({"secretKey": SECRET_KEY, "webhookSecret": WEBHOOK_SECRET});
        PaymentProvider::start("stripe/stripe.mjs", &config)
    }

    fn start(script: &str, config: &Value) -> PaymentProvider {
        let none: &[&OsStr] = &[];
        let rig = Rig::start("payments", script, none);
        let ready: Value = serde_json::from_str(&rig.ask(config)).unwrap();
        PaymentProvider { rig, address: ready["address"].as_str().unwrap().to_owned() }
    }

    /// Sends a command, and returns the answer.
    pub fn tell(&self, command: &Value) -> Value {
        self.rig.tell(command)
    }

    /// The buyer pays.
    pub fn pay(&self, reference: &str) {
        self.tell(&json!({"do": "pay", "reference": reference}));
    }

    /// The buyer's card is declined.
    pub fn decline(&self, reference: &str) {
        self.tell(&json!({"do": "decline", "reference": reference}));
    }

    /// Gives money back, counted as the provider counts it.
    pub fn refund(&self, reference: &str, amount: u64) {
        self.tell(&json!({"do": "refund", "reference": reference, "amount": amount}));
    }

    /// The buyer's bank asks for the money back, `"open"`, or has decided, `"won"` or `"lost"`.
    pub fn dispute(&self, reference: &str, status: &str) {
        self.tell(&json!({"do": "dispute", "reference": reference, "status": status}));
    }

    /// A period of a subscription ends, and its renewal is paid or not.
    pub fn renew(&self, subscription: &str, is_paid: bool) {
        self.tell(&json!({"do": "renew", "id": subscription, "isDeclined": !is_paid}));
    }

    /// The buyer cancels a subscription, now or for the end of its period.
    pub fn cancel(&self, subscription: &str, now: bool) {
        self.tell(&json!({"do": "cancel", "id": subscription, "now": now}));
    }

    /// Where notices go from now on. They are delivered once, before the command that causes them
    /// answers; those of the programs behind Stripe some time later.
    pub fn notify(&self, url: &str) {
        self.tell(&json!({"do": "receiver", "url": url}));
    }

    /// How often the buyer of this reference was charged.
    pub fn charges(&self, reference: &str) -> u64 {
        let told = self.tell(&json!({"do": "charges", "reference": reference}));
        told["charges"].as_u64().unwrap()
    }

    /// Lets the next requests go wrong whose path fits: `"cutBefore"`, `"cutAfter"`, or
    /// `{"status": 500}`.
    pub fn fail(&self, path: &str, how: &Value) {
        self.tell(&json!({"do": "fail", "path": path, "how": how}));
    }

    /// The requests whose path has this part.
    pub fn requests(&self, path: &str) -> Vec<Value> {
        let told = self.tell(&json!({"do": "requests"}));
        let fits = |request: &&Value| request["path"].as_str().unwrap().contains(path);
        told["requests"].as_array().unwrap().iter().filter(fits).cloned().collect()
    }

    /// What was delivered to the webhook, or would have been: `event`, `body`, `headers`, `status`.
    pub fn deliveries(&self) -> Vec<Value> {
        let told = self.tell(&json!({"do": "deliveries"}));
        told["deliveries"].as_array().unwrap().clone()
    }

    /// Fails if a request or an answer was not as the provider's description says.
    pub fn check(&self) {
        assert_eq!(self.tell(&json!({"do": "violations"}))["violations"], json!([]));
    }
}

/// Whether the tests with Paystack can run here. If not, prints which test is left out.
pub fn has_paystack(test: &str) -> bool {
    requires::node_packages(test, "payments")
}

/// Whether the tests with Stripe can run here. If not, prints which test is left out.
pub fn has_stripe(test: &str) -> bool {
    requires::programs(test, &["python3", "pip3"]) && requires::node_packages(test, "payments")
}
