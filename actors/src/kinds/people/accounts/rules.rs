//! The rules of an account.

use super::session::Session;
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
    Email, Fault, Name, OrganizationId, Patch, Timestamp, UserId, WebUrl,
    authentication::{Role, Tier},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use store::{Change, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Accounts;

/// The stored state of an account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// As the user typed it. A comparison ignores case.
    pub email: Email,
    pub name: Name,
    pub avatar_url: Option<WebUrl>,
    pub company: Option<Name>,
    /// Argon2id, in PHC format.
    pub password_hash: String,
    /// The tier that an administrator gave.
    pub tier: Tier,
    /// The tier that a subscription pays for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid_tier: Option<Tier>,
    /// Whether the user is one of the platform's own administrators.
    pub superadmin: bool,
    /// Whether this is the account of the first administrator. There is one at most.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_administrator: bool,
    /// Grows when all sessions end. A session of an earlier epoch is not valid.
    pub epoch: u32,
    /// The personal organization, created with the account.
    pub personal: OrganizationId,
    /// Keyed digests of the addresses that signed in, newest last.
    #[serde(default)]
    pub known_addresses: Vec<String>,
    /// Password resets under way. Earlier versions stored at most one, as `reset`.
    #[serde(default, alias = "reset", deserialize_with = "one_or_many")]
    pub resets: Vec<Reset>,
    /// Grows when all deploy tokens end. A token of an earlier epoch is not valid; trusted publishers
    /// and webhooks of an earlier epoch are ended by [`Effect::EndReach`].
    #[serde(default)]
    pub token_epoch: u32,
    /// When `token_epoch` last grew.
    #[serde(default)]
    pub tokens_ended_at: Option<Timestamp>,
    /// The call that asks for [`Effect::EndReach`], until that is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_reach: Option<Cause>,
    pub created_at: Timestamp,
    /// When the user last changed the profile or the password.
    pub updated_at: Timestamp,
}

/// A password reset under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reset {
    /// The digest of the token.
    pub digest: String,
    pub expires_at: Timestamp,
}

fn one_or_many<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Reset>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Resets {
        Many(Vec<Reset>),
        One(Option<Reset>),
    }
    Ok(match Resets::deserialize(d)? {
        Resets::Many(resets) => resets,
        Resets::One(reset) => reset.into_iter().collect(),
    })
}

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
    SetTier(Tier),
    /// What a subscription pays for changed.
    SetPaidTier(Option<Tier>),
    /// Panic, for tests.
    #[cfg(feature = "failpoints")]
    Panic(String),
}

/// The call that an entry of the audit log names for work after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    pub function: String,
    pub request_id: String,
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
        let all = [AccountClaim::email(&account.email)].into_iter().chain(resets);
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

/// How long a reset token is valid.
pub const RESET_LIFETIME: Duration = Duration::from_secs(3600);

fn create(at: &Moment<Accounts>, registration: Registration) -> Step<Accounts> {
    let Registration { account, organization, session } = registration;
    let since = account.created_at;
    let membership = Membership { role: Role::Admin, owner: true, personal: true, since };
    let mut also = Change::new()
        .create::<Organizations>(&account.personal, Kept::at_rest(organization))
        .merge::<Memberships>(&at.id, MembershipsDelta::Join(account.personal, membership));
    if let Some((key, session)) = session {
        also = also.create::<Session>(&key, session);
    }
    Step::put(account).also(also)
}

impl Account {
    /// Sets the rate limit: the higher one of the tiers that were given and paid.
    pub fn tier(&self) -> Tier {
        self.paid_tier.map_or(self.tier, |paid| paid.max(self.tier))
    }

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
        self.updated_at = now;
        if end_reach.is_some() {
            self.token_epoch += 1;
            self.tokens_ended_at = Some(now);
            self.ends_reach = end_reach;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn stored(reset: Value) -> Value {
        json!({
            "email": "ada@example.com", "name": "Ada", "avatar_url": null, "company": null,
            "password_hash": "$argon2id$", "tier": "free", "superadmin": false, "epoch": 3,
            "personal": "org_01J9ZQ8F5W7V3T6M2K4N8R0P1S", "devices": ["12ca17b49af2"],
            "reset": reset,
            "created_at": "2026-01-31T12:00:00.000Z", "updated_at": "2026-01-31T12:00:00.000Z",
        })
    }

    #[test]
    fn an_account_of_an_earlier_version_keeps_its_reset_and_its_claims() {
        let reset = json!({"digest": "abc", "expires_at": "2026-01-31T13:00:00.000Z"});
        let account: Account = serde_json::from_value(stored(reset)).unwrap();
        let claims = <Accounts as Resource>::claims(&account);
        let claims: Vec<_> = claims.iter().map(Unique::to_string).collect();
        assert_eq!(claims, ["email/ada@example.com", "reset/abc"]);
        let again: Account = serde_json::from_value(json!(account)).unwrap();
        assert_eq!(again, account);
        let account: Account = serde_json::from_value(stored(Value::Null)).unwrap();
        assert_eq!((account.resets, account.token_epoch), (vec![], 0));
    }
}
