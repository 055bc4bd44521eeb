//! The functions of the group Deploy tokens.

use super::{Command, LastUse, Token, Tokens};
use crate::{
    call::{authn::TOKEN_PREFIX, context::Call, pagination},
    kinds::{accounts::digest, apps::Apps, tokens::TokenIndex},
    platform::Platform,
    runtime::{entries::Under, store::Store},
};
use contract::{
    Fault, Page, Serves, Timestamp, TokenId,
    tokens::{CreateDeployToken, DeployToken, GetDeployTokens, NewDeployToken, RevokeDeployToken},
};
use store::Snapshot;

/// A token as people see it.
fn view(id: TokenId, token: &Token, last_used_at: Option<Timestamp>) -> DeployToken {
    DeployToken {
        id,
        name: token.name.clone(),
        scopes: token.scopes.clone(),
        app_id: token.app_id,
        created_by: token.created_by,
        created_at: token.created_at,
        expires_at: token.expires_at,
        last_used_at,
        revoked_at: token.revoked_at,
    }
}

fn last_use(store: &Store, id: TokenId) -> Result<Option<Timestamp>, Fault> {
    Ok(store.get::<LastUse>(&id)?.map(|used| used.at))
}

impl Serves<CreateDeployToken> for Platform {
    async fn serve(&self, cx: &Call, p: CreateDeployToken) -> Result<NewDeployToken, Fault> {
        let mut scopes = p.scopes.into_vec();
        scopes.sort();
        if p.expires_at.is_some_and(|end| end <= cx.now) {
            return Err(Fault::invalid("expiresAt", "must lie ahead"));
        }
        let id: TokenId = self.world.ports.random.id(cx.now);
        let secret =
            self.world.ports.random.secret(TOKEN_PREFIX, 40).map_err(|_| Fault::Internal)?;
        let token = Token {
            name: p.name,
            scopes,
            app_id: p.app_id,
            created_by: cx.user()?.id,
            created_at: cx.now,
            expires_at: p.expires_at,
            revoked_at: None,
            digest: digest(&secret),
        };
        cx.create(&self.world, &self.owners()?.tokens, id, token, move |token| {
            Ok(NewDeployToken { token: secret.clone(), deploy_token: view(id, token, None) })
        })
        .await
    }
}

impl Serves<GetDeployTokens> for Platform {
    async fn serve(&self, cx: &Call, p: GetDeployTokens) -> Result<Page<DeployToken>, Fault> {
        let (store, slice) = (&self.world.store, (p.limit, p.cursor));
        let show = |id, seen: &Snapshot<Tokens>| Ok(Some(view(id, seen, last_use(store, id)?)));
        match p.app_id {
            Some(app) => pagination::page(store, &Under::<Apps>(app), slice, show),
            None => {
                pagination::page(store, &TokenIndex::Maker { user: cx.user()?.id }, slice, show)
            }
        }
    }
}

impl Serves<RevokeDeployToken> for Platform {
    async fn serve(&self, cx: &Call, p: RevokeDeployToken) -> Result<DeployToken, Fault> {
        let used = last_use(&self.world.store, p.token_id)?;
        let owners = &self.owners()?.tokens;
        cx.change(&self.world, owners, p.token_id, Command::Revoke, move |token| {
            Ok(view(p.token_id, token, used))
        })
        .await
    }
}
