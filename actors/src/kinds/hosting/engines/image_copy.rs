//! Images that no registry has, at the engines that need them.

use super::hosts::Host;
use crate::kinds::world::World;
use container_engine::EngineError;

/// Copies an image to an engine from the one that builds images. Returns whether it has it then.
pub(crate) async fn copy_image(
    world: &World,
    host: &Host,
    reference: &str,
) -> Result<bool, EngineError> {
    let own = world.hosts.own();
    if host.id.is_none() || own.engine.image(reference).await?.is_none() {
        return Ok(false);
    }
    let image = own.engine.save_image(reference).await?;
    host.engine.load_image(image).await?;
    if host.engine.image(reference).await?.is_none() {
        return Err(EngineError::Refused(format!(
            "the engines do not keep the image {reference} in the same way: one of them has containerd's image \
             store, and the other one has not"
        )));
    }
    Ok(true)
}
