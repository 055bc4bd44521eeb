//! Checks a repository.

use super::rules::{Checked, Effect, Outcome, Repositories, Repository};
use crate::{
    ports::{Remote, Revision, sealed::SealError},
    runtime::resource::{Kept, Retry},
    world::World,
};
use contract::text::AccessToken;
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
    let token = open(world, repository).map_err(|e| e.to_string())?;
    let revision = source.branch.clone().map_or(Revision::DefaultBranch, Revision::Branch);
    let remote = Remote { url: source.url.clone(), revision, token };
    let found = world.ports.sources.inspect(&remote, WITHIN).await.map_err(|e| e.to_string())?;
    let mut report = repository::check(&found.files);
    report.findings.truncate(MOST_FINDINGS);
    Ok(Box::new(Checked {
        commit: found.commit,
        branch: found.git_ref,
        mode: report.mode,
        detected: report.detected,
        findings: report.findings,
        at: world.ports.clock.now(),
    }))
}

/// The token of a repository, if it has one.
pub(super) fn open(
    world: &World,
    repository: &Repository,
) -> Result<Option<AccessToken>, SealError> {
    let app = repository.app_id.to_string();
    let token = repository.source.token.as_ref();
    let token = token.map(|token| world.ports.sealer.open(&app, token)).transpose()?;
    Ok(token.and_then(|token| token.parse().ok()))
}
