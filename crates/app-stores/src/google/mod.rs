//! What Google Play and Firebase share: tokens of service accounts, and refusals.

mod failure;
mod token;

pub(crate) use failure::GoogleRefusal;

use crate::{RemoteError, ServiceAccount};
use remote::{Http, RemoteResponse, Repeat};
use reqwest::RequestBuilder;
use std::time::Duration;
use token::AccessTokens;

/// Where Google's services are, without a slash at the end. The default is Google's own addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoogleAddresses {
    /// The Google Play Developer API.
    pub play: String,
    /// Firebase App Distribution.
    pub firebase: String,
    /// Where access tokens are issued. Signatures are made for this address.
    pub token: String,
}

impl Default for GoogleAddresses {
    fn default() -> Self {
        GoogleAddresses {
            play: "https://androidpublisher.googleapis.com".into(),
            firebase: "https://firebaseappdistribution.googleapis.com".into(),
            token: "https://oauth2.googleapis.com/token".into(),
        }
    }
}

/// A service of Google.
pub(crate) struct Google {
    http: Http,
    tokens: AccessTokens,
}

impl Google {
    /// A service with this name in sentences. `scope` is what its tokens are for.
    pub fn new(name: &'static str, scope: &'static str, token: &str) -> Result<Google, String> {
        let http = Http::new(name)?;
        let tokens =
            AccessTokens::new(http.named("Google's token service"), token.to_owned(), scope);
        Ok(Google { http, tokens })
    }

    /// Asks for a token if none is known that is still good.
    pub async fn sign_in(&self, account: &ServiceAccount) -> Result<(), RemoteError> {
        self.tokens.get(account).await.map(drop)
    }

    /// Sends a request that `build` makes. If Google does not accept the token any more, it is sent
    /// once more with a new one: Google did nothing then.
    pub async fn send(
        &self,
        account: &ServiceAccount,
        repeat: Repeat,
        build: impl Fn(&reqwest::Client) -> RequestBuilder + Send + Sync,
    ) -> Result<RemoteResponse, RemoteError> {
        let token = self.tokens.get(account).await?;
        let request = build(self.http.client()).bearer_auth(token.as_str());
        let answer = self.http.send(request, repeat).await?;
        if answer.status != 401 {
            return Ok(answer);
        }
        self.tokens.forget(account, &token).await;
        let token = self.tokens.get(account).await?;
        self.http.send(build(self.http.client()).bearer_auth(token.as_str()), repeat).await
    }

    /// Sends a request whose body exists once.
    pub async fn send_once(
        &self,
        account: &ServiceAccount,
        build: impl FnOnce(&reqwest::Client) -> RequestBuilder + Send,
    ) -> Result<RemoteResponse, RemoteError> {
        let token = self.tokens.get(account).await?;
        let request = build(self.http.client()).bearer_auth(token.as_str());
        let answer = self.http.send(request, Repeat::Harmless).await?;
        if answer.status == 401 {
            self.tokens.forget(account, &token).await;
        }
        Ok(answer)
    }
}

/// Waits for a step no longer than it may take.
pub(crate) async fn within<E: From<RemoteError>>(
    limit: Duration,
    step: impl Future<Output = Result<(), E>>,
) -> Result<(), E> {
    let late = || {
        let why = format!("The step did not end within {} seconds.", limit.as_secs());
        RemoteError::Unclear(why).into()
    };
    tokio::time::timeout(limit, step).await.unwrap_or_else(|_| Err(late()))
}
