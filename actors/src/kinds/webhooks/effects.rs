//! The effect of a webhook that is deleted.

use super::rules::{Effect, Outcome, Webhooks};
use crate::{
    runtime::resource::{Kept, Retry},
    world::World,
};
use contract::WebhookId;
use std::sync::Arc;

pub(super) async fn perform(
    Effect::RemoveDeliveries: Effect,
    id: WebhookId,
    kept: Arc<Kept<Webhooks>>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    if !world.owners()?.delete_children(&world, &id).await? {
        return Ok(Outcome::NotYet);
    }
    world.webhooks.remove(kept.organization_id, id);
    Ok(Outcome::Empty)
}
