//! Access tokens of service accounts.
//!
//! Source: "Using OAuth 2.0 for Server to Server Applications" of Google, and RFC 7523.

use super::GoogleRefusal;
use crate::{RemoteError, ServiceAccount};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use remote::{Http, Repeat};
use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// The age of a signature when it is made: Google's clock may be behind.
const SIGNED_BEFORE: u64 = 30;
/// How long a signature is valid, in seconds.
const SIGNED_FOR: u64 = 600;
/// How long before its end a token is not used any more: an upload may take a while.
const SPARE: Duration = Duration::from_secs(300);
/// How many tokens are remembered.
const MOST_TOKENS: usize = 10_000;

/// An access token, at most some kilobytes. Its `Debug` output is masked.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(super) struct Token(String);

impl Token {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(contract::text::MASK)
    }
}

/// Tokens for one scope.
pub(super) struct AccessTokens {
    http: Http,
    address: String,
    scope: &'static str,
    places: Mutex<HashMap<String, TokenSlot>>,
}

/// The place of one key's token. One caller asks for a token, and the others wait for it.
type TokenSlot = Arc<tokio::sync::Mutex<Option<IssuedToken>>>;

struct IssuedToken {
    /// A new key may have the id of an old one.
    account: ServiceAccount,
    token: Token,
    until: Instant,
}

#[derive(Serialize)]
struct GoogleClaims<'a> {
    iss: &'a str,
    scope: &'a str,
    aud: &'a str,
    iat: u64,
    exp: u64,
}

#[derive(Deserialize)]
struct Granted {
    access_token: Token,
    /// In seconds.
    expires_in: u64,
}

impl AccessTokens {
    pub fn new(http: Http, address: String, scope: &'static str) -> AccessTokens {
        AccessTokens { http, address, scope, places: Mutex::default() }
    }

    /// A token that is good for some minutes.
    pub async fn get(&self, account: &ServiceAccount) -> Result<Token, RemoteError> {
        let place = self.place(account);
        let mut place = place.lock().await;
        if let Some(known) = &*place
            && known.account == *account
            && Instant::now() < known.until
        {
            return Ok(known.token.clone());
        }
        let granted = self.ask(account).await?;
        let lives = Duration::from_secs(granted.expires_in);
        let until = Instant::now() + lives.saturating_sub(SPARE);
        let token = granted.access_token;
        *place = Some(IssuedToken { account: account.clone(), token: token.clone(), until });
        Ok(token)
    }

    /// Forgets a token that was refused.
    pub async fn forget(&self, account: &ServiceAccount, token: &Token) {
        let place = self.place(account);
        let mut place = place.lock().await;
        if place.as_ref().is_some_and(|known| known.token == *token) {
            *place = None;
        }
    }

    fn place(&self, account: &ServiceAccount) -> TokenSlot {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MOST_TOKENS {
            places.retain(|_, place| Arc::strong_count(place) > 1);
        }
        let name = format!("{} {}", account.client_email, account.private_key_id);
        places.entry(name).or_default().clone()
    }

    async fn ask(&self, account: &ServiceAccount) -> Result<Granted, RemoteError> {
        let assertion = self.assertion(account)?;
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", GRANT)
            .append_pair("assertion", &assertion)
            .finish();
        let request = self
            .http
            .client()
            .post(&self.address)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form);
        let answer = self.http.send(request, Repeat::Harmless).await?;
        if answer.is_ok() {
            return answer.read();
        }
        let failure = GoogleRefusal::of(&answer);
        let what_to_do = match failure.reason.as_str() {
            "invalid_grant" => {
                "Google refuses the key of the service account. It was deleted or disabled, or the \
                 clock of this machine is wrong. Create a new key in the Google Cloud console and \
                 replace this one."
            }
            _ => "Google gives the service account no token.",
        };
        Err(failure.refused(what_to_do))
    }

    fn assertion(&self, account: &ServiceAccount) -> Result<String, RemoteError> {
        // Google reads the time of a signature, so it is the real one.
        #[allow(clippy::disallowed_methods, reason = "the time of a signature is read by others")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let claims = GoogleClaims {
            iss: &account.client_email,
            scope: self.scope,
            aud: &self.address,
            iat: now.saturating_sub(SIGNED_BEFORE),
            exp: now + SIGNED_FOR,
        };
        let header =
            Header { kid: Some(account.private_key_id.clone()), ..Header::new(Algorithm::RS256) };
        // The reason is left out: it might quote the key.
        EncodingKey::from_rsa_pem(account.private_key.0.as_bytes())
            .and_then(|key| jsonwebtoken::encode(&header, &claims, &key))
            .map_err(|_| {
                RemoteError::Refused(
                    "The private key of the service account cannot sign. Upload the JSON file that \
                     Google created for the key, unchanged."
                        .into(),
                )
            })
    }
}
