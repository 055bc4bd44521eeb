//! The rules of a deploy token.

use crate::{
    kinds::people::accounts::Account,
    runtime::{
        resource::{Child, Moment, Never, Resource, Step, Unique, Work, without_effects},
        side_record::{End, SideRecord},
    },
};
use contract::{
    AppId, Fault, Name, Scope, Timestamp, UserId, retention::Retention, trusted_publishers::CiRun,
};
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
    /// When the token was counted as over: it had expired, or all tokens of its maker had been revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
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

    /// The index entry of those tokens that are counted together, while the token can be used. CI jobs
    /// get tokens as often as they run, and those go an hour later, so they are not counted.
    fn usable(&self) -> Option<TokenIndex> {
        let is_counted =
            self.identity.is_none() && self.revoked_at.is_none() && self.ended_at.is_none();
        is_counted.then(|| TokenIndex::usable(self.app_id, self.created_by))
    }
}

#[derive(Debug, Clone)]
pub enum Command {
    Revoke,
    /// The token cannot be used since then: it has expired, or all tokens of its maker were revoked.
    End(Timestamp),
    /// Remove the record: the app is deleted, or the CI job is over.
    Remove,
}

impl Resource for Tokens {
    const INDEX: u16 = 3;
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
            Command::End(_) if token.ended_at.is_some() => Step::keep(),
            Command::End(since) => Step::put(Token { ended_at: Some(since), ..token }),
            Command::Remove => remove(at),
        })
    }

    fn index(token: &Token) -> Entries<Self> {
        Entries::default().and(TokenIndex::Maker { user: token.created_by }).and_all(token.usable())
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

    /// The token of a CI job has an end of its own: [`KEPT`].
    fn retained(token: &Token) -> Vec<(Retention, Timestamp)> {
        let ends = [token.revoked_at, token.ended_at, token.expires_at].into_iter().flatten();
        let ended = ends.min().filter(|_| token.identity.is_none());
        ended.map(|ended| (Retention::Tokens, ended)).into_iter().collect()
    }

    fn on_retention_over(_: Token, at: &Moment<Self>, _: Retention) -> Result<Step<Self>, Fault> {
        Ok(remove(at))
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
        /// The tokens without an app that this user made, and that can be used.
        UsableOf { user: UserId } = "usableOf",
        /// The tokens that are bound to this app, and can be used.
        UsableIn { app: AppId } = "usableIn",
    }
}

impl TokenIndex {
    /// The tokens that can be used, of this app, or of this maker without an app.
    pub fn usable(app: Option<AppId>, maker: UserId) -> Self {
        app.map_or(TokenIndex::UsableOf { user: maker }, |app| TokenIndex::UsableIn { app })
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
    /// The removal of its token removes it. Stores of earlier versions may have some without a token.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::resource::Next;
    use contract::{Id, TokenId};
    use serde_json::json;
    use ulid::Ulid;

    const DAY: i64 = 24 * 3600 * 1000;

    fn day(day: i64) -> Timestamp {
        Timestamp::from_millis(day * DAY)
    }

    /// A token that ends on the tenth day.
    fn token() -> Token {
        Token {
            name: "ci".parse().unwrap(),
            scopes: vec![Scope::Deploy],
            app_id: None,
            created_by: Id::of(Ulid(2)),
            created_at: day(0),
            expires_at: Some(day(10)),
            revoked_at: None,
            digest: "d".into(),
            epoch: 0,
            identity: None,
            ended_at: None,
        }
    }

    fn of_ci() -> Token {
        let texts = ["repository", "repositoryId", "repositoryOwnerId", "workflowRef", "event"];
        let mut run: serde_json::Map<_, _> = texts
            .into_iter()
            .chain(["runId", "commit", "ref"])
            .map(|key| (key.into(), "x".into()))
            .collect();
        run.insert("issuer".into(), json!("https://ci.example.com"));
        let run = serde_json::from_value(run.into()).unwrap();
        Token {
            identity: Some(Identity { unique: "u".into(), expires_at: day(1), run }),
            ..token()
        }
    }

    fn after(token: Token, on: i64, command: Command) -> Token {
        let at = Moment { id: TokenId::of(Ulid(1)), now: day(on) };
        let step = Tokens::on_command(token, &at, command).unwrap();
        match step.next {
            Next::Put(token) => token,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_token_is_kept_for_a_time_after_its_first_end_and_one_of_ci_is_not() {
        let since = |on| vec![(Retention::Tokens, day(on))];
        assert_eq!(Tokens::retained(&token()), since(10));
        assert_eq!(Tokens::retained(&after(token(), 4, Command::Revoke)), since(4));
        assert_eq!(Tokens::retained(&after(token(), 9, Command::End(day(7)))), since(7));
        let endless = Token { expires_at: None, ..token() };
        assert_eq!(Tokens::retained(&endless), []);
        assert_eq!(Tokens::retained(&after(endless, 4, Command::Revoke)), since(4));
        assert_eq!(Tokens::retained(&of_ci()), []);
        let at = Moment { id: TokenId::of(Ulid(1)), now: day(41) };
        let over = Tokens::on_retention_over(token(), &at, Retention::Tokens).unwrap();
        assert!(matches!(over.next, Next::Remove));
    }

    #[test]
    fn only_a_token_that_can_be_used_and_is_not_of_ci_is_counted() {
        let app = AppId::of(Ulid(3));
        assert_eq!(token().usable(), Some(TokenIndex::UsableOf { user: token().created_by }));
        let of_app = Token { app_id: Some(app), ..token() };
        assert_eq!(of_app.usable(), Some(TokenIndex::UsableIn { app }));
        assert_eq!(of_ci().usable(), None);
        assert_eq!(after(token(), 4, Command::Revoke).usable(), None);
        assert_eq!(after(token(), 11, Command::End(day(10))).usable(), None);
    }
}
