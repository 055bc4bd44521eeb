//! The rules of a backup: `running → ready | failed`, and what becomes of one that is ready: it is
//! put back, or verified, one at a time. What is left to be tidied up waits behind both.

use crate::{
    kinds::instances::Instances,
    runtime::{
        entries::Under,
        resource::{Child, Intent, Kept, Moment, Resource, Retry, Step, Unique},
    },
    world::World,
};
use contract::{
    AppId, BackupId, Fault, InstanceId, Sha256, Timestamp,
    backups::{Backup, BackupKind, BackupState, Restore, RestoreState},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use store::Entries;

/// The backups.
#[derive(Debug, Clone, Copy)]
pub struct Backups;

/// How often one that waits looks whether it is its turn.
const POLL: Duration = Duration::from_secs(1);
/// How long a dump or a restore may take.
pub(super) const WITHIN: Duration = Duration::from_secs(3600);

/// What is kept of a backup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What is shown.
    pub backup: Backup,
    /// The end of a state that must end.
    pub deadline: Option<Timestamp>,
    /// Once it is ready, it is verified.
    #[serde(default)]
    pub verify: bool,
    /// Whether the throw-away database of a restore check may exist and has to be removed.
    #[serde(default, rename = "on_trial")]
    pub has_check_database: bool,
    /// It was put into an empty database and that did not do. A verification that could not be
    /// carried out says nothing.
    #[serde(default)]
    pub useless: bool,
    /// How many its schedule keeps; of one that somebody asked for, nothing.
    #[serde(default)]
    pub keep: Option<u32>,
    /// It may be one more than its schedule keeps.
    #[serde(default)]
    pub surplus: bool,
    /// It is being removed; nobody sees it any more.
    pub removing: bool,
}

/// A backup to be made.
#[derive(Debug, Clone)]
pub struct Begin {
    /// As it begins.
    pub backup: Backup,
    /// How many its schedule keeps; of one that somebody asked for, nothing.
    pub keep: Option<u32>,
    /// Whether it is verified once it is ready.
    pub verify: bool,
}

/// What can be asked of a backup.
#[derive(Debug, Clone)]
pub enum Command {
    /// Put it back.
    Restore,
    /// Put it into a database that is thrown away.
    Verify,
    /// A state that must end has not.
    Overdue,
    /// Remove it, where nothing is under way with it.
    Delete,
    /// Remove it with its app.
    Remove,
}

/// What a backup does outside of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Dump the database.
    Dump,
    /// Put the dump back.
    Restore,
    /// Put the dump into an empty database.
    Verify,
    /// Throw that database away.
    Dispose,
    /// Remove what is more than the schedule keeps.
    Thin,
    /// Remove the bytes of a dump that failed.
    Clean,
    /// Remove the bytes, and then the record. A database that it is put into meanwhile is swept by
    /// who watches the engine.
    Discard,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The dump is whole: its size and hash.
    Dumped(u64, Sha256),
    /// The dump was put back, or into an empty database.
    Restored,
    /// It cannot be done.
    Failed(String),
    /// There is no telling whether it could be put back.
    Unverified(String),
    /// It is not its turn to be verified yet.
    Wait,
    /// Nothing is left of the database that it was put into.
    Disposed,
    /// No more are left than the schedule keeps.
    Thinned,
    /// Nothing is left of the bytes.
    Discarded,
}

store::entries! {
    /// What backups are found by.
    pub enum BackupIndex of Backups {
        /// Being verified, or waiting for it.
        Verifying = "verifying",
    }
}

store::claims! {
    /// What no two backups have in common: dumping or putting back the same database.
    pub enum BackupClaim of Backups {
        Sql { instance: InstanceId } = "sql",
        Document { instance: InstanceId } = "document",
    }
}

impl BackupClaim {
    /// Work on this database.
    pub fn of(instance: InstanceId, kind: BackupKind) -> Self {
        match kind {
            BackupKind::SqlDb => BackupClaim::Sql { instance },
            BackupKind::DocumentDb => BackupClaim::Document { instance },
        }
    }
}

impl Child for Backups {
    fn parent(state: &State) -> Option<AppId> {
        Some(state.backup.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

/// What is said where a database is dumped or put back already.
pub(super) fn taken() -> Fault {
    Fault::NotNow("this database is being dumped or put back already; wait for that".into())
}

impl Resource for Backups {
    const TIME_LIMIT: Duration = Duration::from_secs(3660);
    type New = Begin;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(at: &Moment<Self>, begin: Begin) -> Result<Step<Self>, Fault> {
        let state = State::new(begin, at.now + WITHIN);
        Ok(Step::put(state).intend(Intent::Now(Effect::Dump)))
    }

    fn on_command(state: State, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        state.on_command(at, command)
    }

    fn on_outcome(state: State, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        state.on_outcome(at, outcome)
    }

    fn is_deleted(state: &State) -> bool {
        state.removing
    }

    fn index(state: &State) -> Entries<Self> {
        let verifying = is_running(&state.backup.verification).then_some(BackupIndex::Verifying);
        Entries::default().and(Under::<Instances>(state.backup.instance_id)).and_all(verifying)
    }

    /// A database is dumped, or put back, once at a time.
    fn claims(state: &State) -> Vec<Unique<Self>> {
        let running =
            state.backup.state == BackupState::Running || is_running(&state.backup.restore);
        let of = BackupClaim::of(state.backup.instance_id, state.backup.kind);
        (running && !state.removing).then(|| Unique::new(of, taken)).into_iter().collect()
    }

    fn deadline(state: &State) -> Option<(Timestamp, Command)> {
        state.deadline.map(|at| (at, Command::Overdue))
    }

    fn perform(
        effect: Effect,
        id: BackupId,
        kept: Arc<Kept<Self>>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, kept, world))
    }
}

impl State {
    /// One that begins.
    fn new(Begin { backup, keep, verify }: Begin, deadline: Timestamp) -> State {
        State {
            backup,
            deadline: Some(deadline),
            verify,
            keep,
            has_check_database: false,
            useless: false,
            surplus: false,
            removing: false,
        }
    }

    fn on_command(
        mut self,
        at: &Moment<Backups>,
        command: Command,
    ) -> Result<Step<Backups>, Fault> {
        match command {
            _ if self.removing => Ok(Step::keep()),
            Command::Restore if is_running(&self.backup.restore) => Ok(Step::keep()),
            Command::Verify if is_running(&self.backup.verification) => Ok(Step::keep()),
            Command::Restore => {
                self.is_free_to("put back")?;
                // That is more urgent than to know whether it can be done.
                end(&mut self.backup.verification, Some("it was put back meanwhile".into()), at);
                self.backup.restore = Some(begun(at));
                self.deadline = Some(at.now + WITHIN);
                Ok(Step::put(self).intend(Intent::Now(Effect::Restore)))
            }
            Command::Verify => {
                self.is_free_to("verified")?;
                Ok(self.verify(at))
            }
            Command::Overdue => match self.deadline {
                Some(deadline) if at.now >= deadline => {
                    let why = "it was not done within an hour".to_owned();
                    let verifying = is_running(&self.backup.verification);
                    let late = if verifying { Outcome::Unverified } else { Outcome::Failed };
                    Ok(self.on_outcome(at, late(why)))
                }
                _ => Ok(Step::keep()),
            },
            Command::Delete if self.is_busy() => Err(Fault::NotNow(
                "this backup is being written or put back; delete it after that".into(),
            )),
            Command::Delete | Command::Remove => {
                self.removing = true;
                self.deadline = None;
                end(&mut self.backup.verification, Some("it was deleted meanwhile".into()), at);
                Ok(Step::put(self).intend(Intent::Now(Effect::Discard)))
            }
        }
    }

    /// Whether it is ready and not being put back.
    fn is_free_to(&self, what: &str) -> Result<(), Fault> {
        match self.backup.state {
            BackupState::Ready if self.is_busy() => {
                Err(Fault::NotNow("this backup is being put back; wait for that".into()))
            }
            BackupState::Ready => Ok(()),
            state => Err(Fault::NotNow(
                format!("this backup is {state:?}; only one that is ready can be {what}")
                    .to_lowercase(),
            )),
        }
    }

    fn is_busy(&self) -> bool {
        self.backup.state == BackupState::Running || is_running(&self.backup.restore)
    }

    fn verify(mut self, at: &Moment<Backups>) -> Step<Backups> {
        self.backup.verification = Some(begun(at));
        self.has_check_database = true;
        self.deadline = Some(at.now + WITHIN);
        Step::put(self).intend(Intent::Now(Effect::Verify))
    }

    fn on_outcome(mut self, at: &Moment<Backups>, outcome: Outcome) -> Step<Backups> {
        let Backup { state, restore, verification, .. } = &mut self.backup;
        match outcome {
            Outcome::Discarded if self.removing => return Step::remove(),
            _ if self.removing => return Step::keep(),
            Outcome::Wait => return Step::keep().intend(Intent::After(POLL, Effect::Verify)),
            Outcome::Disposed => self.has_check_database = false,
            Outcome::Thinned => self.surplus = false,
            Outcome::Discarded => {}
            Outcome::Dumped(size, sha256) if *state == BackupState::Running => {
                *state = BackupState::Ready;
                (self.backup.size, self.backup.sha256) = (Some(size), Some(sha256));
                self.backup.finished_at = Some(at.now);
                self.surplus = self.keep.is_some();
                if self.verify {
                    return self.verify(at);
                }
            }
            Outcome::Failed(why) if *state == BackupState::Running => {
                *state = BackupState::Failed;
                self.backup.error = Some(why);
                self.backup.finished_at = Some(at.now);
                self.surplus = self.keep.is_some();
                self.deadline = None;
                return Step::put(self).intend(Intent::Now(Effect::Clean));
            }
            Outcome::Restored if is_running(restore) => end(restore, None, at),
            Outcome::Failed(why) if is_running(restore) => end(restore, Some(why), at),
            Outcome::Restored if is_running(verification) => {
                end(verification, None, at);
                self.useless = false;
            }
            Outcome::Failed(why) if is_running(verification) => {
                end(verification, Some(why), at);
                self.useless = true;
            }
            Outcome::Unverified(why) if is_running(verification) => {
                end(verification, Some(format!("it could not be verified: {why}")), at);
            }
            _ => return Step::keep(),
        }
        self.deadline = None;
        let next = self.tidy();
        Step::put(self).intend(next)
    }

    /// What is left to be tidied up.
    fn tidy(&self) -> Intent<Effect> {
        match self {
            State { has_check_database: true, .. } => Intent::Now(Effect::Dispose),
            State { surplus: true, .. } => Intent::Now(Effect::Thin),
            _ => Intent::None,
        }
    }
}

fn begun(at: &Moment<Backups>) -> Restore {
    Restore { state: RestoreState::Running, error: None, started_at: at.now, finished_at: None }
}

fn is_running(restore: &Option<Restore>) -> bool {
    restore.as_ref().is_some_and(|restore| restore.state == RestoreState::Running)
}

/// What is under way has come to its end, with this problem or none.
fn end(restore: &mut Option<Restore>, problem: Option<String>, at: &Moment<Backups>) {
    if let Some(restore) = restore.as_mut().filter(|r| r.state == RestoreState::Running) {
        restore.finished_at = Some(at.now);
        restore.state =
            if problem.is_some() { RestoreState::Failed } else { RestoreState::Succeeded };
        restore.error = problem;
    }
}
