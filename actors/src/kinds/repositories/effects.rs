//! Checks a repository.

use super::{
    access::access,
    rules::{Checked, Effect, Outcome, Repositories, Repository},
};
use crate::{
    ports::{Remote, Revision},
    runtime::resource::{Kept, Retry},
    world::World,
};
use std::{sync::Arc, time::Duration};

/// How long the host of a repository may take.
const WITHIN: Duration = Duration::from_secs(90);
/// How many findings are kept.
const MOST_FINDINGS: usize = 100;

pub(super) async fn perform(
    Effect::Check: Effect,
    repository: Arc<Kept<Repositories>>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let found = check(&repository, &world).await;
    Ok(Outcome { source: repository.source.clone(), found })
}

async fn check(repository: &Repository, world: &World) -> Result<Box<Checked>, String> {
    let source = &repository.source;
    let access = access(world, repository.app_id, source).await.map_err(|e| e.to_string())?;
    let revision = source.branch.clone().map_or(Revision::DefaultBranch, Revision::Branch);
    let remote = Remote { url: source.url.clone(), revision, token: access.token.clone() };
    let found = world.ports.sources.inspect(&remote, WITHIN).await;
    let found = found.map_err(|e| access.explained(e.to_string()))?;
    let mut report = repository::check(&found.files);
    report.findings.truncate(MOST_FINDINGS);
    Ok(Box::new(Checked {
        installation: access.ci.map(|ci| ci.installation),
        commit: found.commit,
        branch: found.git_ref,
        mode: report.mode,
        detected: report.detected,
        findings: report.findings,
        at: world.ports.clock.now(),
    }))
}
