//! The owner of one resource. Only the owner changes the resource: it decides, writes, replies, and
//! then runs the effect.
//!
//! Commands and outcomes of effects wait in one queue. The owner decides them one after the other,
//! each from the record that the previous decision left. The owner keeps this queue itself, because
//! actix does not guarantee the order: an `AtomicResponse` begins to wait only after another future
//! of the actor was polled.

mod leases;

use super::{
    backoff::Backoff,
    decide::{Basis, Decided, Effective, Question, Record, decide},
    directory::Rules,
    health::Health,
    host::Host,
    messages::{Ask, Heard, Leave, OwnerReply, Retire, Rider, Wait, Waiter},
    resource::{Begins, Input, Moment, Resource, Retry, StateOf, Task},
};
use actix::prelude::*;
use contract::{Fault, Id};
use leases::under;
use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};
use store::Lease;

/// The pauses before an effect that failed is tried again.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(5) };

pub struct Owner<R: Resource> {
    id: R::Key,
    host: Arc<R::Host>,
    health: Arc<Health>,
    rules: Rules,
    record: Record<R>,
    /// Whether the first effect after the wake is a first attempt.
    attempt: Attempt,
    /// Whether the store may hold a write that the record in memory lacks.
    doubtful: bool,
    /// The lease under which this owner acts. As long as it is held, nobody else performs the effect.
    lease: Option<Lease>,
    turns: VecDeque<Turn<R>>,
    /// Whether a decision is under way.
    deciding: bool,
    performing: Option<SpawnHandle>,
    /// Counts the effects that have begun. An outcome with an older number is ignored.
    begun: u64,
    failures: u32,
    waiting: Vec<Waiter<R>>,
}

/// An entry of the queue.
enum Turn<R: Resource> {
    Command(Ask<R>),
    Outcome {
        begun: u64,
        outcome: Result<Input<R>, Retry>,
        basis: Basis,
    },
    Heard(Heard),
    /// Compare the record with the store, and register the waiter.
    Look(Option<Wait<R>>),
    Leave(Leave),
}

/// Whether an effect runs for the first time, or an earlier attempt may be under way outside still.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Attempt {
    First,
    Again,
}

impl<R: Resource> Owner<R> {
    /// `doubtful`: an earlier owner of the resource may have left a write under way.
    pub(super) fn new(
        id: R::Key,
        host: Arc<R::Host>,
        health: Arc<Health>,
        rules: Rules,
        attempt: Attempt,
        doubtful: bool,
    ) -> Self {
        Owner {
            id,
            host,
            health,
            rules,
            record: None,
            attempt,
            doubtful,
            lease: None,
            turns: VecDeque::new(),
            deciding: false,
            performing: None,
            begun: 0,
            failures: 0,
            waiting: Vec::new(),
        }
    }

    /// The whole recovery after a crash: read the record, and run its pending effect.
    fn recover(&mut self, ctx: &mut Context<Self>) {
        if self.doubtful {
            self.turns.push_front(Turn::Look(None));
            return self.go_on(ctx);
        }
        match self.host.store().get::<R>(&self.id) {
            Ok(found) => self.record = found,
            #[allow(
                clippy::panic,
                reason = "an owner without its state must not reply; the guard tries again"
            )]
            Err(e) => panic!("{} {}: {e}", R::TREE, self.id),
        }
        self.perform(self.pause(), self.attempt, ctx);
        self.go_on(ctx);
    }

    /// How long the pending effect waits for its time.
    fn pause(&self) -> Duration {
        let work = self.record.as_ref().and_then(|stored| stored.work());
        let at = work.and_then(|work| work.at);
        at.map_or(Duration::ZERO, |at| at.since(self.host.clock().now()))
    }

    fn queue(&mut self, turn: Turn<R>, ctx: &mut Context<Self>) {
        self.turns.push_back(turn);
        self.go_on(ctx);
    }

    /// Takes turns from the queue until a decision is under way or the queue is empty.
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        while !self.deciding {
            match self.turns.pop_front() {
                None => return,
                Some(Turn::Command(ask)) => self.on_command(ask, ctx),
                Some(Turn::Outcome { begun, outcome, basis }) if begun == self.begun => {
                    self.on_outcome(outcome, basis, ctx);
                }
                Some(Turn::Outcome { .. }) => {}
                Some(Turn::Heard(heard)) => self.on_heard(heard, ctx),
                Some(Turn::Look(wait)) => self.look(wait, ctx),
                Some(Turn::Leave(leave)) => {
                    self.stop(ctx);
                    let _ = leave.0.send(());
                }
            }
        }
    }

    fn on_command(&mut self, ask: Ask<R>, ctx: &mut Context<Self>) {
        if ask.begun.swap(true, SeqCst) {
            // The sender gave up, and its caller knows that nothing was done.
            return;
        }
        let Ask { input, rider, reply, permit, .. } = ask;
        self.decide(Some(input), Some(rider), None, ctx, move |_, result, _| {
            drop(permit);
            let _ = reply.send(result.and_then(|Effective { state, changed, .. }| {
                let state = state.ok_or(Fault::NotFound(R::NOUN))?;
                Ok(OwnerReply { state, changed })
            }));
        });
    }

    fn on_outcome(
        &mut self,
        outcome: Result<Input<R>, Retry>,
        basis: Basis,
        ctx: &mut Context<Self>,
    ) {
        self.performing = None;
        match outcome {
            Ok(outcome) => {
                self.decide(Some(outcome), None, Some(basis), ctx, |owner, result, ctx| {
                    if let Err(fault) = result {
                        owner.perform_again(&fault.to_string(), ctx);
                    }
                });
            }
            Err(Retry(why)) => self.perform_again(&why, ctx),
        }
    }

    fn look(&mut self, wait: Option<Wait<R>>, ctx: &mut Context<Self>) {
        self.decide(None, None, None, ctx, |owner, result, ctx| match (result, wait) {
            (Ok(_), Some(Wait { waiter, permit })) => {
                drop(permit);
                owner.waiting.retain(|waiting| !waiting.reply.is_closed());
                owner.waiting.push(waiter);
            }
            // After an error the sender is dropped, and the handle asks again.
            (Ok(_), None) | (Err(_), Some(_)) => {}
            (Err(fault), None) => owner.look_again(&fault, ctx),
        });
    }

    /// No caller retries this read, so the owner does.
    fn look_again(&mut self, why: &Fault, ctx: &mut Context<Self>) {
        tracing::warn!(kind = R::TREE, id = %self.id, %why, "a record cannot be read; trying again");
        let pause = self.host.clock().sleep(BACKOFF.longest).into_actor(self);
        ctx.spawn(pause.map(|(), owner, ctx| owner.queue(Turn::Look(None), ctx)));
    }

    /// Decides. `then` runs when the decision is on the disk or was refused.
    fn decide(
        &mut self,
        input: Option<Input<R>>,
        rider: Option<Rider<R>>,
        basis: Option<Basis>,
        ctx: &mut Context<Self>,
        then: impl FnOnce(&mut Self, Result<Effective<R>, Fault>, &mut Context<Self>) + 'static,
    ) {
        self.deciding = true;
        let at = Moment { id: self.id, now: self.host.clock().now() };
        let message = input.as_ref().map_or_else(|| "Look".to_owned(), Input::name);
        self.health.begin(at.now, message);
        let (host, doubtful) = (self.host.clone(), self.doubtful);
        let (remembered, write_within) = (self.record.clone(), self.rules.write_within);
        let question =
            Question { host, at, remembered, doubtful, input, rider, basis, write_within };
        ctx.spawn(decide(question).into_actor(self).map(move |decided, owner, ctx| {
            let result = owner.adopt(decided, ctx);
            then(owner, result, ctx);
            owner.health.end();
            owner.reply_to_waiting();
            owner.deciding = false;
            owner.go_on(ctx);
        }));
    }

    /// Takes over the result of a decision, and starts the effect that it asks for.
    fn adopt(
        &mut self,
        decided: Decided<R>,
        ctx: &mut Context<Self>,
    ) -> Result<Effective<R>, Fault> {
        let Decided { record, overtaken, doubtful, result } = decided;
        let before = std::mem::replace(&mut self.record, record);
        let was_doubtful = std::mem::replace(&mut self.doubtful, doubtful);
        if doubtful && matches!(result, Err(Fault::Uncertain)) {
            self.turns.push_front(Turn::Look(None));
        }
        let begins = result.as_ref().map_or(Begins::GoesOn, |effective| effective.begins);
        match begins {
            Begins::GoesOn if overtaken && was_doubtful => {
                self.perform(self.pause(), Attempt::Again, ctx);
            }
            Begins::GoesOn if overtaken => self.follow(before, ctx),
            Begins::GoesOn => {}
            Begins::After(pause) => self.begin(pause, ctx),
            Begins::Later => self.begin(Duration::ZERO, ctx),
        }
        result
    }

    /// Begins other work than that under way, if the record asks for some.
    fn begin(&mut self, pause: Duration, ctx: &mut Context<Self>) {
        self.failures = 0;
        self.perform(pause, Attempt::First, ctx);
    }

    /// Cancels the running effect, and starts the pending one after a pause.
    fn perform(&mut self, pause: Duration, attempt: Attempt, ctx: &mut Context<Self>) {
        if let Some(overtaken) = self.performing.take() {
            ctx.cancel_future(overtaken);
        }
        self.begun += 1;
        self.lease = self.host.store().lease::<R>(&self.id);
        // Without it, another process performs the effect.
        let Some(lease) = self.lease else { return };
        let Some(stored) = &self.record else { return };
        let Some(task) = stored.task() else { return };
        let (id, kept, host) = (self.id, stored.clone(), self.host.clone());
        let begun_anew = stored.begun_anew;
        let work = async move {
            let clock = host.clock().clone();
            clock.sleep(pause).await;
            let effect = match task {
                Task::Perform(effect) => effect,
                Task::Empty => return Ok(Input::Emptied(host.delete_children(&id).await?)),
            };
            let unanswered = || R::unanswered(&effect, &kept.state);
            if let Some(outcome) = (attempt == Attempt::Again).then(unanswered).flatten() {
                return Ok(Input::Outcome(outcome));
            }
            let within = R::time_limit(&kept.state);
            let done = clock.limit(within, R::perform(effect, id, kept, host)).await;
            let done = done.unwrap_or_else(|| Err(Retry(format!("not done within {within:?}"))));
            done.map(Input::Outcome)
        };
        let work = under(lease, self.host.clone(), work);
        let (begun, basis) = (self.begun, Basis { lease, begun_anew });
        self.performing = Some(ctx.spawn(work.into_actor(self).map(move |outcome, owner, ctx| {
            owner.queue(Turn::Outcome { begun, outcome, basis }, ctx);
        })));
    }

    /// Retries the effect after a growing pause.
    fn perform_again(&mut self, why: &str, ctx: &mut Context<Self>) {
        if !self.acts() {
            return self.perform(self.pause(), Attempt::Again, ctx);
        }
        let pause = BACKOFF.pause_of(self.id.unique().0, self.failures);
        self.failures = self.failures.saturating_add(1);
        tracing::warn!(kind = R::TREE, id = %self.id, failures = self.failures, why, "an effect failed; trying again");
        self.perform(pause, Attempt::Again, ctx);
    }

    fn is_idle(&self) -> bool {
        self.record.as_ref().is_none_or(|stored| stored.task().is_none())
    }

    /// Replies to those whose wait is over.
    fn reply_to_waiting(&mut self) {
        if self.doubtful || self.waiting.is_empty() {
            return;
        }
        let is_idle = self.is_idle();
        let state = self.record.clone().map(StateOf);
        let is_over = |it: &mut Waiter<R>| is_idle || state.as_deref().is_some_and(it.enough);
        for waiter in self.waiting.extract_if(.., is_over) {
            let _ = waiter.reply.send(state.clone());
        }
    }

    /// Stops for good. The commands in the queue have not begun, so their senders send them again.
    fn stop(&mut self, ctx: &mut Context<Self>) {
        self.deciding = true;
        self.turns.clear();
        ctx.stop();
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
    /// The queue stays. The reply to the command in hand is lost.
    fn restarting(&mut self, _: &mut Self::Context) {
        (self.record, self.performing, self.lease) = (None, None, None);
        (self.deciding, self.doubtful) = (false, true);
        self.waiting.clear();
    }
}

impl<R: Resource> Handler<Ask<R>> for Owner<R> {
    type Result = ();
    fn handle(&mut self, ask: Ask<R>, ctx: &mut Self::Context) {
        self.queue(Turn::Command(ask), ctx);
    }
}

impl<R: Resource> Handler<Wait<R>> for Owner<R> {
    type Result = ();
    fn handle(&mut self, wait: Wait<R>, ctx: &mut Self::Context) {
        self.queue(Turn::Look(Some(wait)), ctx);
    }
}

impl<R: Resource> Handler<Heard> for Owner<R> {
    type Result = ();
    fn handle(&mut self, heard: Heard, ctx: &mut Self::Context) {
        self.queue(Turn::Heard(heard), ctx);
    }
}

impl<R: Resource> Handler<Leave> for Owner<R> {
    type Result = ();
    /// The owner ends the decision under way, and then stops.
    fn handle(&mut self, leave: Leave, ctx: &mut Self::Context) {
        self.turns.push_front(Turn::Leave(leave));
        self.go_on(ctx);
    }
}

impl<R: Resource> Handler<Retire> for Owner<R> {
    type Result = bool;
    fn handle(&mut self, _: Retire, ctx: &mut Self::Context) -> bool {
        let done = self.is_idle() && !self.deciding && self.turns.is_empty() && !self.doubtful;
        if done {
            self.stop(ctx);
        }
        done
    }
}
