//! Signing in: sessions, and the proof of a password.

use super::{account_of, view};
use crate::{
    call::{
        context::Call,
        lockout::{Guess, Guesser},
        platform::Platform,
        rate_limit::{network, site},
    },
    kinds::people::accounts::{
        Accounts, Command, Session,
        session::{self, digest, keyed_digest},
    },
    ports::PortError,
};
use contract::{
    Email, Fault, Password, PasswordAttempt, Serves, UserId,
    authentication::{LoginWithEmail, SignedIn},
};

/// A new session of the account: its token, the digest of the token, and the session.
pub(super) fn begin_session(
    cx: &Call,
    user: UserId,
    epoch: u32,
) -> Result<(String, String, Session), Fault> {
    let random = &cx.world.ports.random;
    let token = random.session_token().map_err(|e| internal(&e))?;
    let session = Session::begin(random.id(cx.now), user, epoch, cx.now, cx.user_agent.clone());
    let key = digest(&token);
    Ok((token, key, session))
}

pub(super) async fn hash_password(cx: &Call, password: Password) -> Result<String, Fault> {
    cx.world.ports.passwords.hash(cx.tenant(), password).await.map_err(|e| busy(&e))
}

/// Whether the password has this hash. A wrong password counts as a failed guess.
pub(super) async fn verify_password(
    cx: &Call,
    guess: Guess<'_>,
    password: PasswordAttempt,
    hash: Option<String>,
) -> Result<bool, Fault> {
    match cx.world.ports.passwords.verify(cx.tenant(), password, hash).await {
        Ok(true) => {
            guess.was_right();
            Ok(true)
        }
        Ok(false) => Ok(false),
        Err(e) => {
            guess.was_none();
            Err(busy(&e))
        }
    }
}

/// The keyed digest under which an account remembers the caller's address.
pub(super) fn address_digest(platform: &Platform, user: UserId, cx: &Call) -> String {
    let text = format!("address\n{user}\n{}", network(cx.address));
    keyed_digest(&platform.settings.signing_key, &text)
}

pub(super) fn internal(e: &dyn std::fmt::Display) -> Fault {
    tracing::error!(error = %e, "a secret cannot be made");
    Fault::Internal
}

fn busy(e: &PortError) -> Fault {
    tracing::warn!(error = %e, "a password was not hashed");
    Fault::Busy
}

impl Serves<LoginWithEmail> for Platform {
    async fn serve(&self, cx: &Call, p: LoginWithEmail) -> Result<SignedIn, Fault> {
        let email: Email = p.email.parse().map_err(|_| Fault::BadCredentials)?;
        let found = account_of(&self.world, &email)?;
        let is_known = found.as_ref().is_some_and(|(user, account)| {
            account.known_addresses.contains(&address_digest(self, *user, cx))
        });
        let by = match is_known {
            true => Guesser::Known(network(cx.address)),
            false => Guesser::Stranger(site(cx.address)),
        };
        let guess = self.lockout.begin(&email.key(), by).await?;
        let hash = found.as_ref().map(|(_, account)| account.password_hash.clone());
        let right = verify_password(cx, guess, p.password, hash).await?;
        let Some((user, account)) = found.filter(|_| right) else {
            return Err(Fault::BadCredentials);
        };
        let (session_token, key, session) = begin_session(cx, user, account.epoch)?;
        let expires_at = session.expires_at;
        let platform = self.clone();
        let command = Command::SignIn { session, key, address: address_digest(self, user, cx) };
        let signed_in = cx.to::<Accounts>(user).change(command, move |account| {
            let user = view(&platform, user, account)?;
            Ok(SignedIn { user, session_token: session_token.clone(), expires_at })
        });
        let signed_in = signed_in.await?;
        session::end_surplus(&self.world.store, user).await;
        Ok(signed_in)
    }
}
