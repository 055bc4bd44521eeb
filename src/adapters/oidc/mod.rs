//! Verifies identity tokens of CI jobs (OpenID Connect). The issuers are those that the operator
//! allows.
//!
//! Sources: OpenID Connect Discovery 1.0; RFC 7517 (key sets); RFC 7519 (tokens); "OpenID Connect
//! reference" of GitHub Actions (claims). GitHub signs with RS256, and some other issuers with ES256;
//! nothing else is accepted.

mod keys;

use actors::ports::identities::{Identities, IdentityError, Proven};
use async_trait::async_trait;
use contract::{AppId, Timestamp, WebUrl, text::IdentityToken, trusted_publishers::CiRun};
use data_encoding::HEXLOWER;
use jsonwebtoken::{Algorithm, Validation};
use keys::Issuer;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// How long an issuer may take to tell its keys.
const WITHIN: Duration = Duration::from_secs(10);
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

/// The claims of an identity token.
#[derive(Deserialize)]
struct TokenClaims {
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
        let issuers = urls.iter().cloned().map(Issuer::new).collect();
        Ok(Issuers { http, within: WITHIN, issuers })
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
        let claims = match jsonwebtoken::decode::<TokenClaims>(token, &key, &rules) {
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

fn run(issuer: &Issuer, claims: TokenClaims) -> CiRun {
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
