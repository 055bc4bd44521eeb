//! Tokens for the App Store Connect API, signed with a key of a team or of a person.
//!
//! Source: "Generating Tokens for API Requests" of Apple.

use crate::{AppStoreConnectKey, RemoteError};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// The longest life that Apple accepts, in seconds.
const LIVES_FOR: u64 = 20 * 60;
/// The age of a token when it is made: the clock of Apple may be behind.
const MADE_BEFORE: u64 = 60;
/// How long a token is used. It is valid for a while longer, so that a request may be slow.
const USED_FOR: Duration = Duration::from_secs(15 * 60);

/// Tokens by the id of their key.
#[derive(Default)]
pub(super) struct SignedTokens(Mutex<HashMap<String, SignedToken>>);

struct SignedToken {
    key: AppStoreConnectKey,
    token: String,
    at: Instant,
}

#[derive(Serialize)]
struct AppleClaims<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<&'a str>,
    /// `user` for the key of a person, which has no issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    sub: Option<&'static str>,
    iat: u64,
    exp: u64,
    aud: &'static str,
}

impl SignedTokens {
    /// A token that is valid for some minutes.
    pub fn of(&self, key: &AppStoreConnectKey) -> Result<String, RemoteError> {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.retain(|_, made| made.at.elapsed() < USED_FOR);
        if let Some(made) = tokens.get(&key.key_id).filter(|made| made.key == *key) {
            return Ok(made.token.clone());
        }
        let token = sign(key)?;
        let made = SignedToken { key: key.clone(), token: token.clone(), at: Instant::now() };
        tokens.insert(key.key_id.clone(), made);
        Ok(token)
    }

    /// The token of this key is not used any more: Apple refused it.
    pub fn forget(&self, key: &AppStoreConnectKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key.key_id);
    }
}

fn sign(key: &AppStoreConnectKey) -> Result<String, RemoteError> {
    // The error of the parser says nothing that helps, and must not quote the key.
    let unusable = |_| {
        RemoteError::Refused(format!(
            "The private key of App Store Connect key {} cannot be read: it must be the whole .p8 \
             file that Apple gave out, an EC P-256 key in PKCS#8.",
            key.key_id
        ))
    };
    let private = EncodingKey::from_ec_pem(key.private_key.0.as_bytes()).map_err(unusable)?;
    // Apple compares the times with its clock, so the real time is needed.
    #[allow(clippy::disallowed_methods, reason = "the time of a signature is read by others")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let iat = now.saturating_sub(MADE_BEFORE);
    let issuer = key.issuer_id.as_deref();
    let claims = AppleClaims {
        iss: issuer,
        sub: issuer.is_none().then_some("user"),
        iat,
        exp: iat + LIVES_FOR,
        aud: "appstoreconnect-v1",
    };
    let header = Header { kid: Some(key.key_id.clone()), ..Header::new(Algorithm::ES256) };
    jsonwebtoken::encode(&header, &claims, &private).map_err(unusable)
}
