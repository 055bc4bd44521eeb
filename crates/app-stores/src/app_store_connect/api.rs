//! Requests to the App Store Connect API.

use super::{credentials::SignedTokens, refusal::AppleRefusal};
use crate::{AppStoreConnectKey, RemoteError};
use remote::{Http, RemoteResponse, Repeat};
use reqwest::{Method, Url, redirect::Policy};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// Apple's address of the App Store Connect API.
pub const ADDRESS: &str = "https://api.appstoreconnect.apple.com";
/// How long a part of a file may take: a step may take two minutes.
const PART_WITHIN: Duration = Duration::from_secs(110);

/// The App Store Connect API at an address.
pub(crate) struct Api {
    http: Http,
    /// Sends parts of files to the addresses that Apple dictates, with nothing of our own.
    parts: reqwest::Client,
    address: Url,
    tokens: SignedTokens,
}

/// A request with the path and the query that Apple's description has.
pub(crate) struct AppleRequest {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
}

impl AppleRequest {
    fn new(method: Method, path: impl Into<String>, body: Option<Value>) -> AppleRequest {
        AppleRequest { method, path: path.into(), query: Vec::new(), body }
    }

    pub fn get(path: impl Into<String>) -> AppleRequest {
        AppleRequest::new(Method::GET, path, None)
    }

    pub fn post(path: impl Into<String>, body: Value) -> AppleRequest {
        AppleRequest::new(Method::POST, path, Some(body))
    }

    pub fn patch(path: impl Into<String>, body: Value) -> AppleRequest {
        AppleRequest::new(Method::PATCH, path, Some(body))
    }

    pub fn delete(path: impl Into<String>) -> AppleRequest {
        AppleRequest::new(Method::DELETE, path, None)
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> AppleRequest {
        self.query.push((name, value.into()));
        self
    }
}

impl Api {
    /// The error says why the address cannot be used.
    pub fn new(address: &str) -> Result<Api, String> {
        let url = Url::parse(address).map_err(|e| format!("the address {address}: {e}"))?;
        if !matches!(url.scheme(), "https" | "http") || url.cannot_be_a_base() {
            return Err(format!("the address {address} is not one of the web"));
        }
        let parts = reqwest::Client::builder()
            .timeout(PART_WITHIN)
            .connect_timeout(Duration::from_secs(10))
            .redirect(Policy::none())
            .build()
            .map_err(|e| format!("the client for uploads to Apple: {e}"))?;
        Ok(Api { http: Http::new("Apple")?, parts, address: url, tokens: SignedTokens::default() })
    }

    /// The API as it is for this key.
    pub fn with<'a>(&'a self, key: &'a AppStoreConnectKey) -> KeyedApi<'a> {
        KeyedApi { api: self, key }
    }

    /// Whether a part of a file may be sent to this address.
    fn may_send_to(&self, url: &Url) -> bool {
        let is_safe =
            url.scheme() == "https" || url.scheme() == "http" && self.address.scheme() == "http";
        is_safe && url.username().is_empty() && url.password().is_none()
    }
}

/// Signs each request with one key.
#[derive(Clone, Copy)]
pub(crate) struct KeyedApi<'a> {
    api: &'a Api,
    key: &'a AppStoreConnectKey,
}

impl KeyedApi<'_> {
    /// Sends a request once. The outer error means that there is no answer about what was asked, or
    /// that the key does not permit it.
    pub async fn ask(
        &self,
        request: AppleRequest,
    ) -> Result<Result<RemoteResponse, AppleRefusal>, RemoteError> {
        let AppleRequest { method, path, query, body } = request;
        let mut url = self.api.address.clone();
        url.set_path(&path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(&query);
        }
        let repeat = match method {
            Method::GET => Repeat::Harmless,
            _ => Repeat::AfterALook,
        };
        let mut sent = self.api.http.client().request(method, url);
        if let Some(body) = &body {
            sent = sent.json(body);
        }
        let sent = sent.bearer_auth(self.api.tokens.of(self.key)?);
        let answer = self.api.http.send(sent, repeat).await?;
        if answer.is_ok() {
            return Ok(Ok(answer));
        }
        let refusal = AppleRefusal::read(answer.status, &answer.body);
        if answer.status == 401 {
            self.api.tokens.forget(self.key);
        }
        match answer.status {
            401 | 403 => Err(RemoteError::Refused(refusal.text())),
            _ => Ok(Err(refusal)),
        }
    }

    /// Reads a document. `None`: Apple has none (404).
    pub async fn find<T: DeserializeOwned>(
        &self,
        request: AppleRequest,
    ) -> Result<Option<T>, RemoteError> {
        match self.ask(request).await? {
            Ok(answer) => answer.read().map(Some),
            Err(refusal) if refusal.is_absence() => Ok(None),
            Err(refusal) => Err(refused(&refusal)),
        }
    }

    /// Reads the document of an answer that must be a success.
    pub async fn read<T: DeserializeOwned>(&self, request: AppleRequest) -> Result<T, RemoteError> {
        match self.ask(request).await? {
            Ok(answer) => answer.read(),
            Err(refusal) => Err(refused(&refusal)),
        }
    }

    /// Changes something. The document of the answer does not count.
    pub async fn change(&self, request: AppleRequest) -> Result<(), RemoteError> {
        match self.ask(request).await? {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refused(&refusal)),
        }
    }

    /// Sends a part of a file as Apple dictates it. `false`: the place for the part refuses it, as it
    /// does after a while.
    pub async fn send_part(
        &self,
        method: &str,
        url: &str,
        headers: &[(String, String)],
        bytes: bytes::Bytes,
    ) -> Result<bool, RemoteError> {
        let unusable = |what: &str| {
            RemoteError::Refused(format!("Apple wants a part of the file sent {what}. Nothing is."))
        };
        let url = Url::parse(url).map_err(|_| unusable("to an address that is none"))?;
        if !self.api.may_send_to(&url) {
            return Err(unusable("to an address that is not https"));
        }
        let method = method.parse().map_err(|_| unusable("with a method that is none"))?;
        let mut sent = self.api.parts.request(method, url).body(bytes);
        for (name, value) in headers {
            sent = sent.header(name, value);
        }
        // The same part may be sent again.
        Ok(self.api.http.send(sent, Repeat::Harmless).await?.is_ok())
    }
}

pub(super) fn refused(refusal: &AppleRefusal) -> RemoteError {
    RemoteError::Refused(refusal.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_to_safe_addresses_only() {
        let may =
            |base: &str, to: &str| Api::new(base).unwrap().may_send_to(&Url::parse(to).unwrap());
        assert!(may(ADDRESS, "https://storage.example.com/part?signed=1"));
        assert!(!may(ADDRESS, "http://storage.example.com/part"));
        assert!(!may(ADDRESS, "https://user:word@storage.example.com/part"));
        assert!(!may(ADDRESS, "file:///etc/passwd"));
        assert!(may("http://127.0.0.1:1", "http://127.0.0.1:2/part"));
        assert!(Api::new("ftp://example.com").is_err());
    }
}
