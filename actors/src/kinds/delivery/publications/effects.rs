//! The effects of publications: steps in their stores, and reports to their releases.

use super::rules::{Effect, Outcome, Publications, State, StepResult};
use crate::{
    kinds::{
        delivery::{
            artifacts::Artifacts,
            credentials::{self, Use},
        },
        world::World,
    },
    ports::{binaries::Binaries, credentials::Secret},
    runtime::{resource::Retry, store::get},
};
use app_stores::{AppFile, PublicationOrder, ReadAt, RemoteError, StoreKey};
use async_trait::async_trait;
use bytes::Bytes;
use contract::{
    AppId, ArtifactId, Fault,
    apps::Platform,
    artifacts::Artifact,
    credentials::CredentialKind,
    releases::{Publication, Target},
};
use std::{io, sync::Arc, time::Duration};
use store::Snapshot;

/// The longest pause before a step, well within the time limit of an effect.
const LONGEST_PAUSE: Duration = Duration::from_secs(1800);

pub(super) async fn perform(
    effect: Effect,
    kept: Snapshot<Publications>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    match effect {
        Effect::Advance => advance(&kept.state, &world).await,
        Effect::Report => report(&kept.state, &world).await,
    }
}

async fn advance(state: &State, world: &World) -> Result<Outcome, Retry> {
    // After a start of the service, the stores are not all asked at once.
    if let Some(due) = state.due {
        let early = due.since(world.ports.clock.now());
        world.ports.clock.sleep(early.min(LONGEST_PAUSE)).await;
    }
    let (key, used) = match key(state, world)? {
        Ok(found) => found,
        Err(refused) => return Ok(Outcome::Stepped(Box::new(Err(refused)), None)),
    };
    let artifact = get::<Artifacts>(&world.store, state.publication.artifact_id)?;
    let artifact = &artifact.state.artifact;
    let used = (state.used != Some((used.credential, used.stored_at))).then(|| Box::new(used));
    if let Some(used) = &used {
        used.note(world).await;
    }
    let answer = step(state, artifact, &key, world).await;
    Ok(Outcome::Stepped(Box::new(answer), used))
}

async fn step(state: &State, artifact: &Artifact, key: &StoreKey, world: &World) -> StepResult {
    let refused = |why: String| Err(RemoteError::Refused(why));
    let Some(store) = world.ports.app_stores.get(&state.publication.target) else {
        return refused("this target is not configured on this server".into());
    };
    match foreign_signer(artifact, world) {
        Ok(None) => {}
        Ok(Some(why)) => return refused(why),
        Err(fault) => return Err(RemoteError::Unclear(fault.to_string())),
    }
    let order = match order(state, artifact) {
        Ok(order) => order,
        Err(lacks) => return refused(format!("the artifact {} has no {lacks}", artifact.id)),
    };
    let content = StoredBinary { binaries: world.ports.binaries.clone(), id: artifact.id };
    store.advance(key, &order, &content, &state.progress).await
}

/// The key to the store, and the note of its use.
fn key(state: &State, world: &World) -> Result<Result<(StoreKey, Use), RemoteError>, Retry> {
    let target = state.publication.target;
    for kind in target.keys() {
        let Some(found) = credentials::newest(world, state.app_id, *kind, None)? else { continue };
        let used = Use::of(world, &found.credential, &state.publication.id.to_string());
        let key = match found.secret {
            Secret::AppStoreConnect(key) => StoreKey::Apple(key),
            Secret::Google(key) => StoreKey::Google(key),
            _ => continue,
        };
        return Ok(Ok((key, used)));
    }
    Ok(Err(RemoteError::Refused(no_key(target))))
}

fn no_key(target: Target) -> String {
    let kind = target.keys().first().map_or("", |kind| kind.name());
    format!(
        "the app has no credential of the kind {kind}, which {} needs: store one with \
         svc_setCredential (svc credential set {kind}), and publish again",
        target.name()
    )
}

/// Refuses a target that cannot work for an app, for want of a credential.
pub fn check_key(world: &World, app: AppId, target: Target) -> Result<(), Fault> {
    let kinds = target.keys();
    for kind in kinds {
        if credentials::newest_facts(world, app, *kind)?.is_some() {
            return Ok(());
        }
    }
    if kinds.is_empty() { Ok(()) } else { Err(Fault::NotNow(no_key(target))) }
}

/// Why the file is not signed as the app's own keystore signs. Without a keystore here, the store
/// decides alone.
fn foreign_signer(artifact: &Artifact, world: &World) -> Result<Option<String>, Fault> {
    let Some(theirs) = artifact.signer.as_ref().filter(|_| artifact.platform == Platform::Android)
    else {
        return Ok(None);
    };
    let kind = CredentialKind::AndroidKeystore;
    let keystore = credentials::newest_facts(world, artifact.app_id, kind)?;
    let ours = keystore.and_then(|keystore| Some((keystore.name, keystore.facts.certificate?)));
    Ok(ours.filter(|(_, ours)| theirs.sha256 != ours.sha256).map(|(name, ours)| {
        format!(
            "the file is signed with the certificate {}, and the keystore {name} of this app has \
             {}: sign it with that keystore, or replace the credential",
            theirs.sha256, ours.sha256
        )
    }))
}

/// The order of a publication; the error names what the artifact lacks.
fn order(state: &State, artifact: &Artifact) -> Result<PublicationOrder, &'static str> {
    let text = |text: &Option<String>, name| text.clone().ok_or(name);
    Ok(PublicationOrder {
        id: state.publication.id,
        app: artifact.identifier.as_ref().ok_or("identifier")?.to_string(),
        file: AppFile {
            kind: artifact.kind,
            name: artifact.file_name.to_string(),
            size: artifact.size.ok_or("size")?,
            sha256: artifact.sha256.clone().ok_or("hash")?,
            version: artifact.version.as_ref().ok_or("version")?.to_string(),
            build_number: text(&artifact.build_number, "build number")?,
        },
        default_notes: state.order.default_notes.clone(),
        notes: state.order.notes.clone(),
        options: state.order.options.clone(),
        wanted: state.wanted,
    })
}

/// The bytes of an artifact.
struct StoredBinary {
    binaries: Arc<dyn Binaries>,
    id: ArtifactId,
}

#[async_trait]
impl ReadAt for StoredBinary {
    async fn read(&self, offset: u64, length: u64) -> io::Result<Bytes> {
        self.binaries.part(self.id, offset, length).await.map_err(io::Error::other)
    }
}

/// Who hears where a publication stands: its release.
pub(crate) trait Follow {
    /// [`Fault::NotFound`] if the release is gone.
    async fn follow(&self, publication: &Publication) -> Result<(), Fault>;

    /// Whether the release is still there.
    fn follows(&self, publication: &Publication) -> Result<bool, Fault>;
}

async fn report(state: &State, world: &World) -> Result<Outcome, Retry> {
    match world.follow(&state.publication).await {
        Ok(()) => Ok(Outcome::Reported(Box::new(state.publication.clone()))),
        Err(Fault::NotFound(_)) => Ok(Outcome::Orphaned),
        Err(fault) => Err(fault.into()),
    }
}
