//! Retention: removes what has ended and was kept long enough.

use crate::{
    kinds::{
        table::{self, KindVisitor, Owned},
        world::World,
    },
    runtime::{audit::Event, clock_watch, entries::Retained, resource::Input},
};
use contract::{EventId, Fault, Timestamp, retention::Retention};
use futures_util::{
    StreamExt,
    future::{LocalBoxFuture, ready},
    stream,
};
use std::{convert::Infallible, sync::Arc};
use store::Change;

/// How many resources of a kind are told at the same time.
const AT_A_TIME: usize = 16;
/// How many entries of the audit log are archived together.
const BATCH: usize = 1_000;

/// Removes everything whose retention is over. After a jump of the clock, nothing is removed. Returns the faults
/// of the parts that failed.
pub async fn apply(world: &Arc<World>) -> Vec<Fault> {
    let mut faults = Vec::new();
    faults.extend(archive_audit_log(world).await.err());
    for remove in removals(world) {
        faults.extend(remove.await.err());
    }
    faults
}

/// Before which time something ended that a retention no longer keeps. `None` while nothing is removed.
fn over_before(world: &World, retention: Retention) -> Result<Option<Timestamp>, Fault> {
    let clock = &world.ports.clock;
    let is_certain = clock_watch::peek(&world.store, clock)?.is_none();
    let before = world.ports.site.retentions.over_before(retention, clock.now());
    Ok(before.filter(|_| is_certain))
}

type Removal<'a> = LocalBoxFuture<'a, Result<(), Fault>>;

/// For each kind: the removal of its resources.
fn removals(world: &Arc<World>) -> Vec<Removal<'_>> {
    let mut removals = Removals { world, all: Vec::new() };
    let Ok(()) = table::visit(&mut removals);
    removals.all
}

struct Removals<'a> {
    world: &'a Arc<World>,
    all: Vec<Removal<'a>>,
}

impl KindVisitor for Removals<'_> {
    type Error = Infallible;

    fn visit<R: Owned>(&mut self) -> Result<(), Infallible> {
        let world = self.world;
        self.all.push(Box::pin(async move {
            for retention in Retention::ALL {
                tell_owners::<R>(world, *retention).await?;
            }
            Ok(())
        }));
        Ok(())
    }
}

/// Tells the owners of the resources of a kind of which something was kept long enough.
async fn tell_owners<R: Owned>(world: &Arc<World>, retention: Retention) -> Result<(), Fault> {
    let Some(before) = over_before(world, retention)? else { return Ok(()) };
    let mut over = world.store.before::<R>(&Retained(retention, before));
    while let Some(ids) = over.next_keys().await? {
        let told = stream::iter(ids).map(|id| tell::<R>(world, id, (retention, before)));
        told.buffer_unordered(AT_A_TIME).for_each(ready).await;
    }
    Ok(())
}

/// Tells an owner, which removes what is not needed: that is looked up again with the decision. A record that cannot
/// be read is passed over.
async fn tell<R: Owned>(
    world: &Arc<World>,
    id: R::Key,
    (retention, before): (Retention, Timestamp),
) {
    let Ok(Some(seen)) = world.store.get::<R>(&id) else { return };
    let told = match R::unneeded(id, &seen.state, world) {
        Ok(None) => return,
        Ok(Some(_)) => {
            let host = world.clone();
            let rider = move |state: &R::State| R::unneeded(id, state, &host)?.ok_or(Fault::Stale);
            let input = Input::RetentionOver(retention, before);
            world.to::<R>(id).ask_with(input, Arc::new(rider)).await.map(drop)
        }
        Err(fault) => Err(fault),
    };
    match told {
        Ok(()) | Err(Fault::NotFound(_) | Fault::Stale) => {}
        Err(fault) => {
            tracing::warn!(%id, error = %fault, "what was kept long enough was not removed; the next look tries again");
        }
    }
}

/// Entries of one day that are archived together.
struct Batch {
    day: String,
    /// The first and the last one.
    ids: (EventId, EventId),
    lines: Vec<u8>,
}

/// Appends the entries of the audit log to its archive and then removes them, a batch at a time. After a crash
/// between both, entries stand in the archive twice, with the same id.
async fn archive_audit_log(world: &World) -> Result<(), Fault> {
    while let Some(before) = over_before(world, Retention::Audit)? {
        let mut batch: Option<Batch> = None;
        let mut change = Change::new();
        for found in world.store.from_first::<Event>().take(BATCH) {
            // One that cannot be read stays, and is in the log.
            let Ok((key, event)) = found else { continue };
            let day = event.0.at.day();
            let is_of_batch = batch.as_ref().is_none_or(|batch| batch.day == day);
            if event.0.at >= before || !is_of_batch {
                break;
            }
            let ids = (event.0.id, event.0.id);
            let batch = batch.get_or_insert_with(|| Batch { day, ids, lines: Vec::new() });
            batch.ids.1 = event.0.id;
            serde_json::to_writer(&mut batch.lines, &event.0).map_err(|_| Fault::Internal)?;
            batch.lines.push(b'\n');
            change = change.remove::<Event>(&key, &event);
        }
        let Some(Batch { day, ids, lines }) = batch else { break };
        let archived = world.ports.audit_archive.append(&day, ids, lines).await;
        archived.map_err(|e| {
            tracing::warn!(error = %e, "the audit log could not be archived, so it stays");
            Fault::Internal
        })?;
        world.store.commit(change).await?;
    }
    Ok(())
}
