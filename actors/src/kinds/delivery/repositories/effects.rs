//! Checks a repository.

use super::{
    DeployKey, HostTrust,
    access::{READ_WITHIN, access},
    rules::{Checked, Effect, Outcome, Repositories, Repository, Source},
};
use crate::{
    kinds::{people::tenant::tenant, world::World},
    ports::sources::{Remote, Revision},
    runtime::resource::Retry,
};
use contract::{AppId, ssh::SshHostKey};
use repository::other_host_key;
use std::{sync::Arc, time::Duration};
use store::Snapshot;

/// How long an ssh host may take to tell its key.
const MET_WITHIN: Duration = Duration::from_secs(20);
/// How many findings are kept.
const MOST_FINDINGS: usize = 100;

pub(super) async fn perform(
    Effect::Check: Effect,
    repository: Snapshot<Repositories>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let Repository { app_id, source, .. } = &repository.state;
    let (host_key, found) = match meet(*app_id, source, &world).await {
        Ok(Some(learned)) => {
            let source = source.clone().with_host_key(Some(learned.clone()));
            (Some(learned), check(*app_id, &source, &world).await)
        }
        Ok(None) => (None, check(*app_id, source, &world).await),
        Err(why) => (None, Err(why)),
    };
    Ok(Outcome { source: source.clone(), host_key, found })
}

/// Asks an ssh host for its key, if it is not known.
async fn meet(app: AppId, source: &Source, world: &World) -> Result<Option<SshHostKey>, String> {
    let Some(DeployKey { host, .. }) = &source.deploy_key else { return Ok(None) };
    if let HostTrust::Pinned(_) = host {
        return Ok(None);
    }
    let tenant = tenant(&world.store, app).map_err(|e| e.to_string())?;
    let presented = world.ports.sources.host_key(tenant, &source.url, MET_WITHIN).await;
    let presented = presented.map_err(|e| e.to_string())?;
    match host {
        HostTrust::Expected(expected) if !host.accepts(&presented) => {
            Err(other_host_key(&presented.fingerprint(), expected))
        }
        _ => Ok(Some(presented)),
    }
}

async fn check(app: AppId, source: &Source, world: &World) -> Result<Box<Checked>, String> {
    let mut access = access(world, app, source).await.map_err(|e| e.to_string())?;
    let revision = source.branch.clone().map_or(Revision::DefaultBranch, Revision::Branch);
    let credential = access.credential.take();
    let tenant = tenant(&world.store, app).map_err(|e| e.to_string())?;
    let remote = Remote { tenant, url: source.url.clone(), revision, credential };
    let found = world.ports.sources.inspect(&remote, READ_WITHIN).await;
    let found = found.map_err(|e| access.explained(e.to_string()))?;
    let mut report = repository::check(&found.files);
    if let Some(why) = access.withheld_consent {
        report.add_withheld_consent(why);
    }
    report.findings.truncate(MOST_FINDINGS);
    Ok(Box::new(Checked {
        installation: access.ci.map(|ci| ci.installation),
        commit: found.commit,
        branch: found.git_ref,
        mode: report.mode,
        detected: report.detected,
        findings: report.findings,
        profiles: report.profiles,
        at: world.ports.clock.now(),
    }))
}
