//! Requests to the admin API, and what its errors mean.

use crate::{Channel, RemoteError};
use remote::{Guarded, Http, Repeat, WITHIN, quotation};
use reqwest::{Client, header::HeaderValue};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{fmt, time::Duration};
use url::Url;

/// The pause after an internal error of the shop.
const PAUSE: Duration = Duration::from_secs(10);

/// The admin API of one channel.
pub(super) struct Api<'a> {
    client: &'a Client,
    url: Url,
    channel: &'a Channel,
}

/// Why a request has no result.
pub(super) enum RequestFailure {
    /// The API says what is wrong with the request.
    Refused(ApiError),
    /// The shop has failed, and may have done it.
    Broken(ApiError, Repeat),
    /// There is no answer about what was asked.
    Unanswered(RemoteError),
}

/// An error of the API: a member of the list `errors`, or an `ErrorResult`.
#[derive(Debug)]
pub(super) struct ApiError {
    /// Such as `FORBIDDEN` or `INSUFFICIENT_STOCK_ERROR`.
    pub code: String,
    /// The sentence of the shop.
    pub message: String,
}

#[derive(Deserialize)]
struct GraphQlBody<T> {
    data: Option<T>,
    #[serde(default)]
    errors: Vec<GraphQlError>,
}

#[derive(Deserialize)]
struct GraphQlError {
    #[serde(default)]
    message: String,
    #[serde(default)]
    extensions: Extensions,
}

#[derive(Default, Deserialize)]
struct Extensions {
    #[serde(default)]
    code: String,
}

impl<'a> Api<'a> {
    /// Refuses an address that no request may go to.
    pub fn open(guarded: &'a Guarded, channel: &'a Channel) -> Result<Api<'a>, RemoteError> {
        let address = channel.admin_api_url.as_str();
        let opened = if channel.is_own { guarded.open_own(address) } else { guarded.open(address) };
        let (url, client) = opened.map_err(|why| {
            RemoteError::Refused(format!("The address of the shop's admin API {why}."))
        })?;
        Ok(Api { client, url, channel })
    }

    /// The token that names the channel.
    pub fn channel_token(&self) -> &str {
        &self.channel.channel_token
    }

    /// Asks for something, and changes nothing.
    pub async fn query<T>(&self, document: &str, variables: Value) -> Result<T, RequestFailure>
    where
        T: DeserializeOwned,
    {
        self.send(document, variables, Repeat::Harmless).await
    }

    /// Changes something. An unknown outcome is looked up in the next step.
    pub async fn mutate<T>(&self, document: &str, variables: Value) -> Result<T, RequestFailure>
    where
        T: DeserializeOwned,
    {
        self.send(document, variables, Repeat::AfterALook).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        document: &str,
        variables: Value,
        repeat: Repeat,
    ) -> Result<T, RequestFailure> {
        let refused = |why: &str| RequestFailure::Unanswered(RemoteError::Refused(why.to_owned()));
        let channel = HeaderValue::from_str(self.channel_token())
            .map_err(|_| refused("The token of the channel has characters that no header can."))?;
        let token = self.channel.admin_token.as_str();
        let body = json!({"query": document, "variables": variables});
        let request = self.client.post(self.url.clone()).timeout(WITHIN);
        let request = request.header("vendure-token", channel).json(&body);
        // An API key is `<id>:<secret>`. The token of a session is hexadecimal.
        let request = if token.contains(':') {
            let mut key = HeaderValue::from_str(token)
                .map_err(|_| refused("The API key has characters that no header can."))?;
            key.set_sensitive(true);
            request.header("vendure-api-key", key)
        } else {
            request.bearer_auth(token)
        };
        let http = Http::over(self.client.clone(), "The shop");
        let answer = http.send(request, repeat).await.map_err(RequestFailure::Unanswered)?;
        let Ok(body) = serde_json::from_slice::<GraphQlBody<Value>>(&answer.body) else {
            let (status, said) = (answer.status, quotation(&answer.body));
            return Err(refused(&format!(
                "There is no admin API of Vendure at the address of the shop, which answers {status}: {said}"
            )));
        };
        if let Some(e) = body.errors.into_iter().next() {
            return Err(RequestFailure::of(e, repeat));
        }
        let data = body.data.unwrap_or_default();
        serde_json::from_value(data).map_err(|e| {
            refused(&format!("The shop's answer is not that of a Vendure that is known here: {e}"))
        })
    }
}

impl RequestFailure {
    fn of(e: GraphQlError, repeat: Repeat) -> RequestFailure {
        let said = ApiError { code: e.extensions.code, message: quotation(e.message.as_bytes()) };
        match said.code.as_str() {
            "INTERNAL_SERVER_ERROR" => RequestFailure::Broken(said, repeat),
            _ => RequestFailure::Refused(said),
        }
    }
}

impl ApiError {
    /// A refusal: what is wrong, and the shop's own words.
    pub fn refused(&self, what_is_wrong: &str) -> RemoteError {
        RemoteError::Refused(format!("{what_is_wrong} {self}"))
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The shop says: {} ({})", self.message, self.code)
    }
}

impl From<RequestFailure> for RemoteError {
    fn from(failure: RequestFailure) -> RemoteError {
        let said = match failure {
            RequestFailure::Refused(said) => said,
            RequestFailure::Broken(said, Repeat::AfterALook) => {
                return RemoteError::Unclear(said.to_string());
            }
            RequestFailure::Broken(said, Repeat::Harmless) => {
                return RemoteError::Busy { why: said.to_string(), after: PAUSE };
            }
            RequestFailure::Unanswered(e) => return e,
        };
        match said.code.as_str() {
            "FORBIDDEN" => said.refused(
                "The shop does not accept the admin token for this channel: it is wrong or has \
                 ended, or a permission is missing.",
            ),
            "CHANNEL_NOT_FOUND" => said.refused("The shop has no channel with this token."),
            _ => RemoteError::Refused(said.to_string()),
        }
    }
}
