//! Whether a version of an image may be used, and the digest that it is pinned to.

use super::{Command, Images};
use crate::{kinds::world::World, ports::NotDone, runtime::store::Store};
use container_engine::EngineError;
use contract::{Fault, ImageId, VersionName, images::ImageVersionState, text::Slug};
use store::Snapshot;

/// Reads a registered image. Fails if this version does not exist or is deprecated.
pub fn usable(
    store: &Store,
    id: ImageId,
    version: &VersionName,
) -> Result<Snapshot<Images>, Fault> {
    let found = store.get::<Images>(&id)?;
    let seen = found.ok_or(Fault::NotFound("image"))?;
    let image = &seen.state;
    let known = image.versions.iter().find(|known| known.version == *version);
    let known = known.ok_or(Fault::NotFound("version of this image"))?;
    if known.state == ImageVersionState::Deprecated {
        let reason = known.deprecation_reason.as_ref();
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        return Err(Fault::NotNow(format!(
            "{} {version} is deprecated{reason}; choose another version",
            image.name
        )));
    }
    Ok(seen)
}

/// The recipe of a version. `None`: the version is pulled, or is not registered any more.
pub fn recipe_of(
    store: &Store,
    id: ImageId,
    version: &VersionName,
) -> Result<Option<Slug>, NotDone> {
    let found = store.get::<Images>(&id).map_err(|e| NotDone::Unreachable(e.to_string()))?;
    Ok(found.and_then(|found| {
        let known = found.state.versions.iter().find(|known| known.version == *version);
        known.and_then(|known| known.recipe.clone())
    }))
}

/// The reference of a version by its digest. If the version has no digest, resolves its tag at the
/// registry once and stores the digest.
pub async fn resolve_digest(
    world: &World,
    id: ImageId,
    version: &VersionName,
) -> Result<String, EngineError> {
    let missing = |why: &str| EngineError::NoImage { image: id.to_string(), why: why.to_owned() };
    let found = world.store.get::<Images>(&id);
    let found = found.map_err(|e| EngineError::Unreachable(e.to_string()))?;
    let found = found.ok_or_else(|| missing("it is not registered any more"))?;
    let image = &found.state;
    let known = image.versions.iter().find(|known| known.version == *version);
    let known = known.ok_or_else(|| missing("it has no such version"))?;
    let registries = &world.ports.registries;
    if let Some(digest) = &known.digest {
        return Ok(registries.by_digest(&image.repository, digest));
    }
    let tag = known.tag.as_ref().ok_or_else(|| missing("it has neither a tag nor a digest"))?;
    let asked = registries.by_tag(&image.repository, tag);
    let digest = world.hosts.own().engine.resolve(&asked, registries.login(&asked)).await?;
    let digest = digest.parse().map_err(|_| missing("its registry gave no digest"))?;
    let command = Command::Resolve(version.clone(), digest);
    let unreachable = |e: contract::Fault| EngineError::Unreachable(e.to_string());
    let image = world.to::<Images>(id).ask(command).await.map_err(unreachable)?;
    let resolved = image.versions.iter().find(|known| known.version == *version);
    Ok(match resolved.and_then(|known| known.digest.as_ref()) {
        Some(digest) => registries.by_digest(&image.repository, digest),
        None => asked,
    })
}

/// What is known against a version of a registered image. An image that cannot be read, or is not
/// registered any more, has nothing against it.
pub fn outdated(
    world: &World,
    id: ImageId,
    version: &VersionName,
) -> Option<contract::instances::Outdated> {
    let image = world.store.get::<Images>(&id).ok().flatten()?;
    world.ports.advisories.against(&image.state, version)
}
