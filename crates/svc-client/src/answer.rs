//! One request and its answer.

use contract::fault;
use reqwest::{RequestBuilder, header::HeaderMap};
use std::time::Duration;

/// The largest body that is read, in bytes. The longest replies, those with logs, have about 1 MiB.
const LARGEST_BODY: usize = 64 << 20;

/// An HTTP answer, whatever it says.
#[derive(Debug, Clone)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// As received. Those of interest are read by methods.
    pub headers: HeaderMap,
    /// The body. What follows after 64 MiB is cut off.
    pub body: Vec<u8>,
}

/// Sends a request once. An error does not show the address, because a signed address is a
/// credential.
pub async fn send(request: RequestBuilder) -> Result<Response, reqwest::Error> {
    let mut response = request.send().await.map_err(reqwest::Error::without_url)?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(reqwest::Error::without_url)? {
        body.extend_from_slice(&piece);
        if body.len() > LARGEST_BODY {
            body.truncate(LARGEST_BODY);
            break;
        }
    }
    Ok(Response { status, headers, body })
}

impl Response {
    /// Whether the request succeeded.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The text of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The pause that the service asks for, in whole seconds. A date is ignored.
    pub fn retry_after(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.header("retry-after")?.trim().parse().ok()?))
    }

    /// The refusal in the body. `None` if the answer is a success, or not from the service.
    pub fn failure(&self) -> Option<fault::Failure> {
        if self.is_success() {
            return None;
        }
        serde_json::from_slice(&self.body).ok()
    }
}
