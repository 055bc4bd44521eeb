//! How the store fares: whether it takes changes, whether it can be read, and what helps if not.

use crate::StoreError;
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant},
};

/// Changes that may wait before new ones are refused: at 20,000 a second, less than a second.
const LONGEST_QUEUE: u64 = 16_384;

/// The state of the writer, for operators and for those who read and write.
#[derive(Default)]
pub(crate) struct Vitals {
    waiting: AtomicU64,
    flush_us: AtomicU64,
    broken: Mutex<Option<Broken>>,
    /// A batch was written in part, so reads are refused.
    torn: AtomicBool,
    /// The last change was refused because the disk is full.
    full: AtomicBool,
    /// Since when the database does not answer, and what it said.
    silent: Mutex<Option<(Instant, String)>>,
    /// When the copy last was what the database held.
    followed: Mutex<Option<Instant>>,
}

/// Breaks the store when it is dropped, unless the thread has ended as it should.
struct Guard<'a> {
    vitals: &'a Vitals,
    breaks: Option<fn(&Vitals)>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if let Some(breaks) = self.breaks {
            breaks(self.vitals);
        }
    }
}

/// Why the store takes no changes until it is opened again.
#[derive(Clone)]
struct Broken {
    why: String,
    remedy: Remedy,
}

/// What helps a store that takes no changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Remedy {
    /// Nobody knows, so a person must look.
    Unknown,
    /// To open it again once the disk has room.
    Room,
    /// To open it again, which fills the copy anew.
    NewCopy,
}

/// How systems say that a disk has no room, and that a user may have no more of it.
const FULL: [&str; 2] = ["No space left on device", "quota exceeded"];

fn is_of_full_disk(why: &str) -> bool {
    FULL.iter().any(|says| why.contains(says))
}

impl Vitals {
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    /// Refuses all further changes. After a failed flush it is unknown what is on the disk, so the
    /// service must restart and read it.
    pub(crate) fn break_down(&self, why: &str) {
        self.break_with(why, if is_of_full_disk(why) { Remedy::Room } else { Remedy::Unknown });
    }

    fn break_with(&self, why: &str, remedy: Remedy) {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        broken.get_or_insert_with(|| Broken { why: why.to_owned(), remedy });
    }

    /// Refuses everything until the store is opened again, because the copy is not what the database holds.
    pub(crate) fn needs_new_copy(&self, why: &str) {
        tracing::error!(why, "the copy of the database is of no use");
        self.break_with(why, if is_of_full_disk(why) { Remedy::Room } else { Remedy::NewCopy });
        self.tear();
    }

    /// Runs a thread that the store needs. If it panics, `breaks` says what becomes of the store.
    pub(crate) fn guard<T>(&self, breaks: fn(&Vitals), thread: impl FnOnce() -> T) -> T {
        let mut guard = Guard { vitals: self, breaks: Some(breaks) };
        let ended = thread();
        guard.breaks = None;
        ended
    }

    /// The disk has no room for a change.
    pub(crate) fn is_full(&self) {
        if !self.full.swap(true, Relaxed) {
            tracing::error!("the disk is full: changes are refused until there is room");
        }
    }

    /// The disk has room for a change.
    pub(crate) fn has_room(&self) {
        if self.full.swap(false, Relaxed) {
            tracing::warn!("the disk has room again");
        }
    }

    /// The database does not answer. Returns for how long it has not.
    pub(crate) fn does_not_answer(&self, why: &str) -> Duration {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, _) = silent.get_or_insert_with(|| {
            tracing::error!(why, "the database does not answer");
            (Instant::now(), why.to_owned())
        });
        since.elapsed()
    }

    /// The database has answered.
    pub(crate) fn answers(&self) {
        *self.followed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((since, _)) = silent {
            tracing::warn!(silent_ms = since.elapsed().as_millis(), "the database answers again");
        }
    }

    /// Refuses changes that could not be sent: the store is broken, or the database has been silent for longer
    /// than this.
    pub(crate) fn check_database(&self, longest: Duration) -> Result<(), StoreError> {
        self.check()?;
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        match silent.as_ref().filter(|(since, _)| since.elapsed() > longest) {
            Some((_, why)) => Err(StoreError::Unreachable(why.clone())),
            None => Ok(()),
        }
    }

    /// How old the copy of a database is; zero without one.
    pub(crate) fn age_of_copy(&self) -> Duration {
        let followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.map_or(Duration::ZERO, |at| at.elapsed())
    }

    /// Refuses what waits, if too much waits already.
    pub(crate) fn enqueue(&self) -> Result<(), StoreError> {
        if self.waiting.fetch_add(1, Relaxed) >= LONGEST_QUEUE {
            self.dequeue(1);
            return Err(StoreError::Busy("too many changes wait for the disk".into()));
        }
        Ok(())
    }

    pub(crate) fn dequeue(&self, count: u64) {
        self.waiting.fetch_sub(count, Relaxed);
    }

    /// Notes how long a batch took.
    pub(crate) fn took(&self, time: Duration) {
        self.flush_us.store(time.as_micros().max(1) as u64, Relaxed);
    }

    fn broken(&self) -> Option<Broken> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it helps to open the store again. `has_room` says whether the disk has room.
    pub(crate) fn would_open_again(&self, has_room: impl FnOnce() -> bool) -> bool {
        match self.broken().map(|broken| broken.remedy) {
            None | Some(Remedy::Unknown) => false,
            Some(Remedy::Room) => has_room(),
            Some(Remedy::NewCopy) => true,
        }
    }

    /// Refuses reads until the service restarts, because a batch was written in part.
    pub(crate) fn tear(&self) {
        self.torn.store(true, SeqCst);
    }

    pub(crate) fn check_readable(&self) -> Result<(), StoreError> {
        let torn = || StoreError::Busy("a write failed; restart the service".into());
        if self.torn.load(Relaxed) { Err(torn()) } else { Ok(()) }
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.broken().map_or(Ok(()), |broken| Err(StoreError::Busy(broken.why)))
    }

    pub(crate) fn last_flush_ms(&self) -> Result<Option<f64>, String> {
        if let Some(broken) = self.broken() {
            return Err(broken.why);
        }
        if self.full.load(Relaxed) {
            return Err(StoreError::NoRoom.to_string());
        }
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, why)) = silent.as_ref() {
            return Err(StoreError::Unreachable(why.clone()).to_string());
        }
        let us = self.flush_us.load(Relaxed);
        Ok((us > 0).then_some(us as f64 / 1000.0))
    }
}
