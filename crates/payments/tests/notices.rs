//! Notices of providers: what is accepted, and what it is about.

use contract::{Timestamp, checkouts::Reference};
use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use payments::{
    About, Notice, NoticeRefused, PaystackKey, ProviderKey, SecretText, Signature, StripeKey,
    read_notice,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Sha256, Sha512};

const NOW: Timestamp = Timestamp::from_millis(1_760_000_000_000);
const REFERENCE: &str = "chk-01K6J3C8Q9V7M2N4P5R6S7T8WX";

fn secret(text: &str) -> SecretText {
    SecretText(text.into())
}

fn paystack() -> ProviderKey {
    ProviderKey::Paystack(PaystackKey {
        secret_key: secret("sk_test_new"),
        previous_keys: vec![secret("sk_test_old")],
    })
}

fn stripe() -> ProviderKey {
    ProviderKey::Stripe(StripeKey {
        secret_key: secret("sk_test_new"),
        webhook_secrets: vec![secret("whsec_old"), secret("whsec_new")],
    })
}

fn by_paystack(key: &str, body: &[u8]) -> Signature {
    let mac = Hmac::<Sha512>::new_from_slice(key.as_bytes()).unwrap().chain_update(body);
    Signature(HEXLOWER.encode(&mac.finalize().into_bytes()))
}

fn v1(secret: &str, time: i64, body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    let mac = mac.chain_update(format!("{time}.")).chain_update(body);
    HEXLOWER.encode(&mac.finalize().into_bytes())
}

fn by_stripe(secret: &str, seconds_ago: i64, body: &[u8]) -> Signature {
    let time = NOW.as_seconds() - seconds_ago;
    Signature(format!("t={time},v1={}", v1(secret, time, body)))
}

fn signed(key: &ProviderKey, body: &[u8]) -> Result<Notice, NoticeRefused> {
    let signature = match key {
        ProviderKey::Paystack(_) => by_paystack("sk_test_new", body),
        ProviderKey::Stripe(_) => by_stripe("whsec_new", 0, body),
    };
    read_notice(key, &signature, body, NOW)
}

fn about(key: &ProviderKey, body: &Value) -> About {
    signed(key, body.to_string().as_bytes()).unwrap().about
}

fn ours() -> About {
    About::Payment(REFERENCE.parse::<Reference>().unwrap())
}

#[test]
fn paystack_signs_the_exact_bytes_with_a_secret_key() {
    let body = br#"{"event": "charge.success",  "data": {}}"#;
    for key in ["sk_test_new", "sk_test_old"] {
        let notice = read_notice(&paystack(), &by_paystack(key, body), body, NOW).unwrap();
        assert_eq!(notice.event, "charge.success");
    }
    let capitals = Signature(by_paystack("sk_test_new", body).0.to_uppercase());
    assert!(read_notice(&paystack(), &capitals, body, NOW).is_ok());
    let written_anew = serde_json::from_slice::<Value>(body).unwrap().to_string();
    let refused = [
        (by_paystack("sk_test_other", body), "fits none"),
        (by_paystack("sk_test_new", written_anew.as_bytes()), "fits none"),
        (by_paystack("", body), "fits none"),
        (by_stripe("sk_test_new", 0, body), "cannot be read"),
        (Signature(v1("sk_test_new", 0, body)), "fits none"),
        (Signature(String::new()), "missing"),
        (Signature("zz".into()), "cannot be read"),
    ];
    for (signature, part) in refused {
        let error = read_notice(&paystack(), &signature, body, NOW).unwrap_err();
        assert!(matches!(&error, NoticeRefused::Signature(why) if why.contains(part)), "{error}");
    }
}

#[test]
fn stripe_signs_the_time_too_and_old_signatures_are_refused() {
    let body = br#"{"type": "charge.refunded", "data": {"object": {"object": "charge"}}}"#;
    let time = NOW.as_seconds();
    let (good, other) = (v1("whsec_new", time, body), v1("whsec_other", time, body));
    let accepted = [
        by_stripe("whsec_new", 0, body),
        by_stripe("whsec_old", 0, body),
        by_stripe("whsec_new", 300, body),
        by_stripe("whsec_new", -300, body),
        Signature(format!("t={time},v0=aa,v1={other},v1={good},v9=zz")),
        Signature(format!("v1={good}, t={time}")),
    ];
    for signature in accepted {
        assert!(read_notice(&stripe(), &signature, body, NOW).is_ok(), "{signature:?}");
    }
    let refused = [
        (by_stripe("whsec_new", 301, body), "five minutes"),
        (by_stripe("whsec_new", -301, body), "five minutes"),
        (by_stripe("whsec_other", 0, body), "fits none"),
        (by_stripe("sk_test_new", 0, body), "fits none"),
        (by_stripe("whsec_new", 0, b"{}"), "fits none"),
        // The time of another signature.
        (Signature(format!("t={},v1={good}", time + 1)), "fits none"),
        (Signature(format!("t={time},v0={good}")), "cannot be read"),
        (Signature(format!("v1={good}")), "cannot be read"),
        (Signature(format!("t=now,v1={good}")), "cannot be read"),
        (Signature(String::new()), "missing"),
    ];
    for (signature, part) in refused {
        let error = read_notice(&stripe(), &signature, body, NOW).unwrap_err();
        assert!(matches!(&error, NoticeRefused::Signature(why) if why.contains(part)), "{error}");
    }
}

#[test]
fn without_a_signing_secret_no_notice_of_stripe_is_believed() {
    let key = ProviderKey::Stripe(StripeKey {
        secret_key: secret("sk_test_new"),
        webhook_secrets: vec![],
    });
    for signature in [by_stripe("", 0, b"{}"), by_stripe("sk_test_new", 0, b"{}")] {
        let error = read_notice(&key, &signature, b"{}", NOW).unwrap_err();
        assert!(error.to_string().contains("`webhookSecrets`"), "{error}");
    }
}

#[test]
fn notices_of_paystack_say_what_to_look_at() {
    let subscription = || About::Subscription("SUB_vsyqdmlzble3uii".into());
    let transaction = json!({"id": 896_467_688, "reference": REFERENCE, "status": "success"});
    let code = json!({"subscription_code": "SUB_vsyqdmlzble3uii", "status": "active"});
    let cases = [
        ("charge.success", json!({"reference": REFERENCE, "metadata": 0, "plan": {}}), ours()),
        (
            "charge.success",
            json!({"reference": "9cfbae6e-bbf3-5b41-8aef-d72c1a17650g"}),
            About::Nothing,
        ),
        ("charge.dispute.create", json!({"id": 358_950, "transaction": transaction}), ours()),
        ("charge.dispute.remind", json!({"transaction": transaction}), ours()),
        (
            "charge.dispute.resolve",
            json!({"transaction": {"id": 896_467_688}}),
            About::PaymentId("896467688".into()),
        ),
        ("refund.pending", json!({"transaction_reference": REFERENCE, "amount": "5000"}), ours()),
        ("refund.processing", json!({"transaction_reference": REFERENCE, "amount": 5000}), ours()),
        ("refund.processed", json!({"transaction_reference": REFERENCE}), ours()),
        ("refund.failed", json!({"transaction_reference": REFERENCE}), ours()),
        ("refund.needs-attention", json!({"transaction_reference": REFERENCE}), ours()),
        ("subscription.create", code.clone(), subscription()),
        ("subscription.disable", code.clone(), subscription()),
        ("subscription.not_renew", code.clone(), subscription()),
        ("subscription.expiring_cards", json!([{"subscription": code}]), About::Nothing),
        ("invoice.create", json!({"subscription": code, "transaction": {}}), subscription()),
        ("invoice.update", json!({"subscription": code}), subscription()),
        ("invoice.payment_failed", json!({"subscription": code, "paid": false}), subscription()),
        ("transfer.success", json!({"reference": REFERENCE}), About::Nothing),
    ];
    for (event, data, expected) in cases {
        let body = json!({"event": event, "data": data});
        assert_eq!(about(&paystack(), &body), expected, "{body}");
    }
}

#[test]
fn notices_of_stripe_say_what_to_look_at() {
    let intent = || About::PaymentId("pi_1".into());
    let subscription = || About::Subscription("sub_1".into());
    let metadata = json!({"reference": REFERENCE});
    let cases = [
        json!({"object": "checkout.session", "client_reference_id": REFERENCE}),
        json!({"object": "checkout.session", "client_reference_id": null, "metadata": metadata}),
        json!({"object": "payment_intent", "id": "pi_1", "metadata": metadata}),
        json!({"object": "charge", "id": "ch_1", "payment_intent": "pi_1", "metadata": metadata}),
    ];
    for object in cases {
        assert_eq!(about(&stripe(), &json!({"type": "any", "data": {"object": object}})), ours());
    }
    let cases = [
        (
            json!({"object": "checkout.session", "client_reference_id": "somebody-else"}),
            About::Nothing,
        ),
        (json!({"object": "payment_intent", "id": "pi_1", "metadata": {}}), intent()),
        (json!({"object": "charge", "payment_intent": "pi_1"}), intent()),
        (
            json!({"object": "dispute", "id": "dp_1", "payment_intent": "pi_1", "metadata": {}}),
            intent(),
        ),
        (json!({"object": "refund", "payment_intent": {"id": "pi_1"}}), intent()),
        (json!({"object": "charge", "payment_intent": null}), About::Nothing),
        (json!({"object": "subscription", "id": "sub_1", "metadata": metadata}), subscription()),
        (json!({"object": "invoice", "subscription": "sub_1"}), subscription()),
        (json!({"object": "invoice", "subscription": {"id": "sub_1"}}), subscription()),
        (
            json!({"object": "invoice", "parent": {"subscription_details": {"subscription": "sub_1"}}}),
            subscription(),
        ),
        (json!({"object": "invoice", "subscription": null}), About::Nothing),
        (json!({"object": "payout", "id": "po_1"}), About::Nothing),
    ];
    for (object, expected) in cases {
        let body = json!({"type": "any", "data": {"object": object}});
        assert_eq!(about(&stripe(), &body), expected, "{body}");
    }
}

#[test]
fn what_is_no_notice_is_unreadable() {
    for key in [paystack(), stripe()] {
        for body in [&b""[..], b"[]", b"{}", b"null", b"\xff", b"{\"event\": 1, \"type\": 1}"] {
            let error = signed(&key, body).unwrap_err();
            assert!(matches!(error, NoticeRefused::Unreadable(_)), "{error}");
        }
    }
}

/// JSON with the names that notices have, and any values.
fn like_a_notice() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!(REFERENCE)),
        Just(json!("charge.dispute.create")),
        Just(json!("refund.processed")),
        Just(json!("invoice")),
        Just(json!("subscription.create")),
    ];
    let names = prop::sample::select(vec![
        "event",
        "type",
        "data",
        "object",
        "id",
        "reference",
        "transaction",
        "metadata",
        "subscription",
        "transaction_reference",
        "subscription_code",
        "payment_intent",
        "client_reference_id",
        "parent",
    ]);
    leaf.prop_recursive(5, 60, 8, move |inner| {
        let object =
            prop::collection::btree_map(names.clone().prop_map(str::to_owned), inner.clone(), 0..8);
        prop_oneof![
            object.prop_map(|fields| Value::Object(fields.into_iter().collect())),
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_that_is_signed_makes_it_panic(body in like_a_notice()) {
        for key in [paystack(), stripe()] {
            let _ = signed(&key, body.to_string().as_bytes());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(body: Vec<u8>, header: String) {
        for key in [paystack(), stripe()] {
            let _ = signed(&key, &body);
            prop_assert!(read_notice(&key, &Signature(header.clone()), &body, NOW).is_err());
        }
    }

    #[test]
    fn a_changed_body_is_refused(at in 0..64_usize, bit in 0..8_u8) {
        let body = br#"{"event": "charge.success", "type": "charge.succeeded", "data": {}}"#;
        let mut changed = body.to_vec();
        if let Some(byte) = changed.get_mut(at) {
            *byte ^= 1_u8 << bit;
        }
        let signatures = [
            (paystack(), by_paystack("sk_test_new", body)),
            (stripe(), by_stripe("whsec_new", 0, body)),
        ];
        for (key, signature) in signatures {
            let refused = read_notice(&key, &signature, &changed, NOW).unwrap_err();
            prop_assert!(matches!(refused, NoticeRefused::Signature(_)));
        }
    }
}
