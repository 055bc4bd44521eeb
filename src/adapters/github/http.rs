//! Requests to GitHub's API, and what its answers mean.
//!
//! Sources: "Rate limits for the REST API" and "Best practices for using the REST API" of GitHub.

use actors::ports::ci::CiError;
use contract::Timestamp;
use reqwest::{
    Method, StatusCode,
    header::{self, HeaderMap},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, UNIX_EPOCH},
};

/// How long GitHub may take to answer.
const WITHIN: Duration = Duration::from_secs(20);
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);
/// The largest answer, in bytes.
const LARGEST_ANSWER: usize = 4 << 20;
const VERSION: &str = "2022-11-28";
const JSON: &str = "application/vnd.github+json";
/// The pause after a refusal that names none. GitHub asks for a minute at least.
const PAUSE: Duration = Duration::from_secs(60);
/// The longest pause. A limit that counts by the hour is over then.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// The longest quotation of an answer, in characters.
const LONGEST_MESSAGE: usize = 300;

pub(super) struct Api {
    http: reqwest::Client,
    /// Without a slash at the end.
    url: String,
    /// Until when nothing is asked about the repositories of an owner: GitHub wants a pause.
    paused: Mutex<HashMap<String, Instant>>,
}

#[derive(Clone)]
pub(super) struct GithubRequest {
    /// It must not be done twice.
    once: bool,
    path: String,
    method: Method,
    body: Option<Value>,
    tag: Option<String>,
}

impl GithubRequest {
    pub fn get(path: String) -> GithubRequest {
        GithubRequest { once: false, path, method: Method::GET, body: None, tag: None }
    }

    pub fn post(path: String, body: Option<Value>) -> GithubRequest {
        GithubRequest { method: Method::POST, body, ..GithubRequest::get(path) }
    }

    /// It must not be done twice: without a clear answer, it may have been done.
    pub fn once(self) -> GithubRequest {
        GithubRequest { once: true, ..self }
    }

    /// The owner of the repository that it is about. Limits count by installation, and an owner has
    /// one.
    fn owner(&self) -> &str {
        self.path
            .strip_prefix("/repos/")
            .and_then(|path| path.split('/').next())
            .unwrap_or_default()
    }

    /// The answer is 304 if it would have this tag.
    pub fn unless(self, tag: Option<&str>) -> GithubRequest {
        GithubRequest { tag: tag.map(str::to_owned), ..self }
    }
}

/// An answer with a status that says that GitHub understood.
#[derive(Debug)]
pub(super) struct GithubResponse {
    pub status: u16,
    pub tag: Option<String>,
    /// The clock of GitHub.
    pub date: Option<Timestamp>,
    body: Vec<u8>,
}

impl Api {
    pub fn new(url: &str) -> Result<Api, String> {
        let http = reqwest::Client::builder()
            .timeout(WITHIN)
            .connect_timeout(CONNECTED_WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent("svc")
            .build()
            .map_err(|e| format!("the client for GitHub: {e}"))?;
        Ok(Api { http, url: url.trim_end_matches('/').to_owned(), paused: Mutex::default() })
    }

    /// Sends a request once. An error means that there is no answer about what was asked.
    pub async fn send(
        &self,
        request: &GithubRequest,
        token: &str,
    ) -> Result<GithubResponse, CiError> {
        self.wait_for(request.owner())?;
        let url = format!("{}{}", self.url, request.path);
        let mut sent = self.http.request(request.method.clone(), url);
        if let Some(body) = &request.body {
            sent = sent.json(body);
        }
        sent = sent
            .bearer_auth(token)
            .header(header::ACCEPT, JSON)
            .header("X-GitHub-Api-Version", VERSION);
        if let Some(tag) = &request.tag {
            sent = sent.header(header::IF_NONE_MATCH, tag);
        }
        let unanswered = |e: reqwest::Error| match request.once && !e.is_connect() {
            true => CiError::Unclear(away(&e)),
            false => CiError::Busy { why: away(&e), after: Duration::from_secs(5) },
        };
        let mut answer = sent.send().await.map_err(unanswered)?;
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(unanswered)? {
            body.extend_from_slice(&piece);
            if body.len() > LARGEST_ANSWER {
                return Err(CiError::Refused("GitHub: the answer is too large".into()));
            }
        }
        let (status, headers) = (answer.status(), answer.headers());
        if let Some(after) = limited(status, headers, &body) {
            self.pause(request.owner(), after);
            return Err(CiError::Busy { why: told(status, &body), after });
        }
        if let Some(error) = judge(request.once, status, &body) {
            return Err(error);
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        Ok(GithubResponse {
            status: status.as_u16(),
            tag: text(header::ETAG).map(str::to_owned),
            date: text(header::DATE).and_then(timestamp),
            body,
        })
    }
}

impl Api {
    fn wait_for(&self, owner: &str) -> Result<(), CiError> {
        let paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        let left = paused.get(owner).map(|until| until.saturating_duration_since(Instant::now()));
        match left.filter(|left| !left.is_zero()) {
            Some(after) => Err(CiError::Busy { why: "GitHub asked for a pause".into(), after }),
            None => Ok(()),
        }
    }

    fn pause(&self, owner: &str, after: Duration) {
        let mut paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        paused.retain(|_, until| *until > Instant::now());
        paused.insert(owner.to_owned(), Instant::now() + after);
    }
}

fn away(e: &dyn std::error::Error) -> String {
    let mut why = format!("GitHub does not answer: {e}");
    let mut cause = e.source();
    while let Some(e) = cause {
        why = format!("{why}: {e}");
        cause = e.source();
    }
    why
}

fn timestamp(date: &str) -> Option<Timestamp> {
    let since = httpdate::parse_http_date(date).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?))
}

/// How long GitHub wants a pause; `None` if the answer is about what was asked.
fn limited(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let is_spent = number("x-ratelimit-remaining") == Some(0);
    let is_limited = status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::FORBIDDEN
            && (headers.contains_key(header::RETRY_AFTER)
                || is_spent
                || message(body).to_ascii_lowercase().contains("rate limit"));
    let reset = || {
        let now = headers.get(header::DATE)?.to_str().ok().and_then(timestamp)?;
        let at = number("x-ratelimit-reset").filter(|_| is_spent)?;
        at.checked_sub(u64::try_from(now.as_seconds()).ok()?)
    };
    let after = || number("retry-after").or_else(reset).map_or(PAUSE, Duration::from_secs);
    is_limited.then(|| after().clamp(Duration::from_secs(1), LONGEST_PAUSE))
}

/// The error of an answer that says nothing about what was asked; `None` if it does.
fn judge(once: bool, status: StatusCode, body: &[u8]) -> Option<CiError> {
    let why = || told(status, body);
    match status.as_u16() {
        500.. if once => Some(CiError::Unclear(why())),
        408 | 500.. => Some(CiError::Busy { why: why(), after: Duration::from_secs(10) }),
        // Another change of the same thing was under way.
        409 if once => Some(CiError::Busy { why: why(), after: Duration::from_secs(5) }),
        _ => None,
    }
}

fn told(status: StatusCode, body: &[u8]) -> String {
    format!("GitHub answers {}: {}", status.as_u16(), message(body))
}

/// The sentence of an answer.
fn message(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct ErrorBody {
        message: String,
    }
    let said = serde_json::from_slice::<ErrorBody>(body).map(|said| said.message);
    let said = said.unwrap_or_else(|_| String::from_utf8_lossy(body).into_owned());
    said.chars().filter(|c| !c.is_control()).take(LONGEST_MESSAGE).collect()
}

/// The error for an answer that is not what the API description says.
pub(super) fn unreadable(why: &str) -> CiError {
    CiError::Refused(format!("the answer of GitHub cannot be read: {why}"))
}

impl GithubResponse {
    /// The JSON of a successful answer.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, CiError> {
        self.accepted()?;
        serde_json::from_slice(&self.body).map_err(|e| unreadable(&e.to_string()))
    }

    /// Whether GitHub did what was asked.
    pub fn accepted(&self) -> Result<(), CiError> {
        if (200..300).contains(&self.status) {
            return Ok(());
        }
        Err(CiError::Refused(format!("GitHub answers {}: {}", self.status, message(&self.body))))
    }

    pub fn mentions(&self, word: &str) -> bool {
        String::from_utf8_lossy(&self.body).contains(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(once: bool, status: u16, headers: &[(&str, &str)], body: &str) -> Option<CiError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = header::HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.insert(name, value.parse().unwrap());
        }
        let (status, body) = (StatusCode::from_u16(status).unwrap(), body.as_bytes());
        let limited = limited(status, &map, body);
        let busy = limited.map(|after| CiError::Busy { why: told(status, body), after });
        busy.or(judge(once, status, body))
    }

    fn pause(error: Option<CiError>) -> Option<u64> {
        match error {
            Some(CiError::Busy { after, .. }) => Some(after.as_secs()),
            _ => None,
        }
    }

    #[test]
    fn a_limit_names_its_pause() {
        let secondary = r#"{"message": "You have exceeded a secondary rate limit."}"#;
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let spent = [date, ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "784111817")];
        for once in [true, false] {
            assert_eq!(pause(judged(once, 429, &[("retry-after", "7")], "")), Some(7));
            assert_eq!(pause(judged(once, 403, &[("retry-after", "7")], "")), Some(7));
            assert_eq!(pause(judged(once, 403, &[], secondary)), Some(60));
            assert_eq!(pause(judged(once, 403, &spent, "")), Some(40));
            assert_eq!(pause(judged(once, 429, &[("retry-after", "999999")], "")), Some(3600));
            assert_eq!(judged(once, 403, &[("x-ratelimit-remaining", "9")], "no"), None);
        }
    }

    #[test]
    fn a_change_without_a_clear_answer_may_have_been_done() {
        assert!(matches!(judged(true, 502, &[], "<html>"), Some(CiError::Unclear(_))));
        assert_eq!(pause(judged(false, 502, &[], "")), Some(10));
        assert_eq!(pause(judged(true, 409, &[], "")), Some(5));
        for clear in [200, 204, 304, 401, 404, 422] {
            assert_eq!(judged(true, clear, &[], ""), None);
        }
    }
}
