//! Builds the commands to a release from the records in the store.

use crate::{
    call::context::{Caller, Credential},
    kinds::{
        delivery::{
            artifacts::Artifacts,
            publications::{check_key, options_of},
            releases::{
                Command, Draft, Releases, policy,
                rules::{Offer, ReleaseClaim},
                transitions::targets_of,
            },
        },
        people::apps::Apps,
        world::World,
    },
    runtime::store::get,
};
use contract::{
    AppId, ArtifactId, Channel, Fault, Notes, Patch, ReleaseId, VersionName,
    artifacts::{Artifact, ArtifactKind, ArtifactState},
    publishing::{Percent, StoreOptions},
    releases::{Release, ReleaseState, Target},
};
use store::Snapshot;

/// A request to create a release.
#[derive(Debug, Clone)]
pub struct NewRelease {
    pub app_id: AppId,
    pub artifact_ids: Vec<ArtifactId>,
    /// `None`: the version of the artifacts.
    pub version: Option<VersionName>,
    pub channel: Channel,
    pub notes: Option<Notes>,
    /// The targets to which it is published at once.
    pub publish: Vec<Target>,
}

/// Drafts a release. Fails unless all artifacts are verified, and of this app and one version.
pub fn draft(
    world: &World,
    caller: &Caller,
    id: ReleaseId,
    wanted: NewRelease,
) -> Result<Draft, Fault> {
    let mut ids = wanted.artifact_ids;
    ids.sort();
    let mut version = wanted.version;
    let mut artifacts = Vec::with_capacity(ids.len());
    for id in &ids {
        let seen = usable(world, *id, wanted.app_id, &wanted.channel, version.as_ref())?;
        version = version.or_else(|| seen.state.artifact.version.clone());
        artifacts.push(seen);
    }
    let user = caller.user.as_ref();
    let release = Release {
        id,
        app_id: wanted.app_id,
        version: version.ok_or_else(|| Fault::invalid("version", "is required"))?,
        channel: wanted.channel,
        notes: wanted.notes,
        artifact_ids: ids,
        state: ReleaseState::Draft,
        publications: Vec::new(),
        rolled_back_to: None,
        created_by: user.map(|user| user.id),
        created_at: world.ports.clock.now(),
        published_at: None,
        options: StoreOptions::default(),
    };
    let by_token = user.and_then(|user| match user.credential {
        Credential::Token(id, _) => Some(id),
        Credential::Session(..) => None,
    });
    let wanted = publications(world, &release, &artifacts, &wanted.publish, None)?;
    Ok(Draft { release, by_token, artifacts, wanted })
}

/// The command that adds artifacts to a release and changes its notes.
pub fn update(
    world: &World,
    id: ReleaseId,
    add: &[ArtifactId],
    notes: Patch<Notes>,
) -> Result<Command, Fault> {
    let seen = get::<Releases>(&world.store, id)?;
    let release = &seen.state.release;
    let mut held = Vec::with_capacity(release.artifact_ids.len());
    for id in &release.artifact_ids {
        let seen = get::<Artifacts>(&world.store, *id)?;
        held.push((*id, seen.state.artifact.platform));
    }
    let (mut joining, mut offers) = (Vec::new(), Vec::new());
    for id in add {
        let version = Some(&release.version);
        let seen = usable(world, *id, release.app_id, &release.channel, version)?;
        offers.extend(offers_of(world, &seen, &Target::ALL));
        joining.push(seen);
    }
    Ok(Command::Update { held, joining, offers, notes })
}

/// A request to publish a release.
pub struct Publish<'a> {
    pub targets: &'a [Target],
    pub notes: Option<Notes>,
    pub rollout: Option<Percent>,
    pub options: Option<StoreOptions>,
}

/// The command that publishes a release.
pub fn publish(world: &World, id: ReleaseId, wanted: Publish<'_>) -> Result<Command, Fault> {
    let Publish { targets, notes, rollout, options } = wanted;
    let seen = get::<Releases>(&world.store, id)?;
    let release = &seen.state.release;
    let chosen = Release {
        options: crate::kinds::delivery::releases::transitions::merged(
            &release.options,
            options.clone(),
        ),
        ..release.clone()
    };
    let held = release.artifact_ids.clone();
    let artifacts = held.iter().map(|id| get::<Artifacts>(&world.store, *id));
    let artifacts = artifacts.collect::<Result<Vec<_>, _>>()?;
    let wanted = publications(world, &chosen, &artifacts, targets, rollout)?;
    Ok(Command::Publish { held, wanted, notes, rollout, options })
}

/// The publications of a release with these artifacts. What a target lacks is said now: an artifact
/// that it takes, a choice, a credential.
fn publications(
    world: &World,
    release: &Release,
    artifacts: &[Snapshot<Artifacts>],
    targets: &[Target],
    rollout: Option<Percent>,
) -> Result<Vec<Offer>, Fault> {
    let mut wanted = Vec::new();
    for seen in artifacts {
        if !targets.is_empty() {
            allowed(world, release.app_id, &release.channel, &seen.state.artifact)?;
        }
        for offer in offers_of(world, seen, targets) {
            options_of(release, offer.target, seen.state.artifact.platform, rollout)?;
            wanted.push(offer);
        }
    }
    let kinds = artifacts.iter().map(|seen| seen.state.artifact.kind).collect::<Vec<_>>();
    check_targets(world, release.app_id, Some(release), &kinds, targets)?;
    Ok(wanted)
}

/// Refuses targets that cannot work for files of these kinds. Those that a release is published to
/// are not looked at.
pub fn check_targets(
    world: &World,
    app: AppId,
    release: Option<&Release>,
    kinds: &[ArtifactKind],
    targets: &[Target],
) -> Result<(), Fault> {
    let known = release.map(targets_of).unwrap_or_default();
    for target in targets {
        if !kinds.iter().any(|kind| target.takes(*kind)) {
            let name = target.name();
            return Err(Fault::NotNow(format!(
                "the release has no artifact that {name} takes; add one with svc_updateRelease, or choose other targets"
            )));
        }
        if !known.contains(target) {
            check_key(world, app, *target)?;
        }
    }
    Ok(())
}

/// The command that adds an artifact to a release, unless the release holds it, and publishes the
/// release. `may_publish`: also to targets that the release is not published to.
pub fn bring(
    world: &World,
    id: ReleaseId,
    artifact: ArtifactId,
    targets: &[Target],
    may_publish: bool,
) -> Result<Command, Fault> {
    let seen = get::<Releases>(&world.store, id)?;
    let release = &seen.state.release;
    let artifacts = release.artifact_ids.iter().map(|id| get::<Artifacts>(&world.store, *id));
    let mut artifacts = artifacts.collect::<Result<Vec<_>, _>>()?;
    let held = artifacts.iter().map(|seen| &seen.state.artifact);
    let held: Vec<_> = held.map(|artifact| (artifact.id, artifact.platform)).collect();
    let (mut joining, mut offers) = (Vec::new(), Vec::new());
    if !release.artifact_ids.contains(&artifact) {
        let version = Some(&release.version);
        let seen = usable(world, artifact, release.app_id, &release.channel, version)?;
        offers = offers_of(world, &seen, &Target::ALL);
        artifacts.push(seen.clone());
        joining.push(seen);
    }
    let wanted = publications(world, release, &artifacts, targets, None)?;
    Ok(Command::Bring { held, joining, offers, wanted, may_publish })
}

/// The release of a version in a channel.
pub fn of_version(
    world: &World,
    app: AppId,
    channel: &Channel,
    version: &VersionName,
) -> Result<Option<ReleaseId>, Fault> {
    world.store.holder(&ReleaseClaim::of(app, channel, version))
}

/// Reads an artifact. Fails if a release of this app, channel and version cannot hold it.
fn usable(
    world: &World,
    id: ArtifactId,
    app: AppId,
    channel: &Channel,
    version: Option<&VersionName>,
) -> Result<Snapshot<Artifacts>, Fault> {
    let none = Fault::NotFound("artifact of this app");
    let Some(seen) = world.store.get::<Artifacts>(&id)? else { return Err(none) };
    let artifact = &seen.state.artifact;
    match artifact.state {
        _ if artifact.app_id != app => Err(none),
        ArtifactState::Deleted => Err(none),
        ArtifactState::Verified => match (&artifact.version, version) {
            (Some(own), Some(version)) if own != version => Err(Fault::invalid(
                "version",
                format!("must be the artifacts' version: {id} is {own}, not {version}"),
            )),
            _ => allowed(world, app, channel, artifact).map(|()| seen),
        },
        state => {
            let remedy = match state {
                ArtifactState::Rejected | ArtifactState::Expired => "upload the file again",
                _ => "finalize its upload first",
            };
            let state = format!("{state:?}").to_lowercase();
            Err(Fault::NotNow(format!("the artifact {id} is {state}; {remedy}")))
        }
    }
}

/// Refuses an artifact that the channel does not take.
fn allowed(world: &World, app: AppId, channel: &Channel, artifact: &Artifact) -> Result<(), Fault> {
    let app = get::<Apps>(&world.store, app)?;
    let policy = app.channel_policies.iter().find(|policy| policy.channel == *channel);
    policy.map_or(Ok(()), |policy| policy::check(policy, artifact))
}

/// One offer for each of the targets that takes the artifact.
fn offers_of(world: &World, seen: &Snapshot<Artifacts>, targets: &[Target]) -> Vec<Offer> {
    let artifact = &seen.state.artifact;
    let takes = targets.iter().filter(|target| target.takes(artifact.kind));
    takes
        .map(|target| Offer {
            id: world.ports.random.id(world.ports.clock.now()),
            artifact_id: artifact.id,
            target: *target,
        })
        .collect()
}
