//! `svc token`: deploy tokens for CI jobs.

use crate::{
    Context,
    args::TokenCommand,
    failure::Failure,
    lists,
    printer::{Fields, Table, cell, moment},
    values::Expiry,
};
use contract::{
    Patch, Scope, Timestamp,
    page::Limit,
    tokens::{CreateDeployToken, DeployToken, GetDeployTokens, RevokeDeployToken},
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub fn token(cx: &Context<'_>, command: TokenCommand) -> Result<(), Failure> {
    let client = cx.client()?;
    match command {
        TokenCommand::Create { name, scope, app, expires } => {
            let expires_at = match expires {
                None => Patch::Keep,
                Some(Expiry::Never) => Patch::Clear,
                Some(Expiry::At(moment)) => Patch::Set(moment),
                Some(Expiry::In(time)) => Patch::Set(after(time)),
            };
            let params = CreateDeployToken {
                name,
                scopes: Failure::list("--scope", scope)?,
                app_id: app,
                expires_at,
            };
            let made = client.call(&params)?;
            cx.printer
                .reply(&made, |made| fields(&made.deploy_token).with("token", &made.token))?;
            cx.printer.note("keep the token now: it is not shown again");
            Ok(())
        }
        TokenCommand::List { app, all } => {
            let limit = Limit::default();
            let tokens =
                client.list(all, |cursor| GetDeployTokens { app_id: app, limit, cursor })?;
            lists::print(cx, &tokens, |tokens| {
                let headings = ["ID", "NAME", "SCOPES", "APP", "LAST USED", "ENDS"];
                tokens.iter().fold(Table::new(headings), |table, token| {
                    table.row([
                        token.id.to_string(),
                        token.name.to_string(),
                        scopes(&token.scopes),
                        cell(token.app_id),
                        cell(token.last_used_at.map(moment)),
                        end(token),
                    ])
                })
            })
        }
        TokenCommand::Revoke { id } => {
            let revoked = client.call(&RevokeDeployToken { token_id: id })?;
            cx.printer.reply(&revoked, |token| format!("{} is revoked", token.id))
        }
    }
}

/// The fields of a token for people.
pub fn fields(token: &DeployToken) -> Fields {
    Fields::new()
        .with("id", token.id)
        .with("name", &token.name)
        .with("scopes", scopes(&token.scopes))
        .with_some("app", token.app_id)
        .with("ends", end(token))
}

fn scopes(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| scope.name()).collect::<Vec<_>>().join(",")
}

fn end(token: &DeployToken) -> String {
    match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!("revoked {}", moment(at)),
        (None, Some(at)) => moment(at),
        (None, None) => "never".to_owned(),
    }
}

/// The moment this long after the present. With a clock before 1970, the service refuses the token
/// as expired.
fn after(time: Duration) -> Timestamp {
    #[allow(clippy::disallowed_methods, reason = "the client has no port for time")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_millis(0) + now + time
}
