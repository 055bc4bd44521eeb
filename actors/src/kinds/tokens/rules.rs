//! The rules of a deploy token.

use crate::{
    kinds::accounts::Account,
    runtime::resource::{Child, Kept, Moment, Never, Resource, Retry, Step, Unique, no_effects},
    world::World,
};
use contract::{AppId, Fault, Name, Scope, Timestamp, TokenId, UserId};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use store::{Change, Entries, Merge, Record};

/// The deploy tokens.
#[derive(Debug, Clone, Copy)]
pub struct Tokens;

/// What is kept of a deploy token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// Shown to people.
    pub name: Name,
    /// What it may be used for.
    pub scopes: Vec<Scope>,
    /// The one app it is bound to.
    pub app_id: Option<AppId>,
    /// For whom it acts.
    pub created_by: UserId,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Of the token itself.
    pub digest: String,
    /// The maker's token epoch when it was made. A later epoch of the account ends it.
    #[serde(default)]
    pub epoch: u32,
}

impl Token {
    /// When it was revoked, by itself or with all tokens of its maker.
    pub fn revoked_at(&self, maker: &Account) -> Option<Timestamp> {
        let ended = || maker.tokens_ended_at.unwrap_or(maker.updated_at);
        self.revoked_at.or_else(|| (self.epoch < maker.token_epoch).then(ended))
    }
}

/// What can be asked of a deploy token.
#[derive(Debug, Clone)]
pub enum Command {
    /// End it.
    Revoke,
    /// Remove it with its app.
    Remove,
}

impl Resource for Tokens {
    type New = Token;
    type State = Token;
    type Command = Command;
    type Effect = Never;
    type Outcome = Never;

    fn create(_: &Moment<Self>, token: Token) -> Result<Step<Self>, Fault> {
        Ok(Step::put(token))
    }

    fn on_command(token: Token, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        Ok(match command {
            Command::Revoke if token.revoked_at.is_some() => Step::keep(),
            Command::Revoke => Step::put(Token { revoked_at: Some(at.now), ..token }),
            Command::Remove => Step::remove().also(Change::new().drop_row::<LastUse>(&at.id)),
        })
    }

    fn on_outcome(_: Token, _: &Moment<Self>, never: Never) -> Step<Self> {
        match never {}
    }

    fn is_deleted(_: &Token) -> bool {
        false
    }

    fn index(token: &Token) -> Entries<Self> {
        Entries::default().and(TokenIndex::Maker { user: token.created_by })
    }

    fn claims(token: &Token) -> Vec<Unique<Self>> {
        vec![Unique::new(TokenClaim::of(&token.digest), || Fault::Stale)]
    }

    fn perform(
        e: Never,
        _: TokenId,
        _: Arc<Kept<Self>>,
        _: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Never, Retry>> {
        no_effects(e)
    }
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
    /// What deploy tokens are found by.
    pub enum TokenIndex of Tokens {
        Maker { user: UserId } = "maker",
    }
}

store::claims! {
    /// What no two deploy tokens have in common.
    pub enum TokenClaim of Tokens {
        Hash { digest: String } = "hash",
    }
}

impl TokenClaim {
    /// The unique value of a token, by its digest.
    pub fn of(digest: &str) -> Self {
        TokenClaim::Hash { digest: digest.to_owned() }
    }
}

/// When a token was last used. Apart from the token, so that use does not change it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastUse {
    /// The moment, within [`LastUse::EVERY`].
    pub at: Timestamp,
}

impl LastUse {
    /// Use is written down at most this often.
    pub const EVERY: Duration = Duration::from_secs(60);
}

impl Record for LastUse {
    const TREE: &'static str = "token-use";
    const SCHEMA: u16 = 1;
    type Key = TokenId;
    type Content = Self;
}

impl Merge for LastUse {
    type Delta = Timestamp;
    fn merge(old: Option<Self>, at: &Timestamp) -> Option<Self> {
        Some(LastUse { at: old.map_or(*at, |old| old.at.max(*at)) })
    }
}
