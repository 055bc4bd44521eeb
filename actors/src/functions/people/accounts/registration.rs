//! Who may register, and the accounts that operators make for others.

use super::{
    account_of,
    sign_in::{Person, hash_password, internal, new_registration, register},
    view,
};
use crate::{
    call::{context::Call, platform::Platform},
    functions::people::organizations::is_invited,
    kinds::{
        people::accounts::{Account, Accounts, Reset, rules::taken, session::digest},
        world::World,
    },
};
use contract::{
    Email, Fault, Password, Serves, Timestamp, UserId,
    authentication::{RegisterUser, SignedIn},
    operators::{CreateUser, CreatedUser},
    service::Registration,
};
use std::time::Duration;

/// How long the token for a first password is valid.
const FIRST_PASSWORD_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

fn may_register(
    world: &World,
    email: &Email,
    invitation: Option<&str>,
    now: Timestamp,
) -> Result<(), Fault> {
    match (world.ports.site.registration, invitation) {
        (Registration::Open, _) => Ok(()),
        (Registration::Closed, _) => Err(Fault::NotNow(
            "registration is closed on this service: ask its operator for an account".into(),
        )),
        (Registration::Invitation, None) => Err(Fault::NotNow(
            "registration on this service needs an invitation: give its token in `invitation`"
                .into(),
        )),
        (Registration::Invitation, Some(token)) => {
            let invited = is_invited(&world.store, token, email, now)?;
            invited.then_some(()).ok_or(Fault::NotFound("invitation for this e-mail"))
        }
    }
}

impl Serves<RegisterUser> for Platform {
    async fn serve(&self, cx: &Call, p: RegisterUser) -> Result<SignedIn, Fault> {
        may_register(&self.world, &p.email, p.invitation.as_deref(), cx.now)?;
        let person = Person { email: p.email, password: p.password, name: p.name.map(Into::into) };
        register(self, cx, person, |_| ()).await
    }
}

impl Serves<CreateUser> for Platform {
    async fn serve(&self, cx: &Call, p: CreateUser) -> Result<CreatedUser, Fault> {
        if account_of(&self.world, &p.email)?.is_some() {
            return Err(taken());
        }
        let random = &self.world.ports.random;
        let secret = || random.secret("", 40).map_err(|e| internal(&e));
        // Nobody knows this password.
        let password: Password = secret()?.parse().map_err(|_| Fault::Internal)?;
        let password_hash = hash_password(cx, password).await?;
        let (token, expires_at) = (secret()?, cx.now + FIRST_PASSWORD_LIFETIME);
        let user: UserId = random.id(cx.now);
        let name = p.name.map(Into::into);
        let mut registration =
            new_registration(&self.world, user, p.email, name, password_hash, cx.now);
        registration.account.resets.push(Reset { digest: digest(&token), expires_at });
        let url = self.settings.dashboard_link("/reset-password", &token);
        let platform = self.clone();
        let reply = move |account: &Account| {
            let user = view(&platform, user, account)?;
            Ok(CreatedUser { user, token: token.clone(), url: url.clone(), expires_at })
        };
        cx.to::<Accounts>(user).create(registration, reply).await
    }
}
