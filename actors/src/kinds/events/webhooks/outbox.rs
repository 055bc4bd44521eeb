//! The outbox: events that no delivery exists for yet. An event is written in the transaction of the
//! change that it tells of, so no event is lost, and none tells of what did not happen.

use super::Webhooks;
use crate::{
    kinds::{
        people::{apps::Apps, organizations::Organizations, projects::Projects},
        world::World,
    },
    runtime::{
        entries::Under,
        event::Event,
        resource::{Moment, Resource},
        side_record::{End, SideRecord},
    },
};
use contract::{Fault, OrganizationId, Timestamp, webhooks::EventType};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Change, Entries};

/// An event for the webhooks of an organization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outgoing {
    pub organization_id: OrganizationId,
    pub event: EventType,
    /// The body of the requests.
    pub payload: String,
}

impl SideRecord for Outgoing {
    fn end(&self) -> End {
        End::WhenUsed
    }

    fn index(&self) -> Entries<Self> {
        Entries::default().and(OutboxIndex::All)
    }
}

store::entries! {
    pub enum OutboxIndex of Outgoing {
        All = "all",
    }
}

/// The outbox records of a change of a resource. Empty if nobody hears of them.
pub(crate) fn records<R: Resource<Host = World>>(
    world: &World,
    at: &Moment<R>,
    before: Option<&R::State>,
    after: &R::State,
) -> Result<Change, Fault> {
    if world.store.is_alone() && world.webhooks.is_empty() {
        return Ok(Change::new());
    }
    let mut change = Change::new();
    for event in R::events(at, before, after, world) {
        if let Some(outgoing) = address(world, event, at.now)? {
            change = change.append::<Outgoing>(&world.ports.random.id(at.now), &outgoing);
        }
    }
    Ok(change)
}

/// The event for the organization of its app. `None` if that has no webhook, or is gone.
fn address(world: &World, event: Event, now: Timestamp) -> Result<Option<Outgoing>, Fault> {
    let Some(app) = world.store.get::<Apps>(&event.app_id)? else { return Ok(None) };
    let Some(project) = world.store.get::<Projects>(&app.project_id)? else { return Ok(None) };
    let organization_id = project.organization_id;
    if !has_webhooks(world, organization_id)? {
        return Ok(None);
    }
    let Event { kind, app_id, record } = event;
    let data = json!({
        kind.noun(): record,
        "appId": app_id,
        "projectId": app.project_id,
        "organizationId": organization_id,
    });
    Ok(Some(Outgoing { organization_id, event: kind, payload: payload(kind, now, &data) }))
}

/// Whether an organization has webhooks. What other processes made is in the store only.
fn has_webhooks(world: &World, organization: OrganizationId) -> Result<bool, Fault> {
    if world.store.is_alone() {
        return Ok(world.webhooks.has(organization));
    }
    let of_organization = Under::<Organizations>(organization);
    let first = world.store.oldest::<Webhooks>(&of_organization, None).keys().next();
    Ok(first.transpose()?.is_some())
}

/// The body of the requests. Source of its shape: Standard Webhooks 1.0.0, "Payload structure".
pub(crate) fn payload(event: EventType, at: Timestamp, data: &Value) -> String {
    json!({"type": event.name(), "timestamp": at, "data": data}).to_string()
}
