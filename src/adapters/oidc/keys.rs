//! The keys with which issuers sign. They are read when a token needs them, and kept.

use super::{Issuers, invalid};
use actors::ports::identities::IdentityError;
use contract::WebUrl;
use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse},
};
use serde::{Deserialize, de::DeserializeOwned};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The largest answer of an issuer, in bytes.
const LARGEST_ANSWER: usize = 256 << 10;
/// How long the keys of an issuer are used before they are read again.
const KEYS_LIVE: Duration = Duration::from_secs(3600);
/// How long they are used while the issuer cannot be read.
const KEYS_SERVE: Duration = Duration::from_secs(2 * 3600);
/// The least pause between two readings: strangers can send tokens with unknown keys.
const READ_AT_MOST_EVERY: Duration = Duration::from_secs(10);

/// An allowed issuer, with its keys.
pub(super) struct Issuer {
    pub url: WebUrl,
    held: Mutex<Held>,
    /// One caller at a time reads keys. Those that wait share what it finds, also that the issuer is
    /// silent.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Held {
    keys: Option<Keys>,
    /// When the last reading ended.
    tried: Option<Instant>,
    /// Why the last reading failed.
    failure: Option<String>,
}

struct Keys {
    set: JwkSet,
    read: Instant,
}

impl Issuer {
    pub fn new(url: WebUrl) -> Issuer {
        Issuer { url, held: Mutex::default(), reading: tokio::sync::Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key with this id, among those that were read within this time.
    fn known(
        &self,
        id: &str,
        algorithm: Algorithm,
        within: Duration,
    ) -> Option<Result<DecodingKey, IdentityError>> {
        let held = self.held();
        let keys = held.keys.as_ref().filter(|keys| keys.read.elapsed() < within);
        keys.and_then(|keys| find(&keys.set, id, algorithm))
    }

    /// Whether no reading has ended since this moment, and none that succeeded just before.
    fn must_be_read(&self, asked: Instant) -> bool {
        let held = self.held();
        let is_new = |keys: &Keys| keys.read.elapsed() < READ_AT_MOST_EVERY;
        held.tried.is_none_or(|tried| tried < asked) && !held.keys.as_ref().is_some_and(is_new)
    }

    fn take(&self, read: Result<JwkSet, IdentityError>) {
        let (mut held, now) = (self.held(), Instant::now());
        held.tried = Some(now);
        match read {
            Ok(set) => (held.keys, held.failure) = (Some(Keys { set, read: now }), None),
            Err(e) => held.failure = Some(e.to_string()),
        }
    }
}

/// The part of a discovery document that counts.
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

impl Issuers {
    /// The key with this id. Reads the keys of the issuer again if they are old or the id is unknown.
    pub(super) async fn key(
        &self,
        issuer: &Issuer,
        id: &str,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, IdentityError> {
        let asked = Instant::now();
        if let Some(key) = issuer.known(id, algorithm, KEYS_LIVE) {
            return key;
        }
        let _reading = match issuer.known(id, algorithm, KEYS_SERVE) {
            None => issuer.reading.lock().await,
            // Somebody else finds out whether the key is still one of the issuer.
            Some(key) => match issuer.reading.try_lock() {
                Ok(reading) => reading,
                Err(_) => return key,
            },
        };
        if issuer.must_be_read(asked) {
            let away = |_| Err(IdentityError::Unreachable(format!("{} is silent", issuer.url)));
            let read = tokio::time::timeout(self.within, self.read_keys(&issuer.url)).await;
            issuer.take(read.unwrap_or_else(away));
        }
        let found = issuer.known(id, algorithm, KEYS_SERVE);
        found.unwrap_or_else(|| match issuer.held().failure.clone() {
            Some(why) => Err(IdentityError::Unreachable(why)),
            None => invalid("its key is not one of the issuer"),
        })
    }

    async fn read_keys(&self, issuer: &WebUrl) -> Result<JwkSet, IdentityError> {
        let url = issuer.as_str().trim_end_matches('/');
        let discovery: Discovery =
            self.read(&format!("{url}/.well-known/openid-configuration")).await?;
        if discovery.issuer != issuer.as_str() {
            return Err(IdentityError::Unreachable(format!(
                "{url} says that it is {}",
                discovery.issuer
            )));
        }
        // A discovery document must not make the service ask another host.
        let origin = |url: &str| url::Url::parse(url).ok().map(|url| url.origin());
        if origin(&discovery.jwks_uri) != origin(url) {
            return Err(IdentityError::Unreachable(format!(
                "{url} keeps its keys at another host"
            )));
        }
        self.read(&discovery.jwks_uri).await
    }

    async fn read<T: DeserializeOwned>(&self, url: &str) -> Result<T, IdentityError> {
        let away = |e: &dyn std::fmt::Display| IdentityError::Unreachable(format!("{url}: {e}"));
        let answer = self.http.get(url).send().await.and_then(|answer| answer.error_for_status());
        let mut answer = answer.map_err(|e| away(&e))?;
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|e| away(&e))? {
            body.extend_from_slice(&piece);
            if body.len() > LARGEST_ANSWER {
                return Err(away(&"the answer is too large"));
            }
        }
        serde_json::from_slice(&body).map_err(|e| away(&e))
    }
}

/// The key with this id, if the set has one. Only keys for signatures of this kind count.
fn find(
    set: &JwkSet,
    id: &str,
    algorithm: Algorithm,
) -> Option<Result<DecodingKey, IdentityError>> {
    let key = set.find(id)?;
    let is_for_signatures =
        key.common.public_key_use.as_ref().is_none_or(|of| *of == PublicKeyUse::Signature);
    let is_meant =
        key.common.key_algorithm.is_none_or(|of| of.to_string() == format!("{algorithm:?}"));
    if !is_for_signatures || !is_meant || !is_of_kind(key, algorithm) {
        return Some(invalid("its key is not for such signatures"));
    }
    Some(DecodingKey::from_jwk(key).or_else(|_| invalid("its key cannot be used")))
}

/// Whether the key is one with which this algorithm signs.
fn is_of_kind(key: &Jwk, algorithm: Algorithm) -> bool {
    match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(_), Algorithm::RS256) => true,
        (AlgorithmParameters::EllipticCurve(curve), Algorithm::ES256) => {
            curve.curve == EllipticCurve::P256
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use serde_json::json;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    };
    use tokio::net::TcpListener;

    /// An issuer that takes connections and says nothing, and how many it has.
    async fn silent() -> (Issuers, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, SeqCst);
                open.push(stream);
            }
        });
        let issuers = Issuers::new(&[url.parse().unwrap()]).unwrap();
        (Issuers { within: Duration::from_millis(300), ..issuers }, count)
    }

    #[tokio::test]
    async fn those_who_wait_for_a_silent_issuer_share_one_reading() {
        let (issuers, connections) = silent().await;
        let issuer = &issuers.issuers[0];
        let answers = join_all((0..16).map(|_| issuers.key(issuer, "a", Algorithm::RS256))).await;
        assert!(answers.iter().all(|key| matches!(key, Err(IdentityError::Unreachable(_)))));
        assert_eq!(connections.load(SeqCst), 1);
        // Who comes later asks anew.
        assert!(issuers.key(issuer, "a", Algorithm::RS256).await.is_err());
        assert_eq!(connections.load(SeqCst), 2);
    }

    #[tokio::test]
    async fn known_keys_serve_while_their_issuer_is_silent() {
        let (issuers, connections) = silent().await;
        let issuer = &issuers.issuers[0];
        let set: JwkSet = serde_json::from_value(json!({
            "keys": [{"kty": "RSA", "kid": "a", "alg": "RS256", "n": "AQAB", "e": "AQAB"}],
        }))
        .unwrap();
        issuer.take(Ok(set));
        assert!(issuers.key(issuer, "a", Algorithm::RS256).await.is_ok());
        assert!(
            issuers.key(issuer, "b", Algorithm::RS256).await.is_err(),
            "and nobody asks so soon"
        );
        assert_eq!(connections.load(SeqCst), 0);
        let age = |time| {
            let read = Instant::now().checked_sub(time).unwrap();
            issuer.held().keys.as_mut().unwrap().read = read;
        };
        age(KEYS_LIVE);
        let answers = join_all((0..16).map(|_| issuers.key(issuer, "a", Algorithm::RS256))).await;
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(connections.load(SeqCst), 1, "one of them has asked");
        age(KEYS_SERVE);
        assert!(issuers.key(issuer, "a", Algorithm::RS256).await.is_err());
    }
}
