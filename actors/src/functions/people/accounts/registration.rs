//! Registration: who may register, and the accounts that are made.

use super::{
    account_of,
    sign_in::{address_digest, begin_session, hash_password, internal},
    view,
};
use crate::{
    call::{authn::same, context::Call, platform::Platform},
    functions::people::organizations::is_invited,
    kinds::{
        commerce::subscriptions,
        people::{
            accounts::{
                Account, AccountClaim, Accounts, Registration, Reset,
                rules::{email_taken, has_administrator},
                session::digest,
            },
            organizations::{Member, Organization},
        },
        world::World,
    },
};
use contract::{
    Email, Fault, Name, OrganizationId, Password, Serves, Timestamp, UserId,
    authentication::{CreateFirstAdministrator, RegisterUser, Role, SignedIn, Tier},
    operators::{CreateUser, CreatedUser},
    service::Registration as WhoRegisters,
};
use std::time::Duration;

/// How long the token for a first password is valid.
const FIRST_PASSWORD_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// Who registers.
struct Person {
    email: Email,
    password: Password,
    name: Option<Name>,
}

/// Creates an account with a session.
async fn register(
    platform: &Platform,
    cx: &Call,
    person: Person,
    complete: impl FnOnce(&mut Account),
) -> Result<SignedIn, Fault> {
    if account_of(&platform.world, &person.email)?.is_some() {
        return Err(email_taken());
    }
    let user: UserId = platform.world.ports.random.id(cx.now);
    let password_hash = hash_password(cx, person.password).await?;
    let (session_token, key, session) = begin_session(cx, user, 0)?;
    let expires_at = session.expires_at;
    let mut registration =
        new_registration(&platform.world, user, person.email, person.name, password_hash, cx.now);
    registration.account.known_addresses.push(address_digest(platform, user, cx));
    registration.session = Some((key, session));
    complete(&mut registration.account);
    let platform = platform.clone();
    cx.to::<Accounts>(user)
        .create(registration, move |account| {
            let user = view(&platform, user, account)?;
            Ok(SignedIn { user, session_token: session_token.clone(), expires_at })
        })
        .await
}

/// A new account and its personal organization, without a session.
pub fn new_registration(
    world: &World,
    user: UserId,
    email: Email,
    name: Option<Name>,
    password_hash: String,
    now: Timestamp,
) -> Registration {
    let personal: OrganizationId = world.ports.random.id(now);
    let from_email = || email.as_str().split('@').next().and_then(|local| local.parse().ok());
    // The local part of an e-mail is 1 to 64 plain characters, so it is a valid name.
    let name = name.or_else(from_email).or_else(|| "User".parse().ok());
    let Some(name) = name else { unreachable!("`User` is a name") };
    // Somebody may pay before registering. A store that fails costs the next look at the subscription.
    let paid_tier = subscriptions::paid_tier(world, &email).ok().flatten();
    let account = Account {
        email,
        name: name.clone(),
        avatar_url: None,
        company: None,
        password_hash,
        tier: Tier::Free,
        paid_tier,
        superadmin: false,
        first_administrator: false,
        epoch: 0,
        personal,
        known_addresses: Vec::new(),
        resets: Vec::new(),
        email_changes: Vec::new(),
        token_epoch: 0,
        tokens_ended_at: None,
        ends_reach: None,
        created_at: now,
        updated_at: now,
    };
    let organization = Organization {
        name,
        owner: user,
        personal: true,
        members: vec![Member { user, role: Role::Admin, joined_at: now }],
        leaving: Vec::new(),
        invitations: Vec::new(),
        closing: false,
        created_at: now,
        updated_at: now,
    };
    Registration { account, organization, session: None }
}

fn may_register(
    world: &World,
    email: &Email,
    invitation: Option<&str>,
    now: Timestamp,
) -> Result<(), Fault> {
    match (world.ports.site.registration, invitation) {
        (WhoRegisters::Open, _) => Ok(()),
        (WhoRegisters::Closed, _) => Err(Fault::NotNow(
            "registration is closed on this service: ask its operator for an account".into(),
        )),
        (WhoRegisters::Invitation, None) => Err(Fault::NotNow(
            "registration on this service needs an invitation: give its token in `invitation`"
                .into(),
        )),
        (WhoRegisters::Invitation, Some(token)) => {
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
            return Err(email_taken());
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

impl Serves<CreateFirstAdministrator> for Platform {
    async fn serve(&self, cx: &Call, p: CreateFirstAdministrator) -> Result<SignedIn, Fault> {
        let expected = self.settings.first_start_token.as_deref();
        if !expected.is_some_and(|token| same(&p.token, token)) {
            return Err(Fault::Unauthenticated(
                "this is not the token of a link that the server printed; its file secrets/first-start.json has the token"
                    .into(),
            ));
        }
        let claim = AccountClaim::FirstAdministrator;
        if self.world.store.held_by::<Accounts>(&claim)?.is_some() {
            return Err(has_administrator());
        }
        let person = Person { email: p.email, password: p.password, name: p.name.map(Into::into) };
        register(self, cx, person, |account| {
            account.superadmin = true;
            account.first_administrator = true;
            account.tier = Tier::Enterprise;
        })
        .await
    }
}
