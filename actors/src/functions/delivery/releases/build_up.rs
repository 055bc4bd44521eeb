//! Several jobs build up a release, in any order and at the same time. Each job adds its verified
//! artifact; the first job creates the release.

use super::{
    commands::{self, NewRelease, of_version},
    idle_release,
    room::check_room,
};
use crate::{
    call::{authz::authorize, context::Call, lookup},
    kinds::delivery::{
        artifacts::Artifacts,
        publications::check_key,
        releases::{Releases, transitions::targets_of},
    },
    runtime::{redecide::redecided, resource::StateOf, store::get},
};
use contract::{
    BoundedSet, Fault, Operation, ReleaseId, VersionName,
    artifacts::Artifact,
    endpoint::ReleaseRequest,
    releases::{PublicationState, PublishRelease, Release, Target},
};

/// Checks whether the caller may publish the release, and whether its targets can work, before
/// the artifact is verified. If the release does not exist yet, the caller creates it.
pub fn check_release_request(
    cx: &Call,
    artifact: &Artifact,
    request: &ReleaseRequest,
) -> Result<(), Fault> {
    let (world, app) = (&cx.world, artifact.app_id);
    let mut kinds = vec![artifact.kind];
    let Some(version) = request.version.as_ref().or(artifact.version.as_ref()) else {
        // Only the file tells to which release it belongs.
        return request.publish.iter().try_for_each(|target| check_key(world, app, *target));
    };
    let Some(id) = of_version(world, app, &request.channel, version)? else {
        check_room(world, app, &request.channel, request.publish.is_empty())?;
        return commands::check_targets(world, app, None, &kinds, &request.publish);
    };
    let seen = get::<Releases>(&world.store, id)?;
    let release = &seen.state.release;
    for id in &release.artifact_ids {
        kinds.push(get::<Artifacts>(&world.store, *id)?.state.artifact.kind);
    }
    let targets = targets_of(release);
    let is_repeated = |target: &Target| was_published(release, artifact, *target);
    let new = request.publish.iter().copied();
    let new: Vec<_> = new.filter(|t| !targets.contains(t) && !is_repeated(t)).collect();
    if !new.is_empty() {
        check_publish(cx, id)?;
    }
    commands::check_targets(world, app, Some(release), &kinds, &new)
}

/// Adds a verified artifact to the release of its version and channel, and publishes the
/// release if the request asks for that. A repetition changes nothing.
pub async fn bring_to_release(
    cx: &Call,
    artifact: &Artifact,
    request: &ReleaseRequest,
) -> Result<(), Fault> {
    let done = try_bring_to_release(cx, artifact, request).await;
    let told = |why: String| {
        format!("the artifact {} is verified, but not in a release: {why}", artifact.id)
    };
    done.map_err(|fault| match fault {
        Fault::Exists(why) => Fault::Exists(told(why)),
        Fault::NotNow(why) => Fault::NotNow(told(why)),
        fault => fault,
    })
}

async fn try_bring_to_release(
    cx: &Call,
    artifact: &Artifact,
    request: &ReleaseRequest,
) -> Result<(), Fault> {
    let version = request.version.clone().or_else(|| artifact.version.clone());
    let version = version.ok_or(Fault::Internal)?;
    let id = make_or_join(cx, artifact, request, &version).await?.release.id;
    cx.note(&id.to_string());
    match idle_release(&cx.world, id).await {
        // The artifact joined the release; another caller deleted the release since.
        Ok(_) | Err(Fault::NotFound(_)) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// Creates the release of a version with this artifact, or adds the artifact to it, and
/// publishes it if the request asks for that. All of it happens in one change, or nothing.
async fn make_or_join(
    cx: &Call,
    artifact: &Artifact,
    request: &ReleaseRequest,
    version: &VersionName,
) -> Result<StateOf<Releases>, Fault> {
    let world = &cx.world;
    redecided(async || {
        match of_version(world, artifact.app_id, &request.channel, version)? {
            Some(id) => {
                let join = async {
                    let may_publish = match check_publish(cx, id) {
                        Ok(()) => true,
                        Err(Fault::MissingScope(_)) => false,
                        Err(fault) => return Err(fault),
                    };
                    let targets = &request.publish;
                    let bring = commands::bring(world, id, artifact.id, targets, may_publish)?;
                    world.to::<Releases>(id).ask(bring).await
                };
                match join.await {
                    // Another caller deleted the release meanwhile.
                    Err(Fault::NotFound("release")) => Err(Fault::Stale),
                    joined => joined,
                }
            }
            None => {
                let app = artifact.app_id;
                let _turn = world.creation(app).await?;
                check_room(world, app, &request.channel, request.publish.is_empty())?;
                let id = world.ports.random.id(world.ports.clock.now());
                let wanted = NewRelease {
                    app_id: app,
                    artifact_ids: vec![artifact.id],
                    version: Some(version.clone()),
                    channel: request.channel.clone(),
                    notes: request.notes.clone(),
                    publish: request.publish.to_vec(),
                };
                let draft = commands::draft(world, &cx.caller, id, wanted)?;
                match world.to::<Releases>(id).create(draft).await {
                    // Another job created the release meanwhile.
                    Err(Fault::Exists(_)) => Err(Fault::Stale),
                    made => made,
                }
            }
        }
    })
    .await
}

/// Authorizes the caller as for `svc_publishRelease`.
fn check_publish(cx: &Call, release_id: ReleaseId) -> Result<(), Fault> {
    let publish = PublishRelease {
        release_id,
        targets: BoundedSet::one(Target::Ota),
        rollout: None,
        notes: None,
        options: None,
    };
    let requirement = publish.requirement();
    let ancestry = lookup::find(&cx.world, &cx.caller, requirement.subject)?;
    authorize(&cx.world, &cx.caller, &requirement, &ancestry)
}

/// Whether the target published the artifact at any time, even if a rollback halted it since.
fn was_published(release: &Release, artifact: &Artifact, target: Target) -> bool {
    release.publications.iter().any(|publication| {
        publication.artifact_id == artifact.id
            && publication.target == target
            && matches!(publication.state, PublicationState::Live | PublicationState::Halted)
    })
}
