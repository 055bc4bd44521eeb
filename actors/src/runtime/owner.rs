//! The owner of one resource: the only one who changes it. Decide, write, answer, then act.

use super::{
    health::{Health, Place},
    resource::{Input, Intent, Kept, Moment, Next, Resource, Retry, Step},
};
use crate::world::World;
use actix::prelude::*;
use contract::Fault;
use futures_util::future::LocalBoxFuture;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};
use store::{Change, Store, StoreError, Stored};
use tokio::sync::oneshot;

/// What rides along in the transaction of a command, given the state after it.
pub type Rider<R> = Arc<dyn Fn(&<R as Resource>::State) -> Result<Change, Fault> + Send + Sync>;

/// The state after a command; where the command ended the resource, the state before it.
pub type Answer<R> = Result<Arc<<R as Resource>::State>, Fault>;

/// The owner of one resource.
pub struct Owner<R: Resource> {
    id: R::Id,
    world: Arc<World>,
    health: Arc<Health>,
    kept: Option<Arc<Stored<Kept<R>>>>,
    acting: Option<SpawnHandle>,
    /// Counts what was begun. What comes of something that was overtaken is not listened to.
    begun: u64,
    attempts: u32,
    settling: Vec<oneshot::Sender<Option<Arc<R::State>>>>,
}

/// A command on its way. `begun` tells a sender whose answer was lost whether it may send it again.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Ask<R: Resource> {
    pub(super) command: R::Command,
    pub(super) rider: Rider<R>,
    pub(super) begun: Arc<AtomicBool>,
    pub(super) answer: oneshot::Sender<Answer<R>>,
    pub(super) place: Place,
}

/// Wants the state once no intent stands; `None` where there is no such resource any more.
#[derive(Message)]
#[rtype(result = "()")]
#[allow(dead_code, reason = "the place is given back when the message ends")]
pub struct Settle<R: Resource>(pub(super) oneshot::Sender<Option<Arc<R::State>>>, pub(super) Place);

/// From the directory. True: nothing was left to do, and the owner has stopped.
#[derive(Message)]
#[rtype(result = "bool")]
pub struct Retire;

/// From the directory, which has another one start in its place.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Leave;

#[derive(Message)]
#[rtype(result = "()")]
struct Learn<R: Resource> {
    begun: u64,
    outcome: Result<R::Outcome, Retry>,
}

/// The first pause before an effect is tried again, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often a step is decided anew because somebody else wrote the record.
const REREADS: usize = 4;

impl<R: Resource> Owner<R> {
    pub(super) fn new(id: R::Id, world: Arc<World>, health: Arc<Health>) -> Self {
        Owner {
            id,
            world,
            health,
            kept: None,
            acting: None,
            begun: 0,
            attempts: 0,
            settling: Vec::new(),
        }
    }

    /// The rule after a crash, all of it: read what is written, and act on the intent that stands.
    fn recover(&mut self, ctx: &mut Context<Self>) {
        match self.world.store.get::<Kept<R>>(&self.id.to_string()) {
            Ok(found) => self.kept = found,
            #[allow(
                clippy::panic,
                reason = "an owner without its state must not answer; the guard tries again"
            )]
            Err(e) => panic!("{} {}: {e}", R::KIND, self.id),
        }
        self.act(Duration::ZERO, ctx);
    }

    /// Does what the intent asks for, instead of what was being done.
    fn act(&mut self, pause: Duration, ctx: &mut Context<Self>) {
        if let Some(overtaken) = self.acting.take() {
            ctx.cancel_future(overtaken);
        }
        self.begun += 1;
        let Some(kept) = &self.kept else { return };
        let Some(effect) = kept.record.intent.clone() else { return };
        let (id, state, world) = (self.id, Arc::new(kept.record.clone()), self.world.clone());
        let work = async move {
            tokio::time::sleep(pause).await;
            let done =
                tokio::time::timeout(R::TIME_LIMIT, R::perform(effect, id, state, world)).await;
            done.unwrap_or_else(|_| Err(Retry(format!("not done within {:?}", R::TIME_LIMIT))))
        };
        let begun = self.begun;
        let work = work.into_actor(self).map(move |outcome, _, ctx: &mut Context<Self>| {
            ctx.notify(Learn::<R> { begun, outcome });
        });
        self.acting = Some(ctx.spawn(work));
    }

    /// Tries the effect again after a pause that grows.
    fn act_again(&mut self, why: &str, ctx: &mut Context<Self>) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.attempts.min(10)).min(LONGEST_PAUSE);
        self.attempts = self.attempts.saturating_add(1);
        tracing::warn!(kind = R::KIND, id = %self.id, attempt = self.attempts, why, "an effect failed; trying again");
        self.act(pause, ctx);
    }

    fn settled(&mut self) {
        let state = self.kept.as_ref();
        if state.is_none_or(|k| k.record.intent.is_none()) {
            let state = state.map(|k| Arc::new(k.record.state.clone()));
            for waiting in self.settling.drain(..) {
                let _ = waiting.send(state.clone());
            }
        }
    }
}

/// What a decision led to.
struct Decided<R: Resource> {
    kept: Option<Arc<Stored<Kept<R>>>>,
    state: Arc<R::State>,
    /// When to act; `None`: the intent is what it was.
    act: Option<Duration>,
}

/// Decides and writes. Where somebody else wrote the record meanwhile, reads it and decides anew:
/// a step is pure, so that costs nothing but time.
async fn decide<R: Resource>(
    store: Store,
    at: Moment<R>,
    mut before: Option<Arc<Stored<Kept<R>>>>,
    input: Input<R>,
    rider: Option<Rider<R>>,
) -> (Option<Arc<Stored<Kept<R>>>>, Result<Decided<R>, Fault>) {
    let key = at.id.to_string();
    for _ in 0..REREADS {
        let (change, decided) =
            match plan(&at, &key, before.as_ref(), input.clone(), rider.as_ref()) {
                Ok(planned) => planned,
                Err(fault) => return (before, Err(fault)),
            };
        if change.is_empty() {
            return (before, Ok(decided));
        }
        match store.commit(change).await {
            Ok(()) => return (decided.kept.clone(), Ok(decided)),
            Err(StoreError::Stale { tree, key: stale }) if tree == R::KIND && stale == key => {
                match store.get::<Kept<R>>(&key) {
                    Ok(found) => before = found,
                    Err(e) => return (before, Err(uncommitted(R::KIND, &e))),
                }
            }
            Err(StoreError::Taken { claim }) => return (before, Err(R::taken(&claim))),
            Err(e) => return (before, Err(uncommitted(R::KIND, &e))),
        }
    }
    (before, Err(Fault::Stale))
}

fn plan<R: Resource>(
    at: &Moment<R>,
    key: &str,
    before: Option<&Arc<Stored<Kept<R>>>>,
    input: Input<R>,
    rider: Option<&Rider<R>>,
) -> Result<(Change, Decided<R>), Fault> {
    let is_command = matches!(input, Input::Command(_));
    let Step { next, intent, also } = R::step(at, before.map(|b| &b.record.state), input)?;
    let standing = before.and_then(|b| b.record.intent.clone());
    let (intent, act) = match intent {
        Intent::Keep => (standing.clone(), None),
        Intent::None => (None, Some(Duration::ZERO)),
        Intent::Now(effect) => (Some(effect), Some(Duration::ZERO)),
        Intent::After(pause, effect) => (Some(effect), Some(pause)),
    };
    let (mut change, kept, state) = match (next, before) {
        (Next::Put(state), before) => {
            let version = before.map_or(0, |b| b.version) + 1;
            let kept = Arc::new(Stored { version, record: Kept { state, intent } });
            let change = also.put(key, before.map(Arc::as_ref), kept.clone());
            let state = Arc::new(kept.record.state.clone());
            (change, Some(kept), state)
        }
        (Next::Keep, Some(before)) if intent == standing => {
            (also, Some(before.clone()), Arc::new(before.record.state.clone()))
        }
        (Next::Keep, Some(before)) => {
            let record = Kept { state: before.record.state.clone(), intent };
            let kept = Arc::new(Stored { version: before.version + 1, record });
            let change = also.put(key, Some(before.as_ref()), kept.clone());
            let state = Arc::new(kept.record.state.clone());
            (change, Some(kept), state)
        }
        (Next::Remove, Some(before)) => {
            (also.remove(key, before.as_ref()), None, Arc::new(before.record.state.clone()))
        }
        (Next::Keep | Next::Remove, None) => return Err(Fault::NotFound(R::KIND)),
    };
    if let (true, Some(rider)) = (is_command, rider) {
        change = change.and(rider(&state)?);
    }
    Ok((change, Decided { kept, state, act }))
}

/// What a caller is told of a change that was not made.
pub(crate) fn uncommitted(kind: &str, e: &StoreError) -> Fault {
    match e {
        StoreError::Stale { .. } => Fault::Stale,
        StoreError::Taken { .. } => Fault::Stale,
        StoreError::Busy(_) => Fault::Busy,
        StoreError::Unreadable(_) | StoreError::InUse(_) => {
            tracing::error!(kind, error = %e, "a record cannot be read or written");
            Fault::Internal
        }
        StoreError::Io(_) => {
            tracing::error!(kind, error = %e, "a change was not confirmed by the disk");
            Fault::Uncertain
        }
    }
}

impl<R: Resource> Unpin for Owner<R> {}

impl<R: Resource> Actor for Owner<R> {
    type Context = Context<Self>;
    fn started(&mut self, ctx: &mut Self::Context) {
        self.recover(ctx);
    }
}

impl<R: Resource> Supervised for Owner<R> {
    fn restarting(&mut self, _: &mut Self::Context) {
        (self.kept, self.acting) = (None, None);
        self.settling.clear();
    }
}

impl<R: Resource> Owner<R> {
    fn moment(&self) -> Moment<R> {
        Moment { id: self.id, now: self.world.ports.clock.now() }
    }

    /// Decides; `then` runs when the decision is on the disk, or was refused.
    fn take(
        &mut self,
        input: Input<R>,
        rider: Option<Rider<R>>,
        then: impl FnOnce(&mut Self, Answer<R>, &mut Context<Self>) + 'static,
    ) -> AtomicResponse<Self, ()> {
        let (store, at, before) = (self.world.store.clone(), self.moment(), self.kept.clone());
        self.health.begin(at.now);
        let work: LocalBoxFuture<_> = Box::pin(decide(store, at, before, input, rider));
        AtomicResponse::new(Box::pin(work.into_actor(self).map(
            move |(kept, decided), owner, ctx| {
                owner.kept = kept;
                let answer = decided.map(|decided| {
                    if let Some(pause) = decided.act {
                        owner.attempts = 0;
                        owner.act(pause, ctx);
                    }
                    decided.state
                });
                then(owner, answer, ctx);
                owner.health.end();
                owner.settled();
            },
        )))
    }
}

impl<R: Resource> Handler<Ask<R>> for Owner<R> {
    type Result = AtomicResponse<Self, ()>;
    fn handle(&mut self, ask: Ask<R>, _: &mut Self::Context) -> Self::Result {
        if ask.begun.swap(true, SeqCst) {
            // The sender gave up waiting and was told that nothing was done.
            return AtomicResponse::new(Box::pin(actix::fut::ready(())));
        }
        let (answer, place) = (ask.answer, ask.place);
        self.take(Input::Command(ask.command), Some(ask.rider), move |_, state, _| {
            drop(place);
            let _ = answer.send(state);
        })
    }
}

impl<R: Resource> Handler<Learn<R>> for Owner<R> {
    type Result = AtomicResponse<Self, ()>;
    fn handle(&mut self, learnt: Learn<R>, ctx: &mut Self::Context) -> Self::Result {
        if learnt.begun != self.begun {
            return AtomicResponse::new(Box::pin(actix::fut::ready(())));
        }
        self.acting = None;
        match learnt.outcome {
            Ok(outcome) => self.take(Input::Outcome(outcome), None, |owner, decided, ctx| {
                if let Err(fault) = decided {
                    owner.act_again(&fault.to_string(), ctx);
                }
            }),
            Err(Retry(why)) => {
                self.act_again(&why, ctx);
                AtomicResponse::new(Box::pin(actix::fut::ready(())))
            }
        }
    }
}

impl<R: Resource> Handler<Settle<R>> for Owner<R> {
    type Result = ();
    fn handle(&mut self, settle: Settle<R>, _: &mut Self::Context) {
        self.settling.push(settle.0);
        self.settled();
    }
}

impl<R: Resource> Handler<Leave> for Owner<R> {
    type Result = ();
    fn handle(&mut self, _: Leave, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl<R: Resource> Handler<Retire> for Owner<R> {
    type Result = bool;
    fn handle(&mut self, _: Retire, ctx: &mut Self::Context) -> bool {
        let idle = self.kept.as_ref().is_none_or(|k| k.record.intent.is_none());
        if idle {
            ctx.stop();
        }
        idle
    }
}
