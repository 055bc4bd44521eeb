//! The rules of an account.

use super::{
    record::{Account, Cause, EmailChange, Reset},
    session::Session,
};
use crate::{
    kinds::{
        people::organizations::{
            Membership, Memberships, MembershipsDelta, Organization, Organizations,
        },
        world::World,
    },
    runtime::resource::{Kept, Moment, Resource, Retry, Step, Unique, Work},
};
use contract::{
    Email, Fault, Name, Patch, Timestamp, UserId, WebUrl,
    authentication::{Role, Tier},
};
use futures_util::future::LocalBoxFuture;
use serde::Deserialize;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use store::{Change, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Accounts;

/// The records that a registration creates.
#[derive(Debug, Clone)]
pub struct Registration {
    pub account: Account,
    pub organization: Organization,
    /// The digest of the session's token, and the session. An account that an operator creates has
    /// none.
    pub session: Option<(String, Session)>,
}

/// The most addresses that an account remembers.
const MOST_ADDRESSES: usize = 20;

/// The most password resets under way at a time. Each sends one mail and is valid for an hour, so
/// this also limits the mails within an hour.
const MOST_RESETS: usize = 3;

/// The most changes of the e-mail under way at a time, for the same reason.
const MOST_EMAIL_CHANGES: usize = 3;

#[derive(Debug, Clone)]
pub enum Command {
    /// Begin a session.
    SignIn {
        /// Its epoch must be the account's.
        session: Session,
        /// The digest of the session's token.
        key: String,
        /// The keyed digest of the address.
        address: String,
    },
    /// End one session.
    SignOut {
        /// The digest of the session's token.
        key: String,
        session: Snapshot<Session>,
    },
    /// Change the profile.
    Update {
        name: Option<Name>,
        avatar_url: Patch<WebUrl>,
        company: Patch<Name>,
    },
    /// Set a new password, end all sessions, and begin a new session.
    ChangePassword {
        password_hash: String,
        /// The hash that the current password was compared with.
        seen: String,
        /// The digest of the new session's token, and the session.
        session: (String, Session),
        /// Whether to end all that acts for the account, and for which call.
        end_reach: Option<Cause>,
    },
    /// Add a password reset, unless the most are under way.
    BeginReset(Reset),
    /// Set a new password with a reset token and end all sessions.
    Reset {
        password_hash: String,
        /// The digest of the token.
        digest: String,
        /// Whether to end all that acts for the account, and for which call.
        end_reach: Option<Cause>,
    },
    /// Remember another e-mail until it is confirmed.
    BeginEmailChange {
        change: EmailChange,
        /// The hash of the password that proved who asks.
        seen: String,
    },
    /// Set the e-mail that this token was sent to.
    ConfirmEmail {
        /// The digest of the token.
        digest: String,
        /// What a subscription of the new e-mail pays for.
        paid_tier: Option<Tier>,
    },
    SetTier(Tier),
    /// What a subscription pays for changed.
    SetPaidTier(Option<Tier>),
    /// Panic, for tests.
    #[cfg(feature = "failpoints")]
    Panic(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Remove the trusted publishers, and disable the webhooks, that the account made before its
    /// deploy tokens ended.
    EndReach(Cause),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left that acts for the account.
    ReachEnded,
}

impl Resource for Accounts {
    const INDEX: u16 = 2;
    type New = Registration;
    type State = Account;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(at: &Moment<Self>, registration: Registration) -> Result<Step<Self>, Fault> {
        Ok(create(at, registration))
    }

    fn on_command(
        account: Account,
        at: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        account.on_command(at, command)
    }

    fn on_outcome(account: Account, _: &Moment<Self>, Outcome::ReachEnded: Outcome) -> Step<Self> {
        Step::put(Account { ends_reach: None, ..account })
    }

    fn next(account: &Account) -> Option<Work<Effect>> {
        account.ends_reach.clone().map(|cause| Work::now(Effect::EndReach(cause)))
    }

    fn adopt(kept: &mut Kept<Self>, intent: &Value) {
        kept.state.ends_reach =
            intent.get("EndReach").and_then(|cause| Cause::deserialize(cause).ok());
    }

    fn claims(account: &Account) -> Vec<Unique<Self>> {
        let resets = account.resets.iter().map(|reset| AccountClaim::reset(&reset.digest));
        let changes =
            account.email_changes.iter().map(|change| AccountClaim::email_change(&change.digest));
        let all = [AccountClaim::email(&account.email)].into_iter().chain(resets).chain(changes);
        let first = account.first_administrator.then_some(AccountClaim::FirstAdministrator);
        let first = first.map(|claim| Unique::new(claim, has_administrator));
        all.map(|claim| Unique::new(claim, email_taken)).chain(first).collect()
    }

    fn perform(
        effect: Effect,
        id: UserId,
        account: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, account, world))
    }
}

store::claims! {
    /// The unique values of accounts.
    pub enum AccountClaim of Accounts {
        /// The e-mail in the form that is compared.
        Email { key: String } = "email",
        /// The token of a password reset.
        Reset { digest: String } = "reset",
        /// The token of a change of the e-mail.
        EmailChange { digest: String } = "emailChange",
        /// Held by whoever used the link of the first start, so the link works once.
        FirstAdministrator = "firstAdministrator",
    }
}

impl AccountClaim {
    pub fn email(email: &Email) -> Self {
        AccountClaim::Email { key: email.key().to_string() }
    }

    pub fn reset(digest: &str) -> Self {
        AccountClaim::Reset { digest: digest.to_owned() }
    }

    pub fn email_change(digest: &str) -> Self {
        AccountClaim::EmailChange { digest: digest.to_owned() }
    }
}

/// The fault for a second first administrator.
pub fn has_administrator() -> Fault {
    Fault::Exists("this server has a first administrator; sign in, or register an account".into())
}

/// The fault for an e-mail that already has an account.
pub fn email_taken() -> Fault {
    Fault::Exists("an account with this e-mail exists; sign in, or reset its password".into())
}

/// The fault for a reset token that is not valid.
pub fn no_such_reset() -> Fault {
    Fault::Unauthenticated(
        "this reset token is wrong, used or expired; ask for a new one with requestPasswordReset"
            .into(),
    )
}

/// The fault for a token of an e-mail change that is not valid.
pub fn no_such_email_change() -> Fault {
    Fault::Unauthenticated(
        "this token is wrong, used or expired; ask for a new one with svc_changeEmail".into(),
    )
}

/// How long the token of an e-mail change is valid.
pub const EMAIL_CHANGE_LIFETIME: Duration = Duration::from_secs(3600);

/// How long a reset token is valid.
pub const RESET_LIFETIME: Duration = Duration::from_secs(3600);

fn create(at: &Moment<Accounts>, registration: Registration) -> Step<Accounts> {
    let Registration { account, organization, session } = registration;
    let since = account.created_at;
    let membership = Membership { role: Role::Admin, owner: true, personal: true, since };
    let mut also = Change::new()
        .merge::<Memberships>(&at.id, MembershipsDelta::Join(account.personal, membership));
    if let Some((key, session)) = session {
        also = also.create::<Session>(&key, session);
    }
    let (personal, uses) = (account.personal, Organizations::uses(&organization));
    let created = Change::new().create::<Organizations>(&personal, Kept::at_rest(organization));
    Step::put(account).also(also).also_creates(created, &uses)
}

impl Account {
    fn on_command(
        mut self,
        at: &Moment<Accounts>,
        command: Command,
    ) -> Result<Step<Accounts>, Fault> {
        let mut also = Change::new();
        match command {
            Command::SignIn { session, key, address } => {
                if session.epoch != self.epoch {
                    return Err(Fault::BadCredentials);
                }
                self.known_addresses.retain(|known| *known != address);
                self.known_addresses.push(address);
                if self.known_addresses.len() > MOST_ADDRESSES {
                    self.known_addresses.remove(0);
                }
                also = also.create::<Session>(&key, session);
            }
            Command::SignOut { key, session } => {
                return Ok(Step::keep().also(Change::new().remove(&key, &session)));
            }
            Command::Update { name, avatar_url, company } => {
                self.name = name.unwrap_or(self.name);
                avatar_url.apply(&mut self.avatar_url);
                company.apply(&mut self.company);
                self.updated_at = at.now;
            }
            Command::ChangePassword { password_hash, seen, session, end_reach } => {
                if seen != self.password_hash {
                    return Err(Fault::WrongCurrentPassword);
                }
                self.set_password(password_hash, end_reach, at.now);
                let (key, session) = session;
                also = also.create::<Session>(&key, Session { epoch: self.epoch, ..session });
            }
            Command::BeginReset(reset) => {
                self.resets.retain(|earlier| earlier.expires_at > at.now);
                if self.resets.len() >= MOST_RESETS {
                    return Ok(Step::keep());
                }
                self.resets.push(reset);
            }
            Command::Reset { password_hash, digest, end_reach } => {
                let is_it = |r: &Reset| r.digest == digest && r.expires_at > at.now;
                if !self.resets.iter().any(is_it) {
                    return Err(no_such_reset());
                }
                self.set_password(password_hash, end_reach, at.now);
            }
            Command::BeginEmailChange { change, seen } => {
                if seen != self.password_hash {
                    return Err(Fault::WrongCurrentPassword);
                }
                self.email_changes.retain(|earlier| earlier.expires_at > at.now);
                let next = self.email_changes.iter().map(|earlier| earlier.expires_at).min();
                if let Some(next) = next.filter(|_| self.email_changes.len() >= MOST_EMAIL_CHANGES)
                {
                    return Err(Fault::TooMany {
                        what: "three mails for a new e-mail were sent within an hour".into(),
                        retry_after: next.since(at.now).as_secs() + 1,
                    });
                }
                self.email_changes.push(change);
            }
            Command::ConfirmEmail { digest, paid_tier } => {
                let is_it = |c: &EmailChange| c.digest == digest && c.expires_at > at.now;
                let change = self.email_changes.iter().find(|change| is_it(change));
                self.email = change.ok_or_else(no_such_email_change)?.email.clone();
                self.paid_tier = paid_tier;
                self.resets.clear();
                self.email_changes.clear();
                self.updated_at = at.now;
            }
            Command::SetTier(tier) => self.tier = tier,
            Command::SetPaidTier(paid) if paid == self.paid_tier => return Ok(Step::keep()),
            Command::SetPaidTier(paid) => self.paid_tier = paid,
            #[cfg(feature = "failpoints")]
            #[allow(clippy::panic, reason = "it is what this command is for")]
            Command::Panic(message) => panic!("{message}"),
        }
        Ok(Step::put(self).also(also))
    }

    /// Sets a new password and ends all sessions, and all that acts for the account if a call asks for
    /// that.
    fn set_password(&mut self, password_hash: String, end_reach: Option<Cause>, now: Timestamp) {
        self.password_hash = password_hash;
        self.epoch += 1;
        self.resets.clear();
        self.email_changes.clear();
        self.updated_at = now;
        if end_reach.is_some() {
            self.token_epoch += 1;
            self.tokens_ended_at = Some(now);
            self.ends_reach = end_reach;
        }
    }
}
