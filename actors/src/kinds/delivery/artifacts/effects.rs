//! The effects of artifacts: verify the bytes, delete the bytes.

use super::rules::{Artifacts, Effect, Expected, Outcome, StoredArtifact};
use crate::{
    kinds::{
        people::{
            apps::{self, Apps},
            tenant::tenant,
        },
        world::World,
    },
    runtime::resource::Retry,
};
use contract::{ArtifactId, Fault};
use std::sync::Arc;
use store::Snapshot;

pub(super) async fn perform(
    effect: Effect,
    id: ArtifactId,
    kept: Snapshot<Artifacts>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let upload = &kept.state;
    match effect {
        Effect::Verify(expected) => verify(id, upload, &expected, &world).await,
        Effect::Discard => {
            world.ports.binaries.discard(id).await?;
            Ok(Outcome::Discarded)
        }
    }
}

async fn verify(
    id: ArtifactId,
    upload: &StoredArtifact,
    expected: &Expected,
    world: &World,
) -> Result<Outcome, Retry> {
    let binaries = &world.ports.binaries;
    let tenant = tenant(&world.store, upload.artifact.app_id)?;
    let _working_copy = binaries.working_copy(id);
    let mut examined = binaries.examine(tenant, id, upload.artifact.kind, &upload.staged).await?;
    let content = match upload.judge(expected, &examined) {
        Ok(content) => content,
        Err(problem) => return Ok(Outcome::Refused(problem)),
    };
    let Ok(identifier) = content.identifier.parse() else {
        return Ok(Outcome::Refused(format!(
            "the file's identifier {:?} is not one such as com.example.app",
            content.identifier
        )));
    };
    let signer = content.signer.as_ref().map(|signer| signer.sha256.clone());
    let held = apps::Command::Match { platform: upload.artifact.platform, identifier, signer };
    match world.to::<Apps>(upload.artifact.app_id).ask(held).await {
        Ok(_) => {}
        Err(Fault::NotAsDeclared(problem)) => return Ok(Outcome::Refused(problem)),
        Err(Fault::NotFound(_)) => {
            return Ok(Outcome::Refused("the app was deleted meanwhile".into()));
        }
        Err(fault) => return Err(fault.into()),
    }
    binaries.keep(id, &examined).await?;
    examined.content = Ok(content);
    Ok(Outcome::Accepted(Box::new(examined)))
}
