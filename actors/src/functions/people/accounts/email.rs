//! Another e-mail for an account: whoever reads its mail confirms it.

use super::{account_of, passwords::prove_identity, sign_in::internal};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        commerce::subscriptions,
        people::accounts::{
            AccountClaim, Accounts, Command, EmailChange, digest,
            rules::{EMAIL_CHANGE_LIFETIME, email_taken, no_such_email_change},
        },
    },
};
use contract::{
    Email, Fault, Serves,
    authentication::{ChangeEmail, ConfirmEmail, Empty},
};

impl Serves<ChangeEmail> for Platform {
    async fn serve(&self, cx: &Call, p: ChangeEmail) -> Result<Empty, Fault> {
        let seen = prove_identity(self, cx, p.current_password).await?;
        let user = cx.user()?;
        let (id, present) = (user.id, user.account.email.clone());
        if p.new_email == present {
            return Err(Fault::invalid("newEmail", "is the e-mail of the account already"));
        }
        if account_of(&self.world, &p.new_email)?.is_some_and(|(owner, _)| owner != id) {
            return Err(email_taken());
        }
        let token = self.world.ports.random.secret("", 40).map_err(|e| internal(&e))?;
        let change = EmailChange {
            email: p.new_email.clone(),
            digest: digest(&token),
            expires_at: cx.now + EMAIL_CHANGE_LIFETIME,
        };
        let command = Command::BeginEmailChange { change, seen };
        let reply = cx.to::<Accounts>(id).change(command, |_| Ok(Empty {})).await?;
        self.ask_to_confirm(&p.new_email, &token);
        self.send_mail(&present, "Another e-mail for your account", format!(
            "Somebody who is signed in to your account at {} wants to give it the e-mail {}. It changes when the mail to that address is answered.\n\nIf it was not you, change your password now: that revokes it, and ends all other sessions.",
            self.settings.api_url, p.new_email
        ));
        Ok(reply)
    }
}

impl Serves<ConfirmEmail> for Platform {
    async fn serve(&self, cx: &Call, p: ConfirmEmail) -> Result<Empty, Fault> {
        if p.token.len() > 64 {
            return Err(no_such_email_change());
        }
        let digest = digest(&p.token);
        let found = self.world.store.held_by(&AccountClaim::email_change(&digest))?;
        let (user, account) = found.ok_or_else(no_such_email_change)?;
        let change = account.email_changes.iter().find(|change| change.digest == digest);
        let new = change.ok_or_else(no_such_email_change)?.email.clone();
        let paid_tier = subscriptions::paid_tier(&self.world, &new)?;
        let command = Command::ConfirmEmail { digest, paid_tier };
        let reply = cx.to::<Accounts>(user).change(command, |_| Ok(Empty {})).await?;
        self.send_mail(&account.email, "The e-mail of your account was changed", format!(
            "The e-mail of your account at {} is {new} from now on. Mails about it go there.\n\nIf it was not you, write to the operator of the service.",
            self.settings.api_url
        ));
        Ok(reply)
    }
}

impl Platform {
    fn ask_to_confirm(&self, email: &Email, token: &str) {
        let how = match self.settings.dashboard_link("/confirm-email", token) {
            Some(link) => format!("Confirm it within an hour at this link:\n\n{link}"),
            None => format!(
                "Confirm it within an hour: give the token below on the page “Confirm your e-mail” of its \
                 dashboard, whose address its operator knows, or enter\n\n\
                 svc call svc_confirmEmail --api-url {} -p token=…\n\n{token}",
                self.settings.api_url
            ),
        };
        let text = format!(
            "Somebody wants to use this e-mail for an account at {}.\n\n{how}\n\nIf it was not you, do nothing.",
            self.settings.api_url
        );
        self.send_mail(email, "Confirm your e-mail", text);
    }
}
