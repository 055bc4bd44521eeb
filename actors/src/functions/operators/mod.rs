//! The handlers of the group Operators.

pub mod attention;
pub mod nodes;
pub mod overview;
mod service_info;

use self::overview::clock_check;
use super::people::accounts::view;
use crate::{
    call::{authz, context::Call, platform::Platform},
    functions::people::{
        accounts::account_of, organizations::all_organizations, projects::all_projects,
    },
    kinds::{
        people::accounts::{self, Accounts},
        world::World,
    },
    runtime::{
        audit::{Event, EventIndex},
        clock_watch,
        pagination::{self, is_meant},
    },
};
use contract::{
    Cursor, Email, EventId, Fault, Name, Page, Serves, Timestamp,
    authentication::{GetOwnAuditLog, User},
    endpoint::ClockCheck,
    operators::{
        Actor, ActorList, ActorState, AuditEvent, ConfirmClock, GetActors, GetAllProjects,
        GetAuditLog, GetOrganizations, GetUsers, RestartActor, SetTier,
    },
    organizations::Organization,
    projects::Project,
};
use std::ops::ControlFlow;

/// The actors that `wanted` picks. Actors that are not running come first.
pub fn actors(world: &World, now: Timestamp, wanted: impl Fn(&Actor) -> bool) -> Vec<Actor> {
    let mut found = own_actors(world, now, &wanted);
    let of_others = nodes::others(world).flat_map(|report| report.troubled);
    found.extend(of_others.filter(|actor| wanted(actor)));
    found.sort_by_cached_key(place);
    found
}

/// The actors of this node that `wanted` picks.
fn own_actors(world: &World, now: Timestamp, wanted: impl Fn(&Actor) -> bool) -> Vec<Actor> {
    let mut found = Vec::new();
    world.registry.each(|health| {
        let actor = health.observe(now);
        if wanted(&actor) {
            found.push(actor);
        }
    });
    found
}

impl Serves<GetActors> for Platform {
    async fn serve(&self, cx: &Call, p: GetActors) -> Result<ActorList, Fault> {
        let mut items = actors(&self.world, cx.now, |actor| {
            p.kind.as_ref().is_none_or(|kind| actor.kind == kind.as_str())
                && p.state.is_none_or(|state| actor.state == state)
                && p.query.as_ref().is_none_or(|query| actor.id.contains(query.as_str()))
        });
        let total = items.len() as u64;
        if let Some(cursor) = &p.cursor {
            items.retain(|actor| place(actor).as_str() > cursor.key());
        }
        let more = items.len() > p.limit.get();
        items.truncate(p.limit.get());
        let last = items.last().filter(|_| more);
        let next_cursor = last.map(|actor| Cursor::after(&place(actor)));
        Ok(ActorList { items, total, next_cursor })
    }
}

/// The sort key of an actor. A cursor holds it.
fn place(actor: &Actor) -> String {
    let calm = u8::from(actor.state == ActorState::Running);
    format!("{calm}{}_{}_{}", actor.id, actor.kind, actor.node.as_deref().unwrap_or_default())
}

impl Serves<GetUsers> for Platform {
    async fn serve(&self, _: &Call, p: GetUsers) -> Result<Page<User>, Fault> {
        let email = p.query.as_ref().and_then(|query| query.as_str().parse::<Email>().ok());
        if let Some((id, account)) =
            email.map(|email| account_of(&self.world, &email)).transpose()?.flatten()
        {
            let user = view(self, id, &account)?;
            return Ok(Page::new(vec![user], None));
        }
        pagination::whole::<Accounts, _>(&self.world.store, (p.limit, p.cursor), |id, account| {
            let texts = [account.email.as_str(), account.name.as_str()];
            is_meant(p.query.as_ref(), &id.to_string(), &texts)
                .then(|| view(self, id, account))
                .transpose()
        })
    }
}

impl Serves<GetOrganizations> for Platform {
    async fn serve(&self, _: &Call, p: GetOrganizations) -> Result<Page<Organization>, Fault> {
        all_organizations(&self.world, (p.limit, p.cursor), |id, organization| {
            is_meant(p.query.as_ref(), &id.to_string(), &[organization.name.as_str()])
        })
    }
}

impl Serves<GetAllProjects> for Platform {
    async fn serve(&self, _: &Call, p: GetAllProjects) -> Result<Page<Project>, Fault> {
        all_projects(&self.world, None, (p.limit, p.cursor), |project| {
            is_meant(p.query.as_ref(), &project.id.to_string(), &[project.name.as_str()])
        })
    }
}

impl Serves<RestartActor> for Platform {
    async fn serve(&self, cx: &Call, p: RestartActor) -> Result<Actor, Fault> {
        let id = p.actor_id.as_str();
        let is_in_trouble = |actor: &Actor| actor.id == id && actor.state != ActorState::Running;
        let is_here = !own_actors(&self.world, cx.now, is_in_trouble).is_empty();
        // A healthy owner of the object may be here, while that of another node is parked.
        if !is_here && let Ok(actor) = nodes::ask_to_restart(&self.world, id) {
            cx.note(id);
            return Ok(actor);
        }
        if !self.world.owners()?.restart(id).await? {
            return Err(Fault::NotFound("actor in memory"));
        }
        cx.note(id);
        let actor = actors(&self.world, cx.now, |actor| actor.id == id).into_iter().next();
        actor.ok_or(Fault::NotFound("actor in memory"))
    }
}

impl Serves<ConfirmClock> for Platform {
    async fn serve(&self, cx: &Call, _: ConfirmClock) -> Result<ClockCheck, Fault> {
        clock_watch::confirm(&self.world.store, &self.world.ports.clock).await?;
        cx.note("clock");
        Ok(clock_check(&self.world))
    }
}

impl Serves<SetTier> for Platform {
    async fn serve(&self, cx: &Call, p: SetTier) -> Result<User, Fault> {
        let before = authz::account(&self.world.store, p.user_id)?.state.tier();
        let platform = self.clone();
        let command = accounts::Command::SetTier(p.tier);
        let reply = cx
            .to::<Accounts>(p.user_id)
            .change(command, move |account| view(&platform, p.user_id, account));
        let reply = reply.await?;
        self.authn.tier_changed(p.user_id, before, reply.tier);
        Ok(reply)
    }
}

impl Serves<GetAuditLog> for Platform {
    async fn serve(&self, _: &Call, p: GetAuditLog) -> Result<Page<AuditEvent>, Fault> {
        audit_log(&self.world, p)
    }
}

impl Serves<GetOwnAuditLog> for Platform {
    async fn serve(&self, cx: &Call, p: GetOwnAuditLog) -> Result<Page<AuditEvent>, Fault> {
        let GetOwnAuditLog { function, resource, since, limit, cursor } = p;
        let user_id = Some(cx.user()?.id);
        audit_log(&self.world, GetAuditLog { user_id, function, resource, since, limit, cursor })
    }
}

fn audit_log(world: &World, p: GetAuditLog) -> Result<Page<AuditEvent>, Fault> {
    let store = &world.store;
    let list = |after: Option<&EventId>| match p.user_id {
        Some(user) => store.newest(&EventIndex::User { user }, after),
        None => store.whole::<Event>(after),
    };
    let is = |wanted: &Option<Name>, text: &str| {
        wanted.as_ref().is_none_or(|wanted| wanted.as_str() == text)
    };
    pagination::search::<Event, _, _>(list, (p.limit, p.cursor), |_, event| {
        let event = &event.0;
        // The newest events come first, so all that follow are older.
        if p.since.is_some_and(|since| event.at < since) {
            return Ok(ControlFlow::Break(()));
        }
        let wanted = is(&p.function, &event.function) && is(&p.resource, &event.resource);
        Ok(ControlFlow::Continue(wanted.then(|| event.clone())))
    })
}
