//! Exchanges the identity token of a CI job for a deploy token.

use crate::{
    call::{authn::TOKEN_PREFIX, authz, context::Call, lookup, platform::Platform},
    functions::delivery::builds::job::job_of,
    kinds::{
        delivery::trusted_publishers::{Command, Mismatch, Publisher, TrustedPublishers, matches},
        people::{
            accounts::{Accounts, digest},
            apps::Apps,
            tokens::{Identity, Token, Tokens},
        },
        world::World,
    },
    ports::identities::{IdentityError, Proven},
    runtime::entries::Under,
};
use contract::{
    AppId, Fault, PublisherId, Scope, Serves, Subject, TokenId,
    endpoint::oidc::ExchangeIdentity,
    text::RepositoryName,
    trusted_publishers::{CiRun, ExchangedToken},
};
use std::{sync::Arc, time::Duration};
use store::Snapshot;

/// How long a deploy token of a CI job lives.
const LIVES: Duration = Duration::from_secs(30 * 60);
/// How many publishers of one app are compared.
const MOST_COMPARED: usize = 200;

impl Serves<ExchangeIdentity> for Platform {
    async fn serve(&self, cx: &Call, p: ExchangeIdentity) -> Result<ExchangedToken, Fault> {
        let ports = &self.world.ports;
        let audience = &self.settings.api_url;
        let proven = ports.identities.verify(&p.body.token, audience, cx.now).await;
        let Proven { run, unique, expires_at, app } = proven.map_err(|e| match e {
            IdentityError::Invalid(why) => Fault::Unauthenticated(why),
            IdentityError::Unreachable(why) => {
                tracing::warn!(why, "the keys of an issuer of identity tokens cannot be read");
                Fault::Unavailable("the issuer of the identity token")
            }
        })?;
        // The token acts for the person who triggered the build, or who trusted the workflow.
        let upload = vec![Scope::ArtifactUpload];
        let mut trusted_by = None;
        let (app_id, acts_for, scopes, build) = match job_of(&self.world, &run).await? {
            Some(job) => (job.order.app_id, job.acts_for, upload, Some(job.order)),
            None => {
                let app = named(p.body.app_id, app)?;
                let app = app.ok_or_else(|| names_no_app(self, &run))?;
                let publisher = publisher_of(&self.world, &run, app)?;
                let (id, publisher) = publisher.map_err(Fault::Unauthenticated)?;
                pin(&self.world, id, &run.repository_id, &run.repository_owner_id).await?;
                trusted_by = Some(id);
                let scopes = [upload, vec![Scope::ReleaseCreate]].concat();
                (publisher.app_id, publisher.created_by, scopes, None)
            }
        };
        let ancestry = lookup::find(&self.world, &cx.caller, Subject::App(app_id))?;
        let maker = authz::account(&self.world.store, acts_for)?;
        if let Some(id) = trusted_by {
            check_stands(&self.world, id, &maker)?;
        }
        let secret = ports.random.secret(TOKEN_PREFIX, 40).map_err(|_| Fault::Internal)?;
        let token = Token {
            name: name(&run).map_err(Fault::Unauthenticated)?,
            scopes,
            app_id: Some(app_id),
            created_by: acts_for,
            created_at: cx.now,
            expires_at: Some(cx.now + LIVES),
            revoked_at: None,
            digest: digest(&secret),
            epoch: maker.token_epoch,
            identity: Some(Identity { unique, expires_at, run }),
            ended_at: None,
        };
        let id: TokenId = ports.random.id(cx.now);
        let expires_at = cx.now + LIVES;
        let exchanged = ExchangedToken { token: secret, app_id, expires_at, build };
        let cx = Call { ancestry: Arc::new(ancestry), ..cx.clone() };
        cx.to::<Tokens>(id).create(token, move |_| Ok(exchanged.clone())).await
    }
}

/// Refuses a publisher that a new password of its maker has ended, although it may not be removed
/// yet. The maker was read before, so a publisher that was removed since is seen here.
fn check_stands(world: &World, id: PublisherId, maker: &Snapshot<Accounts>) -> Result<(), Fault> {
    let publisher = world.store.get::<TrustedPublishers>(&id)?;
    let is_ending = |publisher: &Publisher| {
        maker.ends_reach.is_some() && publisher.maker_epoch < maker.token_epoch
    };
    match publisher {
        Some(publisher) if !is_ending(&publisher.state) => Ok(()),
        _ => Err(Fault::Unauthenticated(
            "the app trusts this job no longer: whoever added the trusted publisher has a new \
             password; svc_addTrustedPublisher adds it again"
                .into(),
        )),
    }
}

/// From now on, a publisher trusts only the repository and the owner with these ids.
pub(crate) async fn pin(
    world: &World,
    id: PublisherId,
    repository: &str,
    owner: &str,
) -> Result<(), Fault> {
    let unusable = |why| Fault::Unauthenticated(malformed(why));
    let pin = Command::Pin {
        repository: repository.parse().map_err(unusable)?,
        owner: owner.parse().map_err(unusable)?,
    };
    world.to::<TrustedPublishers>(id).ask(pin).await.map(|_| ())
}

/// A publisher of the app that trusts a run. The inner error says why there is none.
pub(crate) fn publisher_of(
    world: &World,
    run: &CiRun,
    app: AppId,
) -> Result<Result<(PublisherId, Snapshot<TrustedPublishers>), String>, Fault> {
    let name = match run.repository.parse::<RepositoryName>() {
        Ok(name) => name,
        Err(why) => return Ok(Err(malformed(why))),
    };
    let store = &world.store;
    let of_app = Under::<Apps>(app);
    let mut nearest: Option<Mismatch> = None;
    for found in store.newest::<TrustedPublishers>(&of_app, None).take(MOST_COMPARED) {
        let (key, seen) = found?;
        if !seen.repository.as_str().eq_ignore_ascii_case(name.as_str()) {
            continue;
        }
        match matches(&seen.state, run) {
            Ok(()) => return Ok(Ok((key, seen))),
            Err(mismatch) => nearest = Some(mismatch),
        }
    }
    Ok(Err(match nearest {
        Some(mismatch) => {
            format!("the app does not trust this job of {}: {mismatch}", run.repository)
        }
        None => format!(
            "the app does not trust {}: svc_addTrustedPublisher adds the repository and the \
             workflow",
            run.repository
        ),
    }))
}

/// The fault for a run of which nothing says for which app it works.
fn names_no_app(platform: &Platform, run: &CiRun) -> Fault {
    let central = platform.world.ports.ci.as_deref().and_then(|ci| ci.central());
    let is_central =
        |repository: &RepositoryName| repository.as_str().eq_ignore_ascii_case(&run.repository);
    if central.is_some_and(|central| is_central(&central.repository)) {
        // The service learns of a run that it began only after GitHub has begun it.
        return Fault::Unauthenticated(format!(
            "no build waits for run {} of {}",
            run.run_id, run.repository
        ));
    }
    Fault::invalid(
        "appId",
        format!(
            "is needed: name the app here, or in the audience {}/apps/{{appId}}",
            platform.settings.api_url
        ),
    )
}

/// The app that the request or the audience of the token names.
fn named(requested: Option<AppId>, audience: Option<AppId>) -> Result<Option<AppId>, Fault> {
    match (requested, audience) {
        (Some(requested), Some(audience)) if requested != audience => Err(Fault::Unauthenticated(
            format!("the identity token is for {audience}, and not for {requested}"),
        )),
        (requested, audience) => Ok(requested.or(audience)),
    }
}

fn name(run: &CiRun) -> Result<contract::Name, String> {
    let name = format!("run {} of {}", run.run_id, run.repository);
    name.chars().take(120).collect::<String>().parse().map_err(malformed)
}

fn malformed(problem: impl std::fmt::Display) -> String {
    format!("a claim of the job {problem}")
}
