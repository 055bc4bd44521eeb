//! Requests to a service, and what it means when there is no answer about what was asked.

use crate::{NoAddress, RemoteError};
use bytes::{Bytes, BytesMut};
use reqwest::{
    RequestBuilder, StatusCode,
    header::{HeaderMap, RETRY_AFTER},
};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// How long a service may take to answer, for requests that say nothing else.
pub const WITHIN: Duration = Duration::from_secs(20);
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);
/// The largest answer, in bytes. The longest lists of app stores have some hundred kilobytes.
const LARGEST_ANSWER: usize = 8 << 20;
/// The pause after an answer that names none.
const PAUSE: Duration = Duration::from_secs(60);
/// The pause after a failure of the service or of the network.
const SHORT_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// The longest quotation of an answer, in characters.
const LONGEST_QUOTATION: usize = 500;

/// Opens connections to one service.
#[derive(Clone)]
pub struct Http {
    client: reqwest::Client,
    /// The name of the service in sentences.
    service: &'static str,
}

/// Whether a request may be sent again when nobody knows whether it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// It changes nothing, or doing it twice is the same as doing it once.
    Harmless,
    /// It must be looked up first.
    AfterALook,
}

/// An answer about what was asked: any status but 408, 429 and 5xx.
#[derive(Debug, Clone)]
pub struct RemoteResponse {
    /// Never 408, 429 or 5xx.
    pub status: u16,
    /// As received.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Http {
    /// Redirections are not followed: a service that moved says so in the answer.
    pub fn new(service: &'static str) -> Result<Http, String> {
        let client = reqwest::Client::builder()
            .timeout(WITHIN)
            .connect_timeout(CONNECTED_WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent("svc")
            .build()
            .map_err(|e| format!("the client for {service}: {e}"))?;
        Ok(Http { client, service })
    }

    /// The connections of another client. Its requests must have a time limit of their own.
    pub fn over(client: reqwest::Client, service: &'static str) -> Http {
        Http { client, service }
    }

    /// The same connections, for a service with another name in sentences.
    pub fn named(&self, service: &'static str) -> Http {
        Http { client: self.client.clone(), service }
    }

    /// To build a request with; [`Http::send`] sends it.
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Sends a request once. An error means that there is no answer about what was asked.
    pub async fn send(
        &self,
        request: RequestBuilder,
        repeat: Repeat,
    ) -> Result<RemoteResponse, RemoteError> {
        let unanswered = |e: reqwest::Error| {
            let why = format!("{} does not answer: {}", self.service, causes(&e.without_url()));
            match repeat {
                Repeat::AfterALook => RemoteError::Unclear(why),
                Repeat::Harmless => RemoteError::Busy { why, after: SHORT_PAUSE },
            }
        };
        let mut answer = request.send().await.map_err(|e| {
            if let Some(inside @ NoAddress::Internal { .. }) = NoAddress::among(&e) {
                return RemoteError::Refused(inside.to_string());
            }
            if !e.is_connect() {
                return unanswered(e);
            }
            let why = format!("{} cannot be reached: {}", self.service, causes(&e.without_url()));
            RemoteError::Busy { why, after: SHORT_PAUSE }
        })?;
        let mut body = BytesMut::new();
        while let Some(piece) = answer.chunk().await.map_err(unanswered)? {
            body.extend_from_slice(&piece);
            if body.len() > LARGEST_ANSWER {
                return Err(RemoteError::Refused(format!(
                    "the answer of {} is too large",
                    self.service
                )));
            }
        }
        match judge(self.service, repeat, answer.status(), answer.headers(), &body) {
            Some(error) => Err(error),
            None => Ok(RemoteResponse {
                status: answer.status().as_u16(),
                headers: answer.headers().clone(),
                body: body.freeze(),
            }),
        }
    }
}

impl RemoteResponse {
    /// Whether the service did what was asked.
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The JSON of the body.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, RemoteError> {
        serde_json::from_slice(&self.body)
            .map_err(|e| RemoteError::Refused(format!("the answer cannot be read: {e}")))
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The error of an answer that says nothing about what was asked; `None` if it does.
fn judge(
    service: &str,
    repeat: Repeat,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Option<RemoteError> {
    let named = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let after = |usual| {
        named.map_or(usual, Duration::from_secs).clamp(Duration::from_secs(1), LONGEST_PAUSE)
    };
    let why = format!("{service} answers {}: {}", status.as_u16(), quotation(body));
    match (status.as_u16(), repeat) {
        (429, _) => Some(RemoteError::Busy { why, after: after(PAUSE) }),
        (408 | 500.., Repeat::AfterALook) => Some(RemoteError::Unclear(why)),
        (408 | 500.., Repeat::Harmless) => {
            Some(RemoteError::Busy { why, after: after(SHORT_PAUSE) })
        }
        _ => None,
    }
}

/// The beginning of an answer on one line.
pub fn quotation(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(LONGEST_QUOTATION).collect()
}

fn causes(e: &dyn std::error::Error) -> String {
    let mut why = e.to_string();
    let mut cause = e.source();
    while let Some(e) = cause {
        why = format!("{why}: {e}");
        cause = e.source();
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    #[test]
    fn an_answer_about_nothing_is_told_from_one_about_what_was_asked() {
        let judged = |repeat, status: u16, pause: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.extend(pause.map(|pause| (RETRY_AFTER, HeaderValue::from_static(pause))));
            judge(
                "The store",
                repeat,
                StatusCode::from_u16(status).unwrap(),
                &headers,
                b"no\n wonder",
            )
        };
        let busy = |status: u16, seconds| {
            let why = format!("The store answers {status}: no wonder");
            Some(RemoteError::Busy { why, after: Duration::from_secs(seconds) })
        };
        for repeat in [Repeat::Harmless, Repeat::AfterALook] {
            assert_eq!(judged(repeat, 429, Some("7")), busy(429, 7));
            assert_eq!(judged(repeat, 429, None), busy(429, 60));
            assert_eq!(judged(repeat, 429, Some("999999")), busy(429, 3600));
            for clear in [200, 204, 308, 400, 401, 403, 404, 409, 410, 422] {
                assert_eq!(judged(repeat, clear, None), None);
            }
        }
        assert_eq!(judged(Repeat::Harmless, 503, Some("2")), busy(503, 2));
        assert_eq!(judged(Repeat::Harmless, 500, None), busy(500, 10));
        for unclear in [408, 500, 503] {
            let judged = judged(Repeat::AfterALook, unclear, None);
            assert!(matches!(judged, Some(RemoteError::Unclear(_))), "{judged:?}");
        }
    }
}
