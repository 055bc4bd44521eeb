//! Mails to people about what was done for them.

use crate::call::platform::Platform;
use contract::Email;

impl Platform {
    /// Sends a mail. The call does not wait for it.
    pub(super) fn send_mail(&self, email: &Email, subject: &'static str, text: String) {
        let (mail, email) = (self.world.ports.mail.clone(), email.clone());
        actix_rt::spawn(async move {
            if let Err(e) = mail.send(&email, subject, &text).await {
                tracing::error!(error = %e, subject, "a mail was not sent");
            }
        });
    }
}
