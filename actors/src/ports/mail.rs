//! Mail.

use super::PortError;
use async_trait::async_trait;
use contract::Email;

#[async_trait]
pub trait Mail: Send + Sync {
    /// Sends a message. Without a mail server, the adapter logs the message for the operator.
    async fn send(&self, to: &Email, subject: &str, text: &str) -> Result<(), PortError>;
}
