//! The handlers of the group Deploy tokens.

use crate::{
    call::{authn::TOKEN_PREFIX, authz, context::Call, platform::Platform},
    kinds::{
        people::{
            accounts::digest,
            apps::Apps,
            tokens::{Command, LastUse, Token, TokenIndex, Tokens},
        },
        world::World,
    },
    runtime::{entries::Under, pagination, store::Store},
};
use contract::{
    AppId, Fault, Page, Patch, Serves, Timestamp, TokenId, UserId,
    tokens::{
        CreateDeployToken, DEFAULT_DAYS, DeployToken, GetDeployTokens, MOST, NewDeployToken,
        RevokeDeployToken,
    },
};
use std::time::Duration;
use store::Snapshot;

/// How long a token lives unless its maker says otherwise.
const DEFAULT_LIFE: Duration = Duration::from_secs(DEFAULT_DAYS * 24 * 3600);
/// How many tokens are looked at to find room. Stores of earlier versions may have more than [`MOST`].
const MOST_LOOKED_AT: usize = 1_000;

/// The token as a reply shows it.
pub fn show_token(store: &Store, id: TokenId, token: &Token) -> Result<DeployToken, Fault> {
    let used = store.get::<LastUse>(&id)?;
    let maker = authz::account(store, token.created_by)?;
    let app = token.app_id.map(|id| store.get::<Apps>(&id)).transpose()?.flatten();
    Ok(DeployToken {
        id,
        name: token.name.clone(),
        scopes: token.scopes.clone(),
        app_id: token.app_id,
        app_name: app.map(|seen| seen.state.name.clone()),
        created_by: token.created_by,
        created_at: token.created_at,
        expires_at: token.expires_at,
        last_used_at: used.map(|used| used.at),
        revoked_at: token.revoked_at(&maker),
    })
}

/// Refuses one token more than [`MOST`] of an app, or of a maker without an app. The caller holds the turn to
/// create one.
async fn check_room(
    world: &World,
    app: Option<AppId>,
    maker: UserId,
    now: Timestamp,
) -> Result<(), Fault> {
    let usable = TokenIndex::usable(app, maker);
    let is_full = || {
        let found = world.store.oldest::<Tokens>(&usable, None);
        found.count_up_to(MOST).map(|found| found >= MOST)
    };
    if !is_full()? {
        return Ok(());
    }
    end_those_over(world, &usable, now).await?;
    let whose = if app.is_some() { "this app has" } else { "you have" };
    match is_full()? {
        true => Err(Fault::NotNow(format!(
            "{whose} {MOST} deploy tokens that can be used, which is the most; revoke one with svc_revokeDeployToken first"
        ))),
        false => Ok(()),
    }
}

/// Tells those of the oldest usable tokens that cannot be used any more. Nobody tells a token that it has
/// expired, or that all tokens of its maker were revoked, until the room is needed.
async fn end_those_over(world: &World, usable: &TokenIndex, now: Timestamp) -> Result<(), Fault> {
    let mut over = Vec::new();
    for found in world.store.oldest::<Tokens>(usable, None).take(MOST_LOOKED_AT) {
        let (id, token) = found?;
        let maker = authz::account(&world.store, token.created_by)?;
        let ended = token.revoked_at(&maker).or(token.expires_at.filter(|end| *end <= now));
        over.extend(ended.map(|ended| (id, ended)));
    }
    for (id, ended) in over {
        world.to::<Tokens>(id).ask_if_there(Command::End(ended)).await?;
    }
    Ok(())
}

impl Serves<CreateDeployToken> for Platform {
    async fn serve(&self, cx: &Call, p: CreateDeployToken) -> Result<NewDeployToken, Fault> {
        let mut scopes = p.scopes.into_vec();
        scopes.sort();
        let expires_at = match p.expires_at {
            Patch::Keep => Some(cx.now + DEFAULT_LIFE),
            Patch::Clear => None,
            Patch::Set(end) => Some(end),
        };
        if expires_at.is_some_and(|end| end <= cx.now) {
            return Err(Fault::invalid("expiresAt", "must lie ahead"));
        }
        let id: TokenId = self.world.ports.random.id(cx.now);
        let secret =
            self.world.ports.random.secret(TOKEN_PREFIX, 40).map_err(|_| Fault::Internal)?;
        let maker = cx.user()?;
        authz::check_maker(&self.world, maker, &cx.ancestry)?;
        let _turn = match p.app_id {
            Some(app) => self.world.creation(app).await?,
            None => self.world.creation(maker.id).await?,
        };
        check_room(&self.world, p.app_id, maker.id, cx.now).await?;
        let token = Token {
            name: p.name.into(),
            scopes,
            app_id: p.app_id,
            created_by: maker.id,
            created_at: cx.now,
            expires_at,
            revoked_at: None,
            digest: digest(&secret),
            epoch: maker.account.token_epoch,
            identity: None,
            ended_at: None,
        };
        let world = self.world.clone();
        cx.to::<Tokens>(id)
            .create(token, move |token| {
                let deploy_token = show_token(&world.store, id, token)?;
                Ok(NewDeployToken { token: secret.clone(), deploy_token })
            })
            .await
    }
}

impl Serves<GetDeployTokens> for Platform {
    async fn serve(&self, cx: &Call, p: GetDeployTokens) -> Result<Page<DeployToken>, Fault> {
        let (store, page) = (&self.world.store, (p.limit, p.cursor));
        let show = |id, seen: &Snapshot<Tokens>| Ok(Some(show_token(store, id, seen)?));
        match (p.app_id, cx.listed_user()?) {
            (Some(app), _) => pagination::counted(store, &Under::<Apps>(app), page, false, show),
            (None, Some(user)) => {
                let entry = TokenIndex::Maker { user: user.id };
                pagination::counted(store, &entry, page, false, show)
            }
            (None, None) => pagination::whole(store, page, show),
        }
    }
}

impl Serves<RevokeDeployToken> for Platform {
    async fn serve(&self, cx: &Call, p: RevokeDeployToken) -> Result<DeployToken, Fault> {
        let world = self.world.clone();
        cx.to::<Tokens>(p.token_id)
            .change(Command::Revoke, move |token| show_token(&world.store, p.token_id, token))
            .await
    }
}
