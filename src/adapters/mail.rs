//! Sends mail through a mail server, or writes it to the log if none is configured. Nobody gets more than a few
//! mails an hour, whoever makes the service send them.

use actors::ports::{PortError, mail::Mail};
use async_trait::async_trait;
use contract::Email;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor, message::Mailbox};
use std::{num::NonZeroU32, sync::Arc, time::Duration};
use tokio::sync::Semaphore;

const TIME_LIMIT: Duration = Duration::from_secs(20);
/// How many mails one recipient gets within an hour.
const TO_ONE: u32 = 20;
/// With more recipients than this, those who got none for an hour are forgotten.
const MOST_COUNTED: usize = 10_000;
/// How many mails are under way to the mail server, or wait for a connection to it.
const UNDER_WAY: usize = 1_000;

/// Another adapter, with these limits.
struct Limited<M> {
    inner: M,
    recipients: DefaultKeyedRateLimiter<String>,
    places: Semaphore,
}

struct Smtp {
    server: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

/// No mail server. The operator reads the log and passes the mail on.
struct Log;

/// The adapter for this configuration.
pub fn mail(url: Option<&str>, from: &str) -> Result<Arc<dyn Mail>, String> {
    let Some(url) = url else { return Ok(Arc::new(Limited::new(Log))) };
    let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
        .map_err(|e| format!("SVC_MAIL_URL: {e}"))?;
    let from = from.parse().map_err(|e| format!("SVC_MAIL_FROM: {e}"))?;
    Ok(Arc::new(Limited::new(Smtp { server: server.timeout(Some(TIME_LIMIT)).build(), from })))
}

impl<M> Limited<M> {
    fn new(inner: M) -> Self {
        let recipients =
            RateLimiter::keyed(Quota::per_hour(NonZeroU32::new(TO_ONE).unwrap_or(NonZeroU32::MIN)));
        Limited { inner, recipients, places: Semaphore::new(UNDER_WAY) }
    }
}

#[async_trait]
impl<M: Mail> Mail for Limited<M> {
    async fn send(&self, to: &Email, subject: &str, text: &str) -> Result<(), PortError> {
        let Ok(_place) = self.places.try_acquire() else {
            return Err(PortError("too many mails wait for the mail server".into()));
        };
        if self.recipients.len() > MOST_COUNTED {
            self.recipients.retain_recent();
        }
        if self.recipients.check_key(&to.key()).is_err() {
            // No error: the sender would try again.
            tracing::warn!(%to, subject, "a mail was not sent: its recipient got {TO_ONE} within an hour");
            return Ok(());
        }
        self.inner.send(to, subject, text).await
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Default)]
    struct Counts(AtomicU32);

    #[async_trait]
    impl Mail for Counts {
        async fn send(&self, _: &Email, _: &str, _: &str) -> Result<(), PortError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_recipient_gets_twenty_mails_an_hour_and_others_get_theirs() {
        let mail = Limited::new(Counts::default());
        let sent = || mail.inner.0.load(Ordering::Relaxed);
        for spelling in ["ada@example.com", "Ada@Example.com"] {
            for _ in 0..15 {
                mail.send(&spelling.parse().unwrap(), "Hello", "").await.unwrap();
            }
        }
        assert_eq!(sent(), 20);
        mail.send(&"bob@example.com".parse().unwrap(), "Hello", "").await.unwrap();
        assert_eq!(sent(), 21);
    }
}
