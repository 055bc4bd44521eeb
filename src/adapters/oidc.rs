//! Verifies identity tokens of CI jobs (OpenID Connect). The issuers are those that the operator
//! allows.
//!
//! Sources: OpenID Connect Discovery 1.0; RFC 7517 (key sets); RFC 7519 (tokens); "OpenID Connect
//! reference" of GitHub Actions (claims). GitHub signs with RS256, and some other issuers with ES256;
//! nothing else is accepted.

use actors::ports::identities::{Identities, IdentityError, Proven};
use async_trait::async_trait;
use contract::{AppId, Timestamp, WebUrl, text::IdentityToken, trusted_publishers::CiRun};
use data_encoding::HEXLOWER;
use jsonwebtoken::{
    Algorithm, DecodingKey, Validation,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse},
};
use serde::{Deserialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How long an issuer may take to tell its keys.
const WITHIN: Duration = Duration::from_secs(10);
/// The largest answer of an issuer, in bytes.
const LARGEST_ANSWER: usize = 256 << 10;
/// How long the keys of an issuer are used before they are read again.
const KEYS_LIVE: Duration = Duration::from_secs(3600);
/// How long they are used while the issuer cannot be read.
const KEYS_SERVE: Duration = Duration::from_secs(2 * 3600);
/// The least pause between two readings: strangers can send tokens with unknown keys.
const READ_AT_MOST_EVERY: Duration = Duration::from_secs(10);
/// How far clocks may differ.
const LEEWAY: Duration = Duration::from_secs(30);
/// The longest life of an identity token. Those of CI systems live a few minutes.
const LONGEST_LIFE: Duration = Duration::from_secs(24 * 3600);

/// The allowed issuers, with their keys.
pub struct Issuers {
    http: reqwest::Client,
    /// How long an issuer may take to tell its keys.
    within: Duration,
    issuers: Vec<Issuer>,
}

struct Issuer {
    url: WebUrl,
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

/// The claims of an identity token.
#[derive(Deserialize)]
struct Claims {
    aud: Audience,
    jti: String,
    exp: i64,
    iat: i64,
    repository: String,
    repository_id: String,
    repository_owner_id: String,
    workflow_ref: String,
    job_workflow_ref: Option<String>,
    environment: Option<String>,
    event_name: String,
    run_id: String,
    run_attempt: Option<String>,
    sha: String,
    #[serde(rename = "ref")]
    git_ref: String,
    actor: Option<String>,
}

/// RFC 7519, section 4.1.3: one audience, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

/// The issuer that a token names, which nothing proves yet.
#[derive(Deserialize)]
struct Named {
    iss: String,
}

impl Issuers {
    pub fn new(urls: &[WebUrl]) -> Result<Issuers, String> {
        let http = reqwest::Client::builder()
            .timeout(WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|e| format!("the client for issuers of identity tokens: {e}"))?;
        let issuer = |url: &WebUrl| Issuer {
            url: url.clone(),
            held: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
        };
        Ok(Issuers { http, within: WITHIN, issuers: urls.iter().map(issuer).collect() })
    }

    /// The key with this id. Reads the keys of the issuer again if they are old or the id is unknown.
    async fn key(
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

fn invalid<T>(why: &str) -> Result<T, IdentityError> {
    Err(IdentityError::Invalid(format!("the identity token is not valid: {why}")))
}

#[async_trait]
impl Identities for Issuers {
    async fn verify(
        &self,
        token: &IdentityToken,
        audience: &str,
        now: Timestamp,
    ) -> Result<Proven, IdentityError> {
        let token = token.as_str();
        let Ok(header) = jsonwebtoken::decode_header(token) else {
            return invalid("its header cannot be read");
        };
        if !matches!(header.alg, Algorithm::RS256 | Algorithm::ES256) {
            let kind = header.alg;
            return invalid(&format!("its signature is of the kind {kind:?}, not RS256 or ES256"));
        }
        let Some(id) = header.kid else { return invalid("it names no key") };
        let Ok(named) = jsonwebtoken::dangerous::insecure_decode::<Named>(token) else {
            return invalid("it names no issuer");
        };
        let issuer = self.issuers.iter().find(|issuer| issuer.url.as_str() == named.claims.iss);
        let Some(issuer) = issuer else {
            return invalid("its issuer is not one that is trusted here");
        };
        let key = self.key(issuer, &id, header.alg).await?;

        let mut rules = Validation::new(header.alg);
        rules.set_required_spec_claims(&["exp", "iss", "aud"]);
        rules.set_issuer(&[issuer.url.as_str()]);
        // Compared below: the audience may name an app.
        rules.validate_aud = false;
        rules.validate_nbf = true;
        rules.leeway = LEEWAY.as_secs();
        let claims = match jsonwebtoken::decode::<Claims>(token, &key, &rules) {
            Ok(decoded) => decoded.claims,
            Err(e) => return invalid(&explained(&e)),
        };
        let app = named_app(&claims.aud, audience)?;
        let now = now.as_millis() / 1000;
        let leeway = LEEWAY.as_secs() as i64;
        if claims.iat > now + leeway || claims.exp - claims.iat > LONGEST_LIFE.as_secs() as i64 {
            return invalid("the time of its issue is not plausible");
        }
        let unique = Sha256::digest(format!("{}\n{}", issuer.url, claims.jti));
        Ok(Proven {
            unique: HEXLOWER.encode(&unique),
            expires_at: Timestamp::from_millis((claims.exp + leeway) * 1000),
            run: run(issuer, claims),
            app,
        })
    }
}

/// The app that the audience of a token names. The audience must be the address of this service, or that
/// of an app there.
fn named_app(audience: &Audience, service: &str) -> Result<Option<AppId>, IdentityError> {
    let several = match audience {
        Audience::One(one) => std::slice::from_ref(one),
        Audience::Several(several) => several,
    };
    let of_app =
        |named: &String| named.strip_prefix(service)?.strip_prefix("/apps/")?.parse::<AppId>().ok();
    let apps: Vec<_> = several.iter().filter_map(of_app).collect();
    match apps[..] {
        [app] => Ok(Some(app)),
        [] if several.iter().any(|named| named == service) => Ok(None),
        _ => invalid(&format!("its audience must be {service} or {service}/apps/{{appId}}")),
    }
}

fn explained(e: &jsonwebtoken::errors::Error) -> String {
    use jsonwebtoken::errors::ErrorKind;
    match e.kind() {
        ErrorKind::ExpiredSignature => "it has expired".into(),
        ErrorKind::ImmatureSignature => "it is not valid yet".into(),
        ErrorKind::InvalidSignature => "its signature is wrong".into(),
        _ => e.to_string(),
    }
}

fn run(issuer: &Issuer, claims: Claims) -> CiRun {
    CiRun {
        issuer: issuer.url.clone(),
        repository: claims.repository,
        repository_id: claims.repository_id,
        repository_owner_id: claims.repository_owner_id,
        workflow_ref: claims.workflow_ref,
        job_workflow_ref: claims.job_workflow_ref,
        environment: claims.environment,
        event: claims.event_name,
        run_id: claims.run_id,
        run_attempt: claims.run_attempt,
        commit: claims.sha,
        git_ref: claims.git_ref,
        actor: claims.actor,
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
