//! The headers of a request to a receiver. Source: Standard Webhooks 1.0.0, "Webhook Metadata" and
//! "Signature scheme".

use crate::ports::random::{NoRandomness, Random};
use contract::{MessageId, Timestamp};
use data_encoding::BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// The text before the key.
const PREFIX: &str = "whsec_";
/// Letters and digits of the key. They are the base64 of 24 bytes, and each is one of 62: 190 random
/// bits.
const LETTERS: usize = 32;

/// The secret of a webhook, as its receiver has it.
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(contract::text::MASK)
    }
}

impl Secret {
    pub fn new(random: &Random) -> Result<Secret, NoRandomness> {
        random.secret(PREFIX, LETTERS).map(Secret)
    }

    /// A secret that was written down.
    pub fn of(text: String) -> Secret {
        Secret(text)
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The signature of one message, such as `v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=`.
    /// `None` if the secret is not one that [`Secret::new`] makes.
    fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> Option<String> {
        let key = BASE64.decode(self.0.strip_prefix(PREFIX)?.as_bytes()).ok()?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        Some(format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes())))
    }
}

/// The headers of an attempt at this time, with one signature for each secret.
pub fn headers(
    id: MessageId,
    now: Timestamp,
    body: &str,
    secrets: &[Secret],
) -> Vec<(&'static str, String)> {
    let id = id.to_string();
    let seconds = now.as_millis().div_euclid(1000);
    let signatures = secrets.iter().filter_map(|secret| secret.sign(&id, seconds, body.as_bytes()));
    let signatures = signatures.collect::<Vec<_>>().join(" ");
    vec![
        ("webhook-id", id),
        ("webhook-timestamp", seconds.to_string()),
        ("webhook-signature", signatures),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the reference implementations of Standard Webhooks.
    #[test]
    fn the_published_example_is_signed_as_published() {
        let secret = Secret::of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into());
        let body = br#"{"test": 2432232314}"#;
        let signed = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body).unwrap();
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_new_secret_is_a_key_of_24_bytes_that_nobody_prints() {
        let secret = Secret::new(&Random::default()).unwrap();
        let key = BASE64.decode(secret.reveal().strip_prefix("whsec_").unwrap().as_bytes());
        assert_eq!(key.unwrap().len(), 24);
        assert!(!format!("{secret:?}").contains("whsec_"));
    }

    #[test]
    fn each_secret_signs() {
        let secrets = [(); 2].map(|()| Secret::new(&Random::default()).unwrap());
        let id = "msg_01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        let headers = headers(id, Timestamp::from_millis(1_614_265_330_999), "{}", &secrets);
        assert_eq!(headers[1], ("webhook-timestamp", "1614265330".to_owned()));
        let signatures: Vec<_> = headers[2].1.split(' ').collect();
        let expected = secrets.map(|secret| secret.sign(&id.to_string(), 1_614_265_330, b"{}"));
        assert_eq!(signatures, expected.iter().flatten().collect::<Vec<_>>());
    }
}
