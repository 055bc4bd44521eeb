//! Signing in, and the making of accounts.

use super::{account_of, view};
use crate::{
    call::{
        authn::same,
        context::Call,
        lockout::{Guess, Guesser},
        platform::Platform,
        rate_limit::{network, site},
    },
    kinds::{
        commerce::subscriptions,
        people::{
            accounts::{
                Account, AccountClaim, Accounts, Command, Registration, Session,
                rules::{has_administrator, taken},
                session::{self, digest, keyed_digest},
            },
            organizations::{Member, Organization},
        },
        world::World,
    },
    ports::PortError,
};
use contract::{
    Email, Fault, Name, OrganizationId, Password, PasswordAttempt, Serves, Timestamp, UserId,
    authentication::{CreateFirstAdministrator, LoginWithEmail, Role, SignedIn, Tier},
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

/// Creates an account with a session.
pub(super) async fn register(
    platform: &Platform,
    cx: &Call,
    person: Person,
    complete: impl FnOnce(&mut Account),
) -> Result<SignedIn, Fault> {
    if account_of(&platform.world, &person.email)?.is_some() {
        return Err(taken());
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

pub(super) fn internal(e: &dyn std::fmt::Display) -> Fault {
    tracing::error!(error = %e, "a secret cannot be made");
    Fault::Internal
}

fn busy(e: &PortError) -> Fault {
    tracing::warn!(error = %e, "a password was not hashed");
    Fault::Busy
}

/// Who registers.
pub(super) struct Person {
    pub email: Email,
    pub password: Password,
    pub name: Option<Name>,
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
        let guess = self.lockout.begin(&email.key(), by, cx.now).await?;
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
