//! The rules of a deploy token.

use crate::{
    kinds::people::accounts::Account,
    runtime::{
        resource::{Child, Moment, Never, Resource, Step, Unique, Work, without_effects},
        side_record::{End, SideRecord},
    },
};
use contract::{AppId, Fault, Name, Scope, Timestamp, UserId, trusted_publishers::CiRun};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::{Change, Entries, Merge};

#[derive(Debug, Clone, Copy)]
pub struct Tokens;

/// The stored state of a deploy token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Token {
    pub name: Name,
    pub scopes: Vec<Scope>,
    /// If set, the token works only for this app.
    pub app_id: Option<AppId>,
    /// The user for whom the token acts.
    pub created_by: UserId,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    /// When a command revoked this token.
    pub revoked_at: Option<Timestamp>,
    /// The digest of the secret.
    pub digest: String,
    /// The maker's token epoch at creation. A later epoch of the account ends the token.
    #[serde(default)]
    pub epoch: u32,
    /// The CI job that got the token in exchange for its identity token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
}

/// The identity of a CI job, as its identity token proved it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The digest of the issuer and the id of the identity token.
    pub unique: String,
    /// When the identity token expires. Until then, no other deploy token is made from it.
    pub expires_at: Timestamp,
    pub run: CiRun,
}

/// How long the deploy token of a CI job is kept after its end, and after that of its identity
/// token.
const KEPT: Duration = Duration::from_secs(3600);

impl Token {
    /// When the token was revoked: by a command, or with all tokens of its maker.
    pub fn revoked_at(&self, maker: &Account) -> Option<Timestamp> {
        let ended = || maker.tokens_ended_at.unwrap_or(maker.updated_at);
        self.revoked_at.or_else(|| (self.epoch < maker.token_epoch).then(ended))
    }
}

#[derive(Debug, Clone)]
pub enum Command {
    Revoke,
    /// Remove the record: the app is deleted, or the CI job is over.
    Remove,
}

impl Resource for Tokens {
    const INDEX: u16 = 2;
    type New = Token;
    type State = Token;
    type Command = Command;
    without_effects!();

    fn create(_: &Moment<Self>, token: Token) -> Result<Step<Self>, Fault> {
        Ok(Step::put(token))
    }

    fn on_command(token: Token, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        Ok(match command {
            Command::Revoke if token.revoked_at.is_some() => Step::keep(),
            Command::Revoke => Step::put(Token { revoked_at: Some(at.now), ..token }),
            Command::Remove => remove(at),
        })
    }

    fn index(token: &Token) -> Entries<Self> {
        Entries::default().and(TokenIndex::Maker { user: token.created_by })
    }

    fn claims(token: &Token) -> Vec<Unique<Self>> {
        let replayed = || Fault::Unauthenticated("this identity token was exchanged before".into());
        let identity = token.identity.as_ref();
        let identity =
            identity.map(|identity| TokenClaim::Identity { unique: identity.unique.clone() });
        [Unique::new(TokenClaim::of(&token.digest), || Fault::Stale)]
            .into_iter()
            .chain(identity.map(|claim| Unique::new(claim, replayed)))
            .collect()
    }

    fn next(token: &Token) -> Option<Work<Never>> {
        let identity = token.identity.as_ref()?;
        let over = token.expires_at.map_or(identity.expires_at, |end| end.max(identity.expires_at));
        Some(Work::wait(over + KEPT))
    }

    fn on_due(_: Token, at: &Moment<Self>) -> Step<Self> {
        remove(at)
    }
}

fn remove(at: &Moment<Tokens>) -> Step<Tokens> {
    Step::remove().also(Change::new().drop_row::<LastUse>(&at.id))
}

impl Child for Tokens {
    fn parent(token: &Token) -> Option<AppId> {
        token.app_id
    }

    fn delete() -> Command {
        Command::Remove
    }
}

store::entries! {
    /// The index entries of deploy tokens.
    pub enum TokenIndex of Tokens {
        Maker { user: UserId } = "maker",
    }
}

store::claims! {
    /// The unique values of deploy tokens.
    pub enum TokenClaim of Tokens {
        Hash { digest: String } = "hash",
        /// An identity token is exchanged once.
        Identity { unique: String } = "identity",
    }
}

impl TokenClaim {
    pub fn of(digest: &str) -> Self {
        TokenClaim::Hash { digest: digest.to_owned() }
    }
}

/// The last use of a token. It is a record of its own, so that a use does not change the token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastUse {
    /// Precise to [`LastUse::EVERY`].
    pub at: Timestamp,
}

impl LastUse {
    /// The last use is written at most this often.
    pub const EVERY: Duration = Duration::from_secs(60);
}

impl SideRecord for LastUse {
    /// The revocation of its token removes it. Stores of earlier versions may have some without a token.
    fn end(&self) -> End {
        End::WhenUsed
    }
}

impl Merge for LastUse {
    type Delta = Timestamp;
    fn merge(old: Option<Self>, at: &Timestamp) -> Option<Self> {
        Some(LastUse { at: old.map_or(*at, |old| old.at.max(*at)) })
    }
}
