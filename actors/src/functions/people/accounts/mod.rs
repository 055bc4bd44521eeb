//! The handlers of the group Authentication.

pub mod registration;
pub mod session_routes;

use crate::{
    call::{
        authn::same,
        authz,
        context::{Call, Credential},
        lockout::{Guess, Guesser},
        platform::Platform,
        rate_limit::{network, site},
    },
    functions::people::tokens::view as token_view,
    kinds::{
        commerce::subscriptions,
        people::{
            accounts::{
                Account, AccountClaim, Accounts, Cause, Command, Registration, Reset, Session,
                SessionClaim, SessionIndex,
                rules::{RESET_LIFETIME, has_administrator, no_such_reset, taken},
                session::{self, digest, keyed_digest},
            },
            organizations::{Member, Organization},
        },
        world::World,
    },
    ports::PortError,
    runtime::pagination,
};
use contract::{
    Email, Fault, Name, OrganizationId, Page, Password, PasswordAttempt, Serves, Timestamp, UserId,
    authentication::{
        self as auth, Caller, ChangePassword, CreateFirstAdministrator, Empty, GetCurrentUser,
        GetSessions, GetUsage, LoginWithEmail, Logout, NewSession, RequestPasswordReset,
        ResetPassword, RevokeSession, Role, SignedIn, Tier, UpdateProfile, Usage, User,
    },
};
use std::time::Duration;
use store::Snapshot;

/// What the mail about a new password says if it ended all that acts for the account.
const REACH_ENDED: &str = "\n\nSo have all deploy tokens of the account. The trusted publishers that it added are removed, and the webhooks that it made are disabled: look at them, add and enable those that are yours, and look at the members of your organizations.";

/// For how long a sign-in proves who the caller is, as the current password does.
const FRESH_SIGN_IN: Duration = Duration::from_secs(10 * 60);

/// The account as a reply shows it.
pub fn view(platform: &Platform, id: UserId, account: &Account) -> Result<User, Fault> {
    let role = if account.superadmin {
        Role::Superadmin
    } else {
        authz::memberships(&platform.world, id)?.role()
    };
    Ok(User {
        id,
        email: account.email.clone(),
        name: account.name.clone(),
        avatar_url: account.avatar_url.clone(),
        company: account.company.clone(),
        role,
        tier: account.tier(),
        created_at: account.created_at,
        updated_at: account.updated_at,
    })
}

/// A new session of the account: its token, the digest of the token, and the session.
fn begin_session(
    world: &World,
    cx: &Call,
    user: UserId,
    epoch: u32,
) -> Result<(String, String, Session), Fault> {
    let random = &world.ports.random;
    let token = random.session_token().map_err(|e| internal(&e))?;
    let session = Session::begin(random.id(cx.now), user, epoch, cx.now, cx.user_agent.clone());
    let key = digest(&token);
    Ok((token, key, session))
}

pub(super) async fn hash(world: &World, cx: &Call, password: Password) -> Result<String, Fault> {
    world.ports.passwords.hash(cx.tenant(), password).await.map_err(|e| busy(&e))
}

/// Whether the password has this hash. A wrong password counts as a failed guess.
async fn verify(
    world: &World,
    cx: &Call,
    guess: Guess<'_>,
    password: PasswordAttempt,
    hash: Option<String>,
) -> Result<bool, Fault> {
    match world.ports.passwords.verify(cx.tenant(), password, hash).await {
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
fn address_digest(platform: &Platform, user: UserId, cx: &Call) -> String {
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
    let password_hash = hash(&platform.world, cx, person.password).await?;
    let (session_token, key, session) = begin_session(&platform.world, cx, user, 0)?;
    let expires_at = session.expires_at;
    let mut registration =
        registration(&platform.world, user, person.email, person.name, password_hash, cx.now);
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
pub fn registration(
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

pub fn account_of(
    world: &World,
    email: &Email,
) -> Result<Option<(UserId, Snapshot<Accounts>)>, Fault> {
    world.store.held_by(&AccountClaim::email(email))
}

/// What the audit log says of the work after a call.
fn cause(call: &Call) -> Cause {
    Cause { function: call.function.to_owned(), request_id: call.request_id.to_string() }
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
        let right = verify(&self.world, cx, guess, p.password, hash).await?;
        let Some((user, account)) = found.filter(|_| right) else {
            return Err(Fault::BadCredentials);
        };
        let (session_token, key, session) = begin_session(&self.world, cx, user, account.epoch)?;
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

impl Serves<GetCurrentUser> for Platform {
    async fn serve(&self, cx: &Call, _: GetCurrentUser) -> Result<Caller, Fault> {
        let caller = cx.user()?;
        let user = view(self, caller.id, &caller.account.state)?;
        Ok(match &caller.credential {
            Credential::Session(..) => Caller { user, deploy_token: None },
            Credential::Token(token, seen) => {
                // A token does not have the standing of a superadmin.
                let role = authz::memberships(&self.world, caller.id)?.role();
                let token = token_view(&self.world.store, *token, &seen.state)?;
                Caller { user: User { role, ..user }, deploy_token: Some(token) }
            }
        })
    }
}

impl Serves<UpdateProfile> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateProfile) -> Result<User, Fault> {
        let user = cx.user()?.id;
        let command = Command::Update {
            name: p.name.map(Into::into),
            avatar_url: p.avatar_url,
            company: p.company.map(Into::into),
        };
        let platform = self.clone();
        let reply = move |account: &Account| view(&platform, user, account);
        cx.to::<Accounts>(user).change(command, reply).await
    }
}

impl Serves<ChangePassword> for Platform {
    async fn serve(&self, cx: &Call, p: ChangePassword) -> Result<NewSession, Fault> {
        let seen = prove(self, cx, Some(p.current_password)).await?;
        replace_password(self, cx, seen, p.new_password, p.revoke_tokens).await
    }
}

/// Whether the caller may replace the password: the current one proves it, or a session that
/// began a moment ago. Whoever has only found a session of somebody else has neither. Returns
/// the hash of the current password.
pub async fn prove(
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
    let guess = platform.lockout.begin(&user.id.to_string(), Guesser::Session, cx.now).await?;
    match verify(&platform.world, cx, guess, current, Some(seen.clone())).await? {
        true => Ok(seen),
        false => Err(Fault::WrongCurrentPassword),
    }
}

/// Tells a user by mail that the password was replaced. The call does not wait for it.
fn tell_of_new_password(platform: &Platform, email: &Email, reach_ended: bool) {
    let (mail, email) = (platform.world.ports.mail.clone(), email.clone());
    let ended = if reach_ended { REACH_ENDED } else { "" };
    let text = format!(
        "The password of your account at {} was replaced, and all sessions have ended.{ended}\n\nIf it was not you, ask for a new one with “Forgot password” or requestPasswordReset: that ends all sessions, and all that acts for your account.",
        platform.settings.api_url
    );
    actix_rt::spawn(async move {
        if let Err(e) = mail.send(&email, "Your password was replaced", &text).await {
            tracing::error!(error = %e, "a mail about a new password was not sent");
        }
    });
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
    let password_hash = hash(&platform.world, cx, password).await?;
    let (session_token, key, session) =
        begin_session(&platform.world, cx, user.id, user.account.state.epoch)?;
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

impl Serves<Logout> for Platform {
    async fn serve(&self, cx: &Call, _: Logout) -> Result<Empty, Fault> {
        let (key, _) = cx.session()?;
        // Read again: the authentication of this call may have written that the session is in use.
        let session = self.world.store.get::<Session>(&key.to_owned())?;
        let Some(session) = session else { return Ok(Empty {}) };
        let command = Command::SignOut { key: key.to_owned(), session };
        cx.to::<Accounts>(cx.user()?.id).change(command, |_| Ok(Empty {})).await
    }
}

impl Serves<GetUsage> for Platform {
    async fn serve(&self, cx: &Call, _: GetUsage) -> Result<Usage, Fault> {
        let user = cx.user()?;
        let tier = user.account.state.tier();
        let calls_per_minute = tier.per_minute();
        let left = self.authn.peek_user(&self.world, user.id).map(|allowance| allowance.remaining);
        Ok(Usage { tier, calls_per_minute, calls_left: calls_per_minute.and(left) })
    }
}

impl Serves<GetSessions> for Platform {
    async fn serve(&self, cx: &Call, p: GetSessions) -> Result<Page<auth::Session>, Fault> {
        let user = cx.user()?;
        let current = cx.session().ok().map(|(key, _)| key);
        let mut sessions = Vec::new();
        let of_user = SessionIndex::User { user: user.id };
        for key in self.world.store.newest(&of_user, None, session::MOST_LOOKED_AT)? {
            let Some(session) = self.world.store.get::<Session>(&key)? else { continue };
            if session.epoch == user.account.state.epoch && session.expires_at > cx.now {
                sessions.push(auth::Session {
                    id: session.id,
                    current: current == Some(key.as_str()),
                    created_at: session.created_at,
                    last_used_at: session.last_used_at,
                    expires_at: session.expires_at,
                    user_agent: session.user_agent.clone(),
                });
            }
        }
        Ok(pagination::slice(sessions, |session| session.id.to_string(), (p.limit, p.cursor)))
    }
}

impl Serves<RevokeSession> for Platform {
    async fn serve(&self, cx: &Call, p: RevokeSession) -> Result<Empty, Fault> {
        let user = cx.user()?.id;
        let none = || Fault::NotFound("session");
        let membership = self.world.store.held_by(&SessionClaim::Id { id: p.session_id })?;
        let (key, session) = membership.ok_or_else(none)?;
        if session.user != user {
            return Err(none());
        }
        let command = Command::SignOut { key, session };
        cx.to::<Accounts>(user).change(command, |_| Ok(Empty {})).await
    }
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
    let mail = &platform.world.ports.mail;
    if let Err(e) = mail.send(&account.email, "Your new password", &text).await {
        tracing::error!(error = %e, "a mail for a password reset was not sent");
    }
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
        let password_hash = hash(&self.world, cx, p.new_password).await?;
        let end_reach = p.revoke_tokens.then(|| cause(cx));
        let command = Command::Reset { password_hash, digest, end_reach };
        let reply = cx.to::<Accounts>(user).change(command, |_| Ok(Empty {})).await?;
        self.lockout.forget(&account.email.key());
        tell_of_new_password(self, &account.email, p.revoke_tokens);
        Ok(reply)
    }
}
