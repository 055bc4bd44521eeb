//! The receivers of webhooks.

use async_trait::async_trait;
use contract::WebUrl;
use std::time::Duration;

/// Sends events to addresses on the internet.
#[async_trait]
pub trait Receivers: Send + Sync {
    /// Refuses an address that no request can go to, whatever its name resolves to.
    fn check(&self, url: &WebUrl) -> Result<(), String>;
    /// Makes one attempt, which takes at most 15 seconds. The body is JSON. Connects only to
    /// addresses that are on the public internet, or that an operator allows.
    async fn post(
        &self,
        url: &WebUrl,
        headers: Vec<(&'static str, String)>,
        body: String,
    ) -> Posted;
}

/// The outcome of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    pub took: Duration,
    /// The error says why there is no reply, in words for people.
    pub result: Result<Answered, String>,
}

/// The reply of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub status: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The first 1024 bytes of the body, as text.
    pub reply: String,
}
