//! The rules of a deploy token.

use crate::{
    kinds::accounts::Account,
    runtime::resource::{Input, Kept, Moment, Never, Resource, Retry, Step, no_effects},
    world::World,
};
use contract::{AppId, Fault, Name, Scope, Timestamp, TokenId, UserId};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use store::{Change, Merge, Record};

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
    /// Make it.
    Create(Box<Token>),
    /// End it.
    Revoke,
    /// Remove it with its app.
    Remove,
}

impl Resource for Tokens {
    const KIND: &'static str = "token";
    type Id = TokenId;
    type State = Token;
    type Command = Command;
    type Effect = Never;
    type Outcome = Never;

    fn step(
        at: &Moment<Self>,
        state: Option<&Token>,
        input: Input<Self>,
    ) -> Result<Step<Self>, Fault> {
        let command = match input {
            Input::Command(command) => command,
            Input::Outcome(never) => match never {},
        };
        match (state, command) {
            (None, Command::Create(token)) => Ok(Step::put(*token)),
            (None, Command::Revoke | Command::Remove) => Err(Fault::NotFound("token")),
            (Some(_), Command::Create(_)) => Err(Fault::Exists("this token exists already".into())),
            (Some(token), Command::Revoke) if token.revoked_at.is_some() => Ok(Step::keep()),
            (Some(token), Command::Revoke) => {
                Ok(Step::put(Token { revoked_at: Some(at.now), ..token.clone() }))
            }
            (Some(_), Command::Remove) => {
                Ok(Step::remove().also(Change::new().drop_row::<LastUse>(&at.id.to_string())))
            }
        }
    }

    fn index(token: &Token) -> Vec<String> {
        let app = token.app_id.iter().map(|app| format!("app/{app}"));
        [format!("maker/{}", token.created_by)].into_iter().chain(app).collect()
    }

    fn claims(token: &Token) -> Vec<String> {
        vec![hash_claim(&token.digest)]
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

/// The unique value of a token.
pub fn hash_claim(digest: &str) -> String {
    format!("hash/{digest}")
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
}

impl Merge for LastUse {
    type Delta = Timestamp;
    fn merge(old: Option<Self>, at: &Timestamp) -> Option<Self> {
        Some(LastUse { at: old.map_or(*at, |old| old.at.max(*at)) })
    }
}
