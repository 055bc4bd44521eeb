//! Plans changes on the copy, and sends them in batches that share no row.

use super::{
    follower::{GIVEN_UP, Over, PATIENCE, Waiter},
    lane::{Lane, Rowset, Written},
};
use crate::{
    Inner, StoreError,
    batch::{Batch, Parts, Refusal},
    committer::Job,
    io,
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Instant,
};
use tokio::sync::mpsc;

/// Changes of one batch at most: more make the first caller wait for the last.
const LARGEST_BATCH: usize = 256;
/// Bytes of one batch. One change may be larger.
const LARGEST_BATCH_BYTES: u64 = 4 << 20;
/// How often a change is planned anew because another node was faster. Each time, another node went on.
const MOST_TRIES: u32 = 64;

/// A change that waits, and how often it was planned in vain.
struct Waiting {
    job: Job,
    tries: u32,
}

/// What the copy says of a change.
type Verdict = Result<(), Refusal>;
/// A change and its answer.
type Answered = (Waiting, Result<(), StoreError>);

/// Plans batches and gives them to lanes that are free.
pub(super) struct Planner {
    inner: Arc<Inner>,
    fences: mpsc::UnboundedSender<Waiter>,
    lanes: Vec<Lane>,
    waiting: VecDeque<Waiting>,
}

/// What a lane gives back when its batch has ended.
struct Ended {
    lane: Lane,
    /// The keys that no other batch could use meanwhile.
    touched: HashSet<Vec<u8>>,
    /// The changes that must be planned anew.
    again: Vec<Waiting>,
}

impl Planner {
    pub(super) fn new(
        inner: Arc<Inner>,
        fences: mpsc::UnboundedSender<Waiter>,
        lanes: Vec<Lane>,
    ) -> Planner {
        Planner { inner, fences, lanes, waiting: VecDeque::new() }
    }

    /// Writes the changes that come, until none can come any more.
    pub(super) async fn run(mut self, mut incoming: mpsc::UnboundedReceiver<Job>) {
        let (mut under_way, mut busy, mut open) = (FuturesUnordered::new(), HashSet::new(), true);
        while open || !self.waiting.is_empty() || !under_way.is_empty() {
            tokio::select! {
                job = incoming.recv(), if open => match job {
                    Some(job) => self.waiting.push_back(Waiting { job, tries: 0 }),
                    None => open = false,
                },
                Some(Ended { lane, touched, again }) = under_way.next() => {
                    self.lanes.push(lane);
                    busy.retain(|key| !touched.contains(key));
                    again.into_iter().rev().for_each(|job| self.waiting.push_front(job));
                }
            }
            while let Ok(job) = incoming.try_recv() {
                self.waiting.push_back(Waiting { job, tries: 0 });
            }
            while let Some(lane) = self.lanes.pop() {
                let (taken, touched) = self.take(&busy);
                if taken.is_empty() {
                    self.lanes.push(lane);
                    break;
                }
                busy.extend(touched.iter().cloned());
                under_way.push(self.write(lane, taken, touched));
            }
        }
    }

    /// Takes the changes of the next batch: those that share no row with a batch under way or with a change
    /// before them that must wait.
    fn take(&mut self, busy: &HashSet<Vec<u8>>) -> (Vec<Waiting>, HashSet<Vec<u8>>) {
        let (mut taken, mut touched, mut bytes) = (Vec::new(), HashSet::new(), 0);
        let (mut left, mut blocked) = (VecDeque::new(), HashSet::new());
        while let Some(next) = self.waiting.pop_front() {
            if taken.len() == LARGEST_BATCH || bytes >= LARGEST_BATCH_BYTES {
                self.waiting.push_front(next);
                break;
            }
            let keys: Vec<_> = next.job.change.touches().collect();
            if keys.iter().any(|key| busy.contains(key) || blocked.contains(key)) {
                blocked.extend(keys);
                left.push_back(next);
            } else {
                bytes += next.job.change.bytes();
                touched.extend(keys);
                taken.push(next);
            }
        }
        left.into_iter().rev().for_each(|job| self.waiting.push_front(job));
        (taken, touched)
    }

    /// Plans a batch at once, and writes it on a lane.
    fn write(
        &self,
        mut lane: Lane,
        taken: Vec<Waiting>,
        touched: HashSet<Vec<u8>>,
    ) -> impl Future<Output = Ended> + use<> {
        let inner = self.inner.clone();
        let fences = self.fences.clone();
        let begun = Instant::now();
        let usable = inner.vitals.check_database(PATIENCE);
        let mut batch = Batch::with_reads(&inner);
        let plan = |waiting: &Waiting| match &usable {
            Ok(()) => batch.add(waiting.job.change.clone()),
            Err(why) => Err(Refusal { why: why.clone(), depends: false }),
        };
        let verdicts: Vec<_> = taken.iter().map(plan).collect();
        let Parts { writes, seen, reads, leases } = batch.into_parts();
        let rows = Rowset::new(writes, reads, &leases);
        async move {
            let ended = |lane, again| Ended { lane, touched, again };
            if rows.is_empty() {
                answer(&inner, told(taken, verdicts, &Ok(())));
                return ended(lane, Vec::new());
            }
            match lane.write(&rows).await {
                Ok(Written::Whole(seq)) => {
                    inner.vitals.took(begun.elapsed());
                    inner.vitals.has_room();
                    let fenced = fence(&fences, Waiter::for_own_batch(seen, seq)).await;
                    // It is written, also if the caller would not see it.
                    answer(&inner, told(taken, verdicts, &fenced.map_err(io)));
                    ended(lane, Vec::new())
                }
                Ok(Written::Conflict) => {
                    let fenced = fence(&fences, Waiter::new()).await;
                    let (again, over) = sort_out(taken, verdicts, &fenced);
                    answer(&inner, over);
                    ended(lane, again)
                }
                // Planned anew, what was under these leases is refused, and all else is written.
                Ok(Written::NotHeld) => {
                    inner.leases.lose(leases.iter().map(|lease| lease.shard));
                    let (again, over) = sort_out(taken, verdicts, &Ok(()));
                    answer(&inner, over);
                    ended(lane, again)
                }
                Ok(Written::Forgotten) => {
                    inner.vitals.needs_new_copy(GIVEN_UP);
                    let why = StoreError::Busy(GIVEN_UP.into());
                    answer(&inner, told(taken, verdicts, &Err(why)));
                    ended(lane, Vec::new())
                }
                Err(e) => {
                    if e == StoreError::NoRoom {
                        inner.vitals.is_full();
                    }
                    answer(&inner, told(taken, verdicts, &Err(e)));
                    ended(lane, Vec::new())
                }
            }
        }
    }
}

async fn fence(
    fences: &mpsc::UnboundedSender<Waiter>,
    (waiter, over): (Waiter, Over),
) -> Result<(), StoreError> {
    let closed = || StoreError::Unreachable("the store is closed".into());
    fences.send(waiter).map_err(|_| closed())?;
    over.await.map_err(|_| closed())?
}

/// What the callers are told when `written` became of the batch. A refusal for what an earlier change of the
/// batch would have done is none if that was not done.
fn told(
    taken: Vec<Waiting>,
    verdicts: Vec<Verdict>,
    written: &Result<(), StoreError>,
) -> Vec<Answered> {
    let told = |verdict: Verdict| match (verdict, written) {
        (Err(Refusal { depends: true, .. }), Err(e)) => Err(e.clone()),
        (Err(refusal), _) => Err(refusal.why),
        (Ok(()), written) => written.clone(),
    };
    taken.into_iter().zip(verdicts.into_iter().map(told)).collect()
}

/// After a conflict: the changes that are planned anew, and those that have their answer.
fn sort_out(
    taken: Vec<Waiting>,
    verdicts: Vec<Verdict>,
    fenced: &Result<(), StoreError>,
) -> (Vec<Waiting>, Vec<Answered>) {
    let (mut again, mut over) = (Vec::new(), Vec::new());
    for (mut waiting, verdict) in taken.into_iter().zip(verdicts) {
        waiting.tries += 1;
        match (verdict, fenced) {
            (Err(Refusal { why, depends: false }), _) => over.push((waiting, Err(why))),
            (_, Err(e)) => over.push((waiting, Err(e.clone()))),
            (_, Ok(())) if waiting.tries < MOST_TRIES => again.push(waiting),
            (_, Ok(())) => {
                let why = StoreError::Busy("other nodes change the same records".into());
                over.push((waiting, Err(why)));
            }
        }
    }
    (again, over)
}

fn answer(inner: &Inner, answered: Vec<Answered>) {
    inner.vitals.dequeue(answered.len() as u64);
    for (Waiting { job, .. }, answer) in answered {
        if let Some(done) = job.done {
            let _ = done.send(answer);
        }
    }
}
