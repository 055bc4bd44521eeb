//! The credentials of a GitHub App: it signs with its key, and gets short-lived tokens of its
//! installations. Each token reaches one repository and has one permission.
//!
//! Source: "Authenticating as a GitHub App installation" of GitHub.

use super::{
    documents::{self, InstallationToken},
    http::{Api, GithubRequest},
};
use actors::ports::ci::CiError;
use contract::text::{AccessToken, RepositoryName};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// How long a token is used. GitHub's live an hour; a runner may need the rest of it.
const USED_FOR: Duration = Duration::from_secs(30 * 60);
/// The age of a signature when it is made: the clock of GitHub may be behind.
const SIGNED_BEFORE: u64 = 60;
/// How long a signature is valid, in seconds. GitHub allows ten minutes.
const SIGNED_FOR: u64 = 300;
/// How many tokens are remembered.
const MOST_TOKENS: usize = 10_000;

/// What a token may do in its repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Permissions {
    /// Read its files.
    Contents,
    /// Begin, read and cancel runs.
    Actions,
}

impl Permissions {
    fn document(self) -> Value {
        match self {
            Permissions::Contents => json!({"contents": "read"}),
            Permissions::Actions => json!({"actions": "write"}),
        }
    }
}

pub(super) struct AppCredentials {
    id: String,
    key: EncodingKey,
    tokens: Mutex<HashMap<TokenRequest, (AccessToken, Instant)>>,
    turns: Mutex<HashMap<TokenRequest, Turn>>,
}

/// The repository and the permission of a token.
type TokenRequest = (String, Permissions);
/// Held by the caller that asks for a token.
type Turn = Arc<tokio::sync::Mutex<()>>;

#[derive(Serialize)]
struct AppClaims<'a> {
    iss: &'a str,
    iat: u64,
    exp: u64,
}

impl AppCredentials {
    pub fn read(id: &str, key: &Path) -> Result<AppCredentials, String> {
        let wrong = |e: &dyn std::fmt::Display| {
            format!("the key of the GitHub App in {}: {e}", key.display())
        };
        let pem = std::fs::read(key).map_err(|e| wrong(&e))?;
        let key = EncodingKey::from_rsa_pem(&pem).map_err(|e| wrong(&e))?;
        Ok(AppCredentials {
            id: id.to_owned(),
            key,
            tokens: Mutex::default(),
            turns: Mutex::default(),
        })
    }

    /// A token with which the app itself calls, valid for a few minutes.
    pub fn of_app(&self) -> Result<String, CiError> {
        // A signature is for the clock of GitHub, so it needs the real time.
        #[allow(clippy::disallowed_methods, reason = "the time of a signature is read by others")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let claims = AppClaims {
            iss: &self.id,
            iat: now.saturating_sub(SIGNED_BEFORE),
            exp: now + SIGNED_FOR,
        };
        jsonwebtoken::encode(&Header::new(Algorithm::RS256), &claims, &self.key)
            .map_err(|e| CiError::Refused(format!("the key of the GitHub App cannot sign: {e}")))
    }

    /// A token that was made before and is still good.
    pub fn known(&self, to: &RepositoryName, permissions: Permissions) -> Option<AccessToken> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let (token, made) = tokens.get(&key(to, permissions))?;
        (made.elapsed() < USED_FOR).then(|| token.clone())
    }

    /// The turn to ask for a token.
    pub fn turn(&self, to: &RepositoryName, permissions: Permissions) -> Turn {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        turns.entry(key(to, permissions)).or_default().clone()
    }

    /// A new token of an installation.
    pub async fn of_installation(
        &self,
        api: &Api,
        installation: u64,
        to: &RepositoryName,
        permissions: Permissions,
    ) -> Result<AccessToken, CiError> {
        let name = to.as_str().rsplit('/').next().unwrap_or_default();
        let body = json!({"repositories": [name], "permissions": permissions.document()});
        let path = format!("/app/installations/{installation}/access_tokens");
        let answer = api.send(&GithubRequest::post(path, Some(body)), &self.of_app()?).await?;
        let token = documents::token(answer.read::<InstallationToken>()?)?;
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= MOST_TOKENS {
            tokens.retain(|_, (_, made)| made.elapsed() < USED_FOR);
        }
        tokens.insert(key(to, permissions), (token.clone(), Instant::now()));
        Ok(token)
    }
}

/// GitHub ignores case in the names of repositories.
fn key(to: &RepositoryName, permissions: Permissions) -> TokenRequest {
    (to.as_str().to_ascii_lowercase(), permissions)
}
