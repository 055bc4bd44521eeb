//! New passwords: by the current one, or by a mail.

use super::{
    account_of,
    sign_in::{begin_session, hash_password, internal, verify_password},
};
use crate::{
    call::{context::Call, lockout::Guesser, platform::Platform},
    kinds::people::accounts::{
        AccountClaim, Accounts, Cause, Command, Reset,
        rules::{RESET_LIFETIME, no_such_reset},
        session::{self, digest},
    },
};
use contract::{
    Email, Fault, Password, PasswordAttempt, Serves,
    authentication::{ChangePassword, Empty, NewSession, RequestPasswordReset, ResetPassword},
};
use std::time::Duration;

/// What the mail about a new password says if it ended all that acts for the account.
const REACH_ENDED: &str = "\n\nSo have all deploy tokens of the account. The trusted publishers that it added are removed, and the webhooks that it made are disabled: look at them, add and enable those that are yours, and look at the members of your organizations.";

/// For how long a sign-in proves who the caller is, as the current password does.
const FRESH_SIGN_IN: Duration = Duration::from_secs(10 * 60);

impl Serves<ChangePassword> for Platform {
    async fn serve(&self, cx: &Call, p: ChangePassword) -> Result<NewSession, Fault> {
        let seen = prove_identity(self, cx, Some(p.current_password)).await?;
        replace_password(self, cx, seen, p.new_password, p.revoke_tokens).await
    }
}

/// Whether the caller may replace the password: the current one proves it, or a session that
/// began a moment ago. Whoever has only found a session of somebody else has neither. Returns
/// the hash of the current password.
pub async fn prove_identity(
    platform: &Platform,
    cx: &Call,
    current: Option<PasswordAttempt>,
) -> Result<String, Fault> {
    let (_, session) = cx.session()?;
    let user = cx.user()?;
    let seen = user.account.password_hash.clone();
    let Some(current) = current else {
        if cx.now.since(session.created_at) < FRESH_SIGN_IN {
            return Ok(seen);
        }
        return Err(Fault::invalid(
            "currentPassword",
            "is needed, because you signed in more than ten minutes ago; send it, or sign in again",
        ));
    };
    // This counts apart from sign-ins: the failed sign-ins of others must not keep the user
    // from changing the password.
    let guess = platform.lockout.begin(&user.id.to_string(), Guesser::Session).await?;
    match verify_password(cx, guess, current, Some(seen.clone())).await? {
        true => Ok(seen),
        false => Err(Fault::WrongCurrentPassword),
    }
}

/// Tells a user by mail that the password was replaced. The call does not wait for it.
fn tell_of_new_password(platform: &Platform, email: &Email, reach_ended: bool) {
    let ended = if reach_ended { REACH_ENDED } else { "" };
    let text = format!(
        "The password of your account at {} was replaced, and all sessions have ended.{ended}\n\nIf it was not you, ask for a new one with “Forgot password” or requestPasswordReset: that ends all sessions, and all that acts for your account.",
        platform.settings.api_url
    );
    platform.send_mail(email, "Your password was replaced", text);
}

/// Replaces the password with the hash `seen`, ends all sessions, and begins a new session.
pub async fn replace_password(
    platform: &Platform,
    cx: &Call,
    seen: String,
    password: Password,
    revoke_tokens: bool,
) -> Result<NewSession, Fault> {
    let user = cx.user()?;
    let password_hash = hash_password(cx, password).await?;
    let (session_token, key, session) = begin_session(cx, user.id, user.account.state.epoch)?;
    let expires_at = session.expires_at;
    let session = (key, session);
    let end_reach = revoke_tokens.then(|| cause(cx));
    let command = Command::ChangePassword { password_hash, seen, session, end_reach };
    let reply = cx.to::<Accounts>(user.id).change(command, move |_| {
        Ok(NewSession { session_token: session_token.clone(), expires_at })
    });
    let reply = reply.await?;
    tell_of_new_password(platform, &user.account.email, revoke_tokens);
    session::end_surplus(&platform.world.store, user.id).await;
    Ok(reply)
}

impl Serves<RequestPasswordReset> for Platform {
    async fn serve(&self, cx: &Call, p: RequestPasswordReset) -> Result<Empty, Fault> {
        // The caller does not wait: the time of this work would tell whether there is an account.
        cx.do_once(async {
            let (platform, cx) = (self.clone(), Call { idempotency: None, ..cx.clone() });
            actix_rt::spawn(async move {
                if let Err(fault) = begin_reset(&platform, &cx, &p.email).await {
                    tracing::warn!(error = %fault, "a password reset was not begun");
                }
            });
            Ok(Empty {})
        })
        .await
    }
}

/// Mails a reset token, unless the account has the most password resets under way.
async fn begin_reset(platform: &Platform, cx: &Call, email: &Email) -> Result<(), Fault> {
    let Some((user, _)) = account_of(&platform.world, email)? else { return Ok(()) };
    let token = platform.world.ports.random.secret("", 40).map_err(|e| internal(&e))?;
    let digest = digest(&token);
    let reset = Reset { digest: digest.clone(), expires_at: cx.now + RESET_LIFETIME };
    let command = Command::BeginReset(reset);
    let account = cx.to::<Accounts>(user).change(command, |a| Ok(a.clone())).await?;
    if !account.resets.iter().any(|reset| reset.digest == digest) {
        tracing::info!(%user, "no mail was sent: too many password resets are under way");
        return Ok(());
    }
    let how = match platform.settings.dashboard_link("/reset-password", &token) {
        Some(link) => format!("Set one within an hour at this link:\n\n{link}"),
        None => format!(
            "Set one within an hour: give the token below on the page “New password” of its \
             dashboard, whose address its operator knows, or enter\n\n\
             svc call resetPassword --api-url {} -p newPassword=… -p token=…\n\n{token}",
            platform.settings.api_url
        ),
    };
    let text = format!(
        "Somebody asked for a new password for your account at {}.\n\n{how}\n\nIf it was not you, do nothing.",
        platform.settings.api_url
    );
    platform.send_mail(&account.email, "Your new password", text);
    Ok(())
}

impl Serves<ResetPassword> for Platform {
    async fn serve(&self, cx: &Call, p: ResetPassword) -> Result<Empty, Fault> {
        if p.token.len() > 64 {
            return Err(no_such_reset());
        }
        let digest = digest(&p.token);
        let membership = self.world.store.held_by(&AccountClaim::reset(&digest))?;
        let (user, account) = membership.ok_or_else(no_such_reset)?;
        let password_hash = hash_password(cx, p.new_password).await?;
        let end_reach = p.revoke_tokens.then(|| cause(cx));
        let command = Command::Reset { password_hash, digest, end_reach };
        let reply = cx.to::<Accounts>(user).change(command, |_| Ok(Empty {})).await?;
        for target in [account.email.key(), user.to_string()] {
            if let Err(fault) = self.lockout.forget(&target).await {
                tracing::warn!(%user, error = %fault, "wrong passwords from before the reset count still");
            }
        }
        tell_of_new_password(self, &account.email, p.revoke_tokens);
        Ok(reply)
    }
}

/// What the audit log says of the work after a call.
fn cause(call: &Call) -> Cause {
    Cause { function: call.function.to_owned(), request_id: call.request_id.to_string() }
}
