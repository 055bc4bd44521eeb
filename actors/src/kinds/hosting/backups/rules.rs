//! The rules of a backup: `running → ready | failed`. A ready backup is restored or verified, one
//! at a time; clean-up waits for both.

use super::begin::Begin;
use crate::{
    kinds::{
        hosting::instances::{Instances, database::WITHIN},
        world::World,
    },
    runtime::{
        entries::Under,
        resource::{Child, Kept, Moment, Resource, Retry, Step, Unique, Work},
        uses::Uses,
    },
};
use contract::{
    AppId, BackupId, Fault, InstanceId, Sha256, Timestamp,
    backups::{Backup, BackupKind, BackupState, Restore, RestoreState},
    quotas::Quota,
    text::Identifier,
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use store::{Entries, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Backups;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The part that callers see.
    pub backup: Backup,
    /// When the dump, restore or verification that runs must have ended.
    pub deadline: Option<Timestamp>,
    /// Whether the backup is verified once it is ready.
    #[serde(default)]
    pub verify: bool,
    /// Whether the throw-away database of a restore check may exist and has to be removed.
    #[serde(default, rename = "on_trial")]
    pub has_check_database: bool,
    /// Whether the dump is in the instance's database, and the instance is still to be restarted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restored: bool,
    /// Whether the bytes of a dump that failed may exist and have to be removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_left_bytes: bool,
    /// The last verification failed. A verification that could not be carried out does not count.
    #[serde(default)]
    pub useless: bool,
    /// The name of the database that was dumped. Earlier versions did not record it.
    #[serde(default)]
    pub database: Option<Identifier>,
    /// How many backups the schedule keeps. `None`: a caller asked for this backup.
    #[serde(default)]
    pub keep: Option<u32>,
    /// The schedule may have more backups than it keeps: retention is to be applied.
    #[serde(default)]
    pub surplus: bool,
    /// The backup is deleted for callers; its bytes are being removed.
    pub removing: bool,
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Restore the backup into its instance's database.
    Restore,
    /// Restore the backup into a throw-away database.
    Verify,
    /// Delete the backup, unless it is being written or restored.
    Delete,
    /// Delete the backup together with its app.
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Dump,
    /// Restore the dump into the instance's database.
    Restore,
    /// Restart the instance, whose servers remember the database as it was.
    Restart,
    /// Restore the dump into a throw-away database.
    Verify,
    /// Remove the throw-away database.
    Dispose,
    /// Apply the schedule's retention.
    Thin,
    /// Remove the bytes of a dump that failed.
    Clean,
    /// Remove the bytes, then the record. The instance reconciler removes a throw-away database
    /// that is left over.
    Discard,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The dump is complete: the size of its file in bytes, and its hash.
    Dumped(u64, Sha256),
    /// The dump was restored, into either database.
    Restored,
    /// The instance of the restored database restarts.
    Restarted,
    /// The dump or the restore failed, for this reason.
    Failed(String),
    /// The restore check could not be carried out, for this reason.
    Unverified(String),
    /// The throw-away database is removed.
    Disposed,
    /// Retention was applied.
    Thinned,
    /// The bytes are removed.
    Discarded,
}

store::entries! {
    pub enum BackupIndex of Backups {
        /// Backups that are verified or wait for it. Nothing looks there. The stores hold the entries, and
        /// each record must have those of its kind.
        Verifying = "verifying",
    }
}

store::claims! {
    /// A database is dumped or restored by one backup at a time.
    pub enum BackupClaim of Backups {
        Sql { instance: InstanceId } = "sql",
        Document { instance: InstanceId } = "document",
    }
}

impl BackupClaim {
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

/// Another backup or a restore has the database.
pub(crate) fn in_use() -> Fault {
    Fault::NotNow("this database is being dumped or put back already; wait for that".into())
}

impl Resource for Backups {
    const INDEX: u16 = 2;
    const TIME_LIMIT: Duration = Duration::from_secs(3660);
    type New = Begin;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(at: &Moment<Self>, begin: Begin) -> Result<Step<Self>, Fault> {
        Ok(Step::put(State::new(begin, at.now)))
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

    fn claims(state: &State) -> Vec<Unique<Self>> {
        let running =
            state.backup.state == BackupState::Running || is_running(&state.backup.restore);
        let of = BackupClaim::of(state.backup.instance_id, state.backup.kind);
        (running && !state.removing).then(|| Unique::new(of, in_use)).into_iter().collect()
    }

    /// A dump that is being written counts a byte, so that none begins where no byte is left. One that failed
    /// counts until it is deleted, except those of schedules, which go by themselves.
    fn uses(State { backup, .. }: &State) -> Uses {
        let bytes = match backup.state {
            BackupState::Running => 1,
            BackupState::Ready => backup.size.unwrap_or(1),
            BackupState::Failed if backup.scheduled => return Uses::default(),
            BackupState::Failed => 0,
        };
        Uses::one(Quota::Backups).and(Quota::BackupBytes, bytes)
    }

    fn next(state: &State) -> Option<Work<Effect>> {
        state.next().map(|effect| Work::now(effect).until(state.deadline))
    }

    fn on_due(state: State, at: &Moment<Self>) -> Step<Self> {
        let why = "it was not done within an hour".to_owned();
        let verifying = is_running(&state.backup.verification);
        let late = if verifying { Outcome::Unverified } else { Outcome::Failed };
        state.on_outcome(at, late(why))
    }

    fn adopt(kept: &mut Kept<Self>, intent: &Value) {
        kept.state.has_left_bytes = *intent == "Clean";
    }

    fn perform(
        effect: Effect,
        id: BackupId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, kept, world))
    }
}

impl State {
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
                // A restore is more urgent than a restore check.
                end(&mut self.backup.verification, Some("it was put back meanwhile".into()), at);
                self.backup.restore = Some(begun(at));
                self.deadline = Some(at.now + WITHIN);
                Ok(Step::put(self))
            }
            Command::Verify => {
                self.is_free_to("verified")?;
                Ok(self.verify(at))
            }
            Command::Delete if self.is_busy() => Err(Fault::NotNow(
                "this backup is being written or put back; delete it after that".into(),
            )),
            Command::Delete | Command::Remove => {
                self.removing = true;
                self.deadline = None;
                end(&mut self.backup.verification, Some("it was deleted meanwhile".into()), at);
                Ok(Step::put(self))
            }
        }
    }

    /// Refuses a backup that is not ready or is being restored.
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
        Step::put(self)
    }

    fn on_outcome(mut self, at: &Moment<Backups>, outcome: Outcome) -> Step<Backups> {
        let Backup { state, restore, verification, .. } = &mut self.backup;
        match outcome {
            Outcome::Discarded if self.removing => return Step::remove(),
            _ if self.removing => return Step::keep(),
            Outcome::Disposed => self.has_check_database = false,
            Outcome::Thinned => self.surplus = false,
            Outcome::Discarded => self.has_left_bytes = false,
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
                self.has_left_bytes = true;
            }
            // The deadline stays: it is that of the restart, too.
            Outcome::Restored if is_running(restore) => {
                self.restored = true;
                return Step::put(self);
            }
            Outcome::Restarted if self.restored => {
                end(restore, None, at);
                self.restored = false;
            }
            Outcome::Failed(why) if is_running(restore) => {
                end(restore, Some(why), at);
                self.restored = false;
            }
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
        Step::put(self)
    }

    /// What is running, and then the clean-up that is left.
    fn next(&self) -> Option<Effect> {
        let Backup { state, restore, verification, .. } = &self.backup;
        match self {
            State { removing: true, .. } => Some(Effect::Discard),
            _ if *state == BackupState::Running => Some(Effect::Dump),
            State { restored: true, .. } => Some(Effect::Restart),
            _ if is_running(restore) => Some(Effect::Restore),
            _ if is_running(verification) => Some(Effect::Verify),
            State { has_left_bytes: true, .. } => Some(Effect::Clean),
            State { has_check_database: true, .. } => Some(Effect::Dispose),
            State { surplus: true, .. } => Some(Effect::Thin),
            _ => None,
        }
    }
}

fn begun(at: &Moment<Backups>) -> Restore {
    Restore { state: RestoreState::Running, error: None, started_at: at.now, finished_at: None }
}

fn is_running(restore: &Option<Restore>) -> bool {
    restore.as_ref().is_some_and(|restore| restore.state == RestoreState::Running)
}

/// Ends a running restore or verification: with a problem it failed.
fn end(restore: &mut Option<Restore>, problem: Option<String>, at: &Moment<Backups>) {
    if let Some(restore) = restore.as_mut().filter(|r| r.state == RestoreState::Running) {
        restore.finished_at = Some(at.now);
        restore.state =
            if problem.is_some() { RestoreState::Failed } else { RestoreState::Succeeded };
        restore.error = problem;
    }
}
