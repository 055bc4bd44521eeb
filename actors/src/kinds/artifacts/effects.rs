//! What an artifact does outside of its record.

use super::rules::{Artifacts, Effect, Expected, FollowUp, Outcome, Upload};
use crate::{
    kinds::{apps, releases},
    runtime::resource::{Kept, Retry},
    world::World,
};
use contract::{ArtifactId, Fault};
use std::{sync::Arc, time::Duration};

/// How long the targets may take.
const PUBLISH_WITHIN: Duration = Duration::from_secs(300);

pub(super) async fn perform(
    effect: Effect,
    id: ArtifactId,
    kept: Arc<Kept<Artifacts>>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let upload = &kept.state;
    match effect {
        Effect::Verify(expected) => verify(id, upload, &expected, &world).await,
        Effect::Release => match &upload.follow_up {
            Some(follow_up) => release(id, upload, follow_up, &world).await,
            None => Ok(Outcome::Released(None)),
        },
        Effect::Discard { .. } => {
            world.ports.binaries.discard(id).await?;
            Ok(Outcome::Discarded)
        }
    }
}

async fn verify(
    id: ArtifactId,
    upload: &Upload,
    expected: &Expected,
    world: &World,
) -> Result<Outcome, Retry> {
    let binaries = &world.ports.binaries;
    let examined = binaries.examine(upload.artifact.app_id, id, upload.artifact.kind).await?;
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
    match world.owners()?.apps.ask(upload.artifact.app_id, held).await {
        Ok(_) => {}
        Err(Fault::NotAsDeclared(problem)) => return Ok(Outcome::Refused(problem)),
        Err(Fault::NotFound(_)) => {
            return Ok(Outcome::Refused("the app was deleted meanwhile".into()));
        }
        Err(fault) => return Err(fault.into()),
    }
    binaries.keep(id, &examined).await?;
    Ok(Outcome::Accepted(Box::new(examined)))
}

/// Makes the release and publishes it. Both can be repeated: the id is settled.
async fn release(
    id: ArtifactId,
    upload: &Upload,
    follow_up: &FollowUp,
    world: &World,
) -> Result<Outcome, Retry> {
    let releases = &world.owners()?.releases;
    let created = releases::draft(
        world,
        follow_up.release_id,
        releases::Wanted {
            app_id: upload.artifact.app_id,
            artifact_ids: vec![id],
            version: follow_up.version.clone(),
            channel: follow_up.channel.clone(),
            notes: follow_up.notes.clone(),
            created_by: follow_up.created_by,
        },
    );
    let draft = match created {
        Ok(draft) => draft,
        Err(fault) => return Ok(Outcome::Released(Some(fault.to_string()))),
    };
    match releases.create(follow_up.release_id, draft).await {
        Ok(_) => {}
        Err(
            fault @ (Fault::Exists(_) | Fault::NotNow(_) | Fault::NotFound(_) | Fault::Invalid(_)),
        ) => {
            return Ok(Outcome::Released(Some(fault.to_string())));
        }
        Err(fault) => return Err(fault.into()),
    }
    if follow_up.publish.is_empty() {
        return Ok(Outcome::Released(None));
    }
    let published = async {
        // An attempt before a crash may be under way, or done.
        let before = releases.wait_idle(follow_up.release_id, PUBLISH_WITHIN).await?;
        if before.is_some_and(|state| state.release.published_at.is_some()) {
            return Ok(());
        }
        let command = releases::publish(world, follow_up.release_id, &follow_up.publish, None)?;
        releases.ask(follow_up.release_id, command).await?;
        releases.wait_idle(follow_up.release_id, PUBLISH_WITHIN).await.map(|_| ())
    };
    match published.await {
        Ok(()) => Ok(Outcome::Released(None)),
        Err(fault @ (Fault::NotNow(_) | Fault::NotFound(_))) => {
            Ok(Outcome::Released(Some(fault.to_string())))
        }
        Err(fault) => Err(fault.into()),
    }
}
