//! One decision of an owner: the step, its write, and the check that the record is current.

use super::{
    entries::due,
    host::Host,
    resource::{Begins, Input, Kept, Moment, Resource, StateOf, Unique, step},
    store::{Store, refused},
    uses::LimitsCount,
};
use contract::Fault;
use std::{sync::Arc, time::Duration};
use store::{Change, Lease, Snapshot, StoreError, Stored};

/// Changes that join the transaction of a command, made from the state after the command.
pub type Rider<R> = Arc<dyn Fn(&<R as Resource>::State) -> Result<Change, Fault> + Send + Sync>;

/// A snapshot of the record. `None`: there is no record.
pub(super) type Record<R> = Option<Snapshot<R>>;

/// How often a step is decided at most while other writers change the record.
const REREADS: usize = 4;

/// The input of a decision.
pub(super) struct Question<R: Resource> {
    pub host: Arc<R::Host>,
    pub at: Moment<R>,
    /// The record in the memory of the owner.
    pub remembered: Record<R>,
    /// The outcome of an earlier write is unknown, so the record must be read again.
    pub doubtful: bool,
    /// `None`: only read the record.
    pub input: Option<Input<R>>,
    pub rider: Option<Rider<R>>,
    /// What the input rests on, if it is of an effect.
    pub basis: Option<Basis>,
    /// The deadline of the write. A write that misses it may still happen.
    pub write_within: Duration,
}

/// What the outcome of an effect rests on.
#[derive(Clone, Copy)]
pub(super) struct Basis {
    /// The lease under which it came about. Nothing is written if this process has lost it.
    pub lease: Lease,
    /// [`Kept::begun_anew`] of the record when the effect began. If the record has another one, the work that the
    /// outcome is of is over.
    pub begun_anew: u64,
}

/// The result of a decision.
pub(super) struct Decided<R: Resource> {
    /// The record after the decision.
    pub record: Record<R>,
    /// The record was read again, so it may ask for other work.
    pub overtaken: bool,
    /// The outcome of the write is unknown.
    pub doubtful: bool,
    pub result: Result<Effective<R>, Fault>,
}

/// The effects of a decision.
pub(super) struct Effective<R: Resource> {
    /// The state after the decision. If the resource ended, the state before; `None`: there was no
    /// resource.
    pub state: Option<StateOf<R>>,
    /// Whether the record was written.
    pub changed: bool,
    /// Whether something was written that [`Host::has_outgoing`] tells of.
    pub has_outgoing: bool,
    pub begins: Begins,
}

/// The change to write, the record after it, and the effects.
type Plan<R> = (Change, Record<R>, Effective<R>);

/// Decides and writes. If another writer changed the record meanwhile, reads it and decides again;
/// steps are pure, so a repeated decision does no harm.
///
/// Like a write, a refusal or a decision without a write holds only for the record that it was made
/// from. Those two compare the version with the store's cache, without a flush.
pub(super) async fn decide<R: Resource>(question: Question<R>) -> Decided<R> {
    let Question { host, at, remembered, doubtful, input, rider, basis, write_within } = question;
    let store = host.store();
    let mut decided =
        Decided { record: remembered, overtaken: false, doubtful, result: Err(Fault::Stale) };
    let mut reread = doubtful;
    for _ in 0..REREADS {
        if reread {
            match read_durable(store, &at.id, write_within).await {
                Ok(found) => decided = Decided { record: found, overtaken: true, ..decided },
                Err(fault) => return Decided { result: Err(fault), ..decided },
            }
            decided.doubtful = false;
        }
        let record = decided.record.as_ref();
        let rests = |basis: &Basis| record.is_some_and(|it| it.begun_anew == basis.begun_anew);
        let input = input.clone().filter(|_| basis.as_ref().is_none_or(rests));
        let planned = plan(&*host, &at, record, input, rider.as_ref());
        let (holds, planned) = match planned {
            Ok((change, after, effective)) if !change.is_empty() => {
                let leases = basis.map(|basis| basis.lease);
                let change = leases.into_iter().fold(change, Change::under);
                (write(store, &at, &effective, change, write_within).await, Ok((after, effective)))
            }
            Ok((_, after, effective)) => {
                (is_current(store, &at.id, &decided.record), Ok((after, effective)))
            }
            Err(refused) => (is_current(store, &at.id, &decided.record), Err(refused)),
        };
        match (holds, planned) {
            (Ok(true), Ok((record, effective))) => {
                let before = decided.record.as_ref().map(|before| &before.state);
                match (&record, before) {
                    (Some(after), _) if effective.changed => {
                        R::written(at.id, before, &after.state, &host);
                    }
                    (None, Some(before)) => R::removed(at.id, before, &host),
                    _ => {}
                }
                if effective.has_outgoing {
                    host.has_outgoing();
                }
                return Decided { record, result: Ok(effective), ..decided };
            }
            (Ok(true), Err(fault)) => return Decided { result: Err(fault), ..decided },
            (Ok(false), _) => reread = true,
            (Err(fault), _) => {
                let doubtful = fault == Fault::Uncertain;
                return Decided { doubtful, result: Err(fault), ..decided };
            }
        }
    }
    decided
}

/// Writes a decision. `false`: the record changed since the decision.
async fn write<R: Resource>(
    store: &Store,
    at: &Moment<R>,
    effective: &Effective<R>,
    change: Change,
    within: Duration,
) -> Result<bool, Fault> {
    match tokio::time::timeout(within, store.try_commit(change)).await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(StoreError::Stale { tree, key })) if tree == R::TREE && key == at.id.to_string() => {
            Ok(false)
        }
        Ok(Err(StoreError::Taken { claim })) => {
            let state = effective.state.as_deref();
            Err(state.map_or(Fault::Stale, |state| Unique::<R>::refusal(state, &claim)))
        }
        Ok(Err(e)) => Err(refused(R::TREE, &e)),
        Err(_) => Err(Fault::Uncertain),
    }
}

/// Whether the record is unchanged since the decision.
fn is_current<R: Resource>(store: &Store, id: &R::Key, record: &Record<R>) -> Result<bool, Fault> {
    let version = |record: &Record<R>| record.as_ref().map_or(0, |stored| stored.version());
    Ok(version(&store.get::<R>(id)?) == version(record))
}

/// Reads the record after everything that readers can see is on the disk.
async fn read_durable<R: Resource>(
    store: &Store,
    id: &R::Key,
    within: Duration,
) -> Result<Record<R>, Fault> {
    let barrier = tokio::time::timeout(within, store.barrier()).await;
    barrier.map_err(|_| Fault::Busy)?.map_err(|_| Fault::Busy)?;
    store.get::<R>(id)
}

fn plan<R: Resource>(
    host: &R::Host,
    at: &Moment<R>,
    before: Option<&Snapshot<R>>,
    input: Option<Input<R>>,
    rider: Option<&Rider<R>>,
) -> Result<Plan<R>, Fault> {
    let kept = before.map(|stored| &***stored);
    // Work that is due may have begun since the sweeper looked.
    let is_late = |input: &Input<R>| {
        matches!(input, Input::Due) && kept.and_then(due).is_none_or(|due| due > at.now)
    };
    let Some(input) = input.filter(|input| !is_late(input)) else {
        let state = before.cloned().map(StateOf);
        return Ok((
            Change::new(),
            before.cloned(),
            Effective { state, changed: false, has_outgoing: false, begins: Begins::GoesOn },
        ));
    };
    let limits = match &input {
        Input::Command(command) if R::reports(command) => LimitsCount::No,
        Input::Create(_) | Input::Command(_) => LimitsCount::Yes,
        Input::Outcome(_) | Input::Emptied(_) | Input::Due | Input::RetentionOver(..) => {
            LimitsCount::No
        }
    };
    let mut step = step(at, kept, input)?;
    let (begins, also) = (step.begins, std::mem::take(&mut step.also));
    // Where another node performs the work, it learns from the record that the work begins anew.
    let tells_others = step.is_anew && host.store().lease::<R>(&at.id).is_none();
    let keeps = step.keeps(kept) && !tells_others;
    let also_uses = std::mem::take(&mut step.also_uses);
    let of = |kept: Option<&Kept<R>>| kept.map(Kept::uses).unwrap_or_default();
    let accounted = |after: Option<&Kept<R>>| {
        let before = (kept.map(|kept| &kept.state), of(kept));
        let after = (after.map(|kept| &kept.state), of(after).and_all(&also_uses));
        host.accounted::<R>(&at.id, before, after, limits)
    };
    let mut has_outgoing = false;
    let (mut change, after, state) = match before {
        Some(before) if keeps => (also, Some(before.clone()), StateOf(before.clone())),
        before => match (step.apply(kept)?, before) {
            (Some(record), before) => {
                let events = host.outgoing(at, kept.map(|kept| &kept.state), &record.state)?;
                has_outgoing = !events.is_empty();
                let also = also.and(accounted(Some(&record))?);
                let before = before.map(Arc::as_ref);
                let after = Arc::new(Stored::after(before, record));
                let state = StateOf(after.clone());
                (also.and(events).put::<R>(&at.id, before, after.clone()), Some(after), state)
            }
            (None, Some(before)) => {
                let also = also.and(accounted(None)?);
                (also.remove::<R>(&at.id, before), None, StateOf(before.clone()))
            }
            (None, None) => return Err(Fault::NotFound(R::NOUN)),
        },
    };
    if let Some(rider) = rider {
        change = change.and(rider(&state)?);
    }
    if let (true, false, Some(before)) = (keeps, change.is_empty(), before) {
        change = change.require::<R>(&at.id, before);
    }
    Ok((change, after, Effective { state: Some(state), changed: !keeps, has_outgoing, begins }))
}
