//! Sends mail through a mail server, or writes it to the log if none is configured.

use actors::ports::{PortError, mail::Mail};
use async_trait::async_trait;
use contract::Email;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor, message::Mailbox};
use std::{sync::Arc, time::Duration};

const TIME_LIMIT: Duration = Duration::from_secs(20);

struct Smtp {
    server: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

/// No mail server. The operator reads the log and passes the mail on.
struct Log;

/// The adapter for this configuration.
pub fn mail(url: Option<&str>, from: &str) -> Result<Arc<dyn Mail>, String> {
    let Some(url) = url else { return Ok(Arc::new(Log)) };
    let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
        .map_err(|e| format!("SVC_MAIL_URL: {e}"))?;
    let from = from.parse().map_err(|e| format!("SVC_MAIL_FROM: {e}"))?;
    Ok(Arc::new(Smtp { server: server.timeout(Some(TIME_LIMIT)).build(), from }))
}

#[async_trait]
impl Mail for Smtp {
    async fn send(&self, to: &Email, subject: &str, text: &str) -> Result<(), PortError> {
        let failed = |e: &dyn std::fmt::Display| PortError(e.to_string());
        let to = to.as_str().parse().map_err(|e: lettre::address::AddressError| failed(&e))?;
        let message =
            Message::builder().from(self.from.clone()).to(Mailbox::new(None, to)).subject(subject);
        let message = message.body(text.to_owned()).map_err(|e| failed(&e))?;
        tokio::time::timeout(TIME_LIMIT, self.server.send(message))
            .await
            .map_err(|e| failed(&e))?
            .map(|_| ())
            .map_err(|e| failed(&e))
    }
}

#[async_trait]
impl Mail for Log {
    async fn send(&self, to: &Email, subject: &str, text: &str) -> Result<(), PortError> {
        tracing::warn!(%to, subject, text, "no mail server is configured; pass this mail on to its recipient");
        Ok(())
    }
}
