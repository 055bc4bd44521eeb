//! The rules of an account.

use super::session::Session;
use crate::runtime::resource::{Kept, Moment, Never, Resource, Retry, Step, Unique, no_effects};
use crate::{
    kinds::organizations::{Held, Organization, Organizations, Reach, ReachDelta},
    world::World,
};
use contract::{
    Email, Fault, Name, OrganizationId, Patch, Timestamp, UserId, WebUrl,
    authentication::{Role, Tier},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use store::{Change, Snapshot};

/// The accounts of people.
#[derive(Debug, Clone, Copy)]
pub struct Accounts;

/// What is kept of an account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// As it was typed; compared without case.
    pub email: Email,
    /// How to show the person.
    pub name: Name,
    /// A picture.
    pub avatar_url: Option<WebUrl>,
    /// Where the person works.
    pub company: Option<Name>,
    /// Argon2id, in PHC format.
    pub password_hash: String,
    /// How many requests a minute.
    pub tier: Tier,
    /// Whether this is one of the platform's own administrators.
    pub superadmin: bool,
    /// Counts what ends all sessions: a session of an earlier epoch is over.
    pub epoch: u32,
    /// The organization made with the account.
    pub personal: OrganizationId,
    /// Digests of the addresses that signed in, newest last.
    pub devices: Vec<String>,
    /// A password reset under way.
    pub reset: Option<Reset>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When a person last changed it.
    pub updated_at: Timestamp,
}

/// A password reset under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reset {
    /// Of the token.
    pub digest: String,
    /// When the token ends.
    pub expires_at: Timestamp,
}

/// What is made when somebody registers.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The account.
    pub account: Account,
    /// Its personal organization.
    pub organization: Organization,
    /// The digest of the first session's token, and the session; an operator's account has none.
    pub session: Option<(String, Session)>,
}

/// Addresses remembered for an account.
const MOST_DEVICES: usize = 20;

/// What can be asked of an account.
#[derive(Debug, Clone)]
pub enum Command {
    /// Open a session, under the digest of its token.
    SignIn {
        /// The session, of the account's present epoch.
        session: Session,
        /// The digest of its token.
        key: String,
        /// The digest of the address.
        device: String,
    },
    /// End one session.
    SignOut {
        /// The digest of its token.
        key: String,
        /// As it was read.
        session: Snapshot<Session>,
    },
    /// Change the profile.
    Update {
        /// Replaces the name.
        name: Option<Name>,
        /// Patches the picture.
        avatar_url: Patch<WebUrl>,
        /// Patches the company.
        company: Patch<Name>,
    },
    /// Set a new password and end all sessions, then open one anew.
    ChangePassword {
        /// The new hash.
        password_hash: String,
        /// The hash that the current password was compared with.
        seen: String,
        /// The digest of the new session's token, and the session.
        session: (String, Session),
    },
    /// Remember a reset token.
    BeginReset(Reset),
    /// Set a new password with a reset token and end all sessions.
    Reset {
        /// The new hash.
        password_hash: String,
        /// The digest of the token.
        digest: String,
    },
    /// Set the tier.
    SetTier(Tier),
    /// Panic, for tests.
    #[cfg(feature = "sabotage")]
    Panic(String),
}

impl Resource for Accounts {
    type New = Registration;
    type State = Account;
    type Command = Command;
    type Effect = Never;
    type Outcome = Never;

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

    fn on_outcome(_: Account, _: &Moment<Self>, never: Never) -> Step<Self> {
        match never {}
    }

    fn is_deleted(_: &Account) -> bool {
        false
    }

    fn claims(account: &Account) -> Vec<Unique<Self>> {
        let reset = account.reset.iter().map(|reset| AccountClaim::reset(&reset.digest));
        let all = [AccountClaim::email(&account.email)].into_iter().chain(reset);
        all.map(|claim| Unique::new(claim, taken)).collect()
    }

    fn perform(
        e: Never,
        _: UserId,
        _: Arc<Kept<Self>>,
        _: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Never, Retry>> {
        no_effects(e)
    }
}

store::claims! {
    /// What no two accounts have in common.
    pub enum AccountClaim of Accounts {
        /// The e-mail as it is compared.
        Email { key: String } = "email",
        /// The token of a password reset.
        Reset { digest: String } = "reset",
    }
}

impl AccountClaim {
    /// The unique value of an e-mail.
    pub fn email(email: &Email) -> Self {
        AccountClaim::Email { key: email.key().to_string() }
    }

    /// The unique value of a reset token, by its digest.
    pub fn reset(digest: &str) -> Self {
        AccountClaim::Reset { digest: digest.to_owned() }
    }
}

/// What is said of an e-mail that has an account.
pub fn taken() -> Fault {
    Fault::Exists("an account with this e-mail exists; sign in, or reset its password".into())
}

/// How long a reset token holds.
pub const RESET_LIFETIME: Duration = Duration::from_secs(3600);

fn create(at: &Moment<Accounts>, registration: Registration) -> Step<Accounts> {
    let Registration { account, organization, session } = registration;
    let since = account.created_at;
    let held = Held { role: Role::Admin, owner: true, personal: true, since };
    let mut also = Change::new()
        .create::<Organizations>(&account.personal, Kept::at_rest(organization))
        .merge::<Reach>(&at.id, ReachDelta::Join(account.personal, held));
    if let Some((key, session)) = session {
        also = also.create::<Session>(&key, session);
    }
    Step::put(account).also(also)
}

impl Account {
    fn on_command(
        mut self,
        at: &Moment<Accounts>,
        command: Command,
    ) -> Result<Step<Accounts>, Fault> {
        let mut also = Change::new();
        match command {
            Command::SignIn { session, key, device } => {
                if session.epoch != self.epoch {
                    return Err(Fault::BadCredentials);
                }
                self.devices.retain(|known| *known != device);
                self.devices.push(device);
                if self.devices.len() > MOST_DEVICES {
                    self.devices.remove(0);
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
            Command::ChangePassword { password_hash, seen, session: (key, session) } => {
                if seen != self.password_hash {
                    return Err(Fault::BadCredentials);
                }
                self.set_password(password_hash, at.now);
                also = also.create::<Session>(&key, Session { epoch: self.epoch, ..session });
            }
            Command::BeginReset(reset) => self.reset = Some(reset),
            Command::Reset { password_hash, digest } => {
                let valid = self
                    .reset
                    .as_ref()
                    .is_some_and(|r| r.digest == digest && r.expires_at > at.now);
                if !valid {
                    return Err(Fault::Unauthenticated(
                        "this reset token is wrong, used or expired; ask for a new one".into(),
                    ));
                }
                self.set_password(password_hash, at.now);
            }
            Command::SetTier(tier) => self.tier = tier,
            #[cfg(feature = "sabotage")]
            #[allow(clippy::panic, reason = "it is what this command is for")]
            Command::Panic(message) => panic!("{message}"),
        }
        Ok(Step::put(self).also(also))
    }

    fn set_password(&mut self, password_hash: String, now: Timestamp) {
        self.password_hash = password_hash;
        self.epoch += 1;
        self.reset = None;
        self.updated_at = now;
    }
}
