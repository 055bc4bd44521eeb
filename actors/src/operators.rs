//! The functions of the group Operators.

use crate::{
    call::{
        audit::{Event, EventIndex},
        authz,
        context::Call,
        pagination,
    },
    kinds::accounts::{self, view},
    platform::Platform,
};
use contract::{
    Cursor, Fault, Page, Serves, Timestamp,
    authentication::User,
    operators::{
        Actor, ActorList, ActorState, AuditEvent, GetActors, GetAuditLog, RestartActor, SetTier,
    },
};

impl Platform {
    /// Every actor that `wanted` picks, the troubled ones first.
    pub fn actors(&self, now: Timestamp, wanted: impl Fn(&Actor) -> bool) -> Vec<Actor> {
        let mut found = Vec::new();
        self.world.registry.each(|health| {
            let actor = health.observe(now);
            if wanted(&actor) {
                found.push(actor);
            }
        });
        let calm = |actor: &Actor| actor.state == ActorState::Running;
        found.sort_by(|a, b| (calm(a), &a.id).cmp(&(calm(b), &b.id)));
        found
    }
}

impl Serves<GetActors> for Platform {
    async fn serve(&self, cx: &Call, p: GetActors) -> Result<ActorList, Fault> {
        let mut items = self.actors(cx.now, |actor| {
            p.kind.as_ref().is_none_or(|kind| actor.kind == kind.as_str())
                && p.state.is_none_or(|state| actor.state == state)
                && p.query.as_ref().is_none_or(|query| actor.id.contains(query.as_str()))
        });
        let total = items.len() as u64;
        items.truncate(p.limit.get());
        Ok(ActorList { items, total })
    }
}

impl Serves<RestartActor> for Platform {
    async fn serve(&self, cx: &Call, p: RestartActor) -> Result<Actor, Fault> {
        let id = p.actor_id.as_str();
        if !self.owners()?.restart(id).await? {
            return Err(Fault::NotFound("actor in memory"));
        }
        cx.note(&self.world, id);
        let actor = self.actors(cx.now, |actor| actor.id == id).into_iter().next();
        actor.ok_or(Fault::NotFound("actor in memory"))
    }
}

impl Serves<SetTier> for Platform {
    async fn serve(&self, cx: &Call, p: SetTier) -> Result<User, Fault> {
        let before = authz::account(&self.world.store, p.user_id)?.state.tier;
        let platform = self.clone();
        let owners = &self.owners()?.accounts;
        let command = accounts::Command::SetTier(p.tier);
        let reply = cx.change(&self.world, owners, p.user_id, command, move |account| {
            view(&platform, p.user_id, account)
        });
        let reply = reply.await?;
        self.gate.tier_changed(p.user_id, before, p.tier);
        Ok(reply)
    }
}

impl Serves<GetAuditLog> for Platform {
    async fn serve(&self, _: &Call, p: GetAuditLog) -> Result<Page<AuditEvent>, Fault> {
        let store = &self.world.store;
        let after = p.cursor.as_ref().map(pagination::position::<Event>).transpose()?;
        let wanted = p.limit.get() + 1;
        let mut keys = match p.user_id {
            Some(user) => store.newest(&EventIndex::User { user }, after.as_ref(), wanted),
            None => store.keys::<Event>(after.as_ref(), wanted),
        }?;
        let more = keys.len() == wanted;
        keys.truncate(p.limit.get());
        let next_cursor =
            if more { keys.last().map(|key| Cursor::after(&key.to_string())) } else { None };
        let mut items = Vec::with_capacity(keys.len());
        for key in &keys {
            items.extend(store.get::<Event>(key)?.map(|event| event.0.clone()));
        }
        Ok(Page { items, next_cursor })
    }
}
