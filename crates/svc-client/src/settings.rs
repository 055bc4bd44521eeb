//! What a client needs to know before its first call.

use crate::{Client, Patience, error::cause};
use reqwest::redirect;
use std::{fmt, time::Duration};

const CONNECTED_WITHIN: Duration = Duration::from_secs(10);
/// Longer than the service takes for a call: 30 s, unless its operator allows more.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// Why a client cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The address is not that of a service.
    #[error(
        "{0:?} is not the address of a service: give one such as https://svc.example.com/backend"
    )]
    Address(String),
    /// The machine has no certificates of authorities.
    #[error("no secure connections can be made: {0}")]
    Certificates(String),
}

/// The credentials of a client. Each one that is set is sent.
#[derive(Clone, Default)]
pub(crate) struct ClientCredentials {
    pub application_id: Option<String>,
    pub javascript_key: Option<String>,
    pub session_token: Option<String>,
    pub deploy_token: Option<String>,
    pub master_key: Option<String>,
}

impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let masked = |secret: &Option<String>| secret.as_ref().map(|_| "masked");
        f.debug_struct("ClientCredentials")
            .field("application_id", &self.application_id)
            .field("javascript_key", &masked(&self.javascript_key))
            .field("session_token", &masked(&self.session_token))
            .field("deploy_token", &masked(&self.deploy_token))
            .field("master_key", &masked(&self.master_key))
            .finish()
    }
}

/// Makes a [`Client`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    base_url: String,
    credentials: ClientCredentials,
    patience: Patience,
    time_limit: Duration,
    user_agent: String,
}

impl Builder {
    pub(crate) fn new(base_url: &str) -> Self {
        Builder {
            base_url: base_url.to_owned(),
            credentials: ClientCredentials::default(),
            patience: Patience::BRIEF,
            time_limit: ANSWERED_WITHIN,
            user_agent: concat!("svc-client/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    /// Who operates the service knows it. Calls with a deploy token do not need it.
    pub fn application_id(mut self, id: impl Into<String>) -> Self {
        self.credentials.application_id = Some(id.into());
        self
    }

    /// The JavaScript key, if the service wants one.
    pub fn javascript_key(mut self, key: impl Into<String>) -> Self {
        self.credentials.javascript_key = Some(key.into());
        self
    }

    /// The session of a person, `r:…`.
    pub fn session_token(mut self, token: impl Into<String>) -> Self {
        self.credentials.session_token = Some(token.into());
        self
    }

    /// A deploy token, `svc_dt_…`. It acts for who created it, within its scopes.
    pub fn deploy_token(mut self, token: impl Into<String>) -> Self {
        self.credentials.deploy_token = Some(token.into());
        self
    }

    /// The master key. The service takes it only from addresses that its operator allows.
    pub fn master_key(mut self, key: impl Into<String>) -> Self {
        self.credentials.master_key = Some(key.into());
        self
    }

    /// How long to wait for the answer of one attempt. The default is 60 seconds.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// How often to try. The default is [`Patience::BRIEF`].
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// The name of the calling program, for the log of the service.
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.user_agent = name.into();
        self
    }

    /// Makes the client. It opens no connection yet.
    pub fn build(self) -> Result<Client, BuildError> {
        let base_url = self.base_url.trim_end_matches('/').to_owned();
        let address = reqwest::Url::parse(&base_url).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.query().is_none()
                && url.fragment().is_none()
        });
        let Some(address) = address else { return Err(BuildError::Address(self.base_url)) };
        let connections = || {
            reqwest::Client::builder()
                .connect_timeout(CONNECTED_WITHIN)
                .timeout(self.time_limit)
                // A redirect would turn a call into a GET, and send the credentials elsewhere.
                .redirect(redirect::Policy::none())
                .user_agent(&self.user_agent)
        };
        let http = connections().build().or_else(|error| match address.scheme() {
            // A system without certificate authorities can still use plain HTTP.
            "http" => connections().tls_certs_only([]).build(),
            _ => Err(error),
        });
        let http = http.map_err(|error| BuildError::Certificates(cause(&error)))?;
        Ok(Client::from_parts(http, base_url, self.credentials, self.patience))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        let built = |address: &str| Builder::new(address).build();
        assert!(built("http://127.0.0.1:8080/backend/").is_ok());
        for address in ["svc.example.com", "file:///etc/passwd", "https://a.example?b=c", ""] {
            let error = built(address).unwrap_err();
            assert!(matches!(error, BuildError::Address(_)), "{address}: {error}");
        }
    }

    #[test]
    fn credentials_are_not_shown() {
        let client = Builder::new("http://127.0.0.1:8080/backend")
            .application_id("shop")
            .session_token("r:secret")
            .deploy_token("svc_dt_secret")
            .master_key("secret")
            .javascript_key("secret");
        let shown = format!("{client:?} {:?}", client.clone().build().unwrap());
        assert!(shown.contains("shop") && !shown.contains("secret"), "{shown}");
    }
}
