//! The rules of a backup: `running → ready | failed`, and what becomes of one that is ready.

use crate::{
    due::due,
    runtime::resource::{Input, Intent, Kept, Moment, Resource, Retry, Step},
    world::World,
};
use contract::{
    BackupId, Fault, InstanceId, Sha256, Timestamp,
    backups::{Backup, BackupKind, BackupState, Restore, RestoreState},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// The backups.
#[derive(Debug, Clone, Copy)]
pub struct Backups;

/// How long a dump or a restore may take.
pub(super) const WITHIN: Duration = Duration::from_secs(3600);

/// What is kept of a backup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What is shown.
    pub backup: Backup,
    /// The end of a state that must end.
    pub deadline: Option<Timestamp>,
    /// It is being removed; nobody sees it any more.
    pub removing: bool,
}

/// What can be asked of a backup.
#[derive(Debug, Clone)]
pub enum Command {
    /// Make it.
    Create(Box<Backup>),
    /// Put it back.
    Restore,
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
    /// Remove the bytes of a dump that failed.
    Clean,
    /// Remove the bytes, and then the record.
    Discard,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The dump is whole: its size and hash.
    Dumped(u64, Sha256),
    /// The dump was put back.
    Restored,
    /// It cannot be done.
    Failed(String),
    /// Nothing is left of the bytes.
    Discarded,
}

/// The claim of who dumps a database, or puts one back.
pub fn database_claim(instance: InstanceId, kind: BackupKind) -> String {
    format!("{}/{instance}", if kind == BackupKind::SqlDb { "sql" } else { "document" })
}

impl Resource for Backups {
    const KIND: &'static str = "backup";
    const TIME_LIMIT: Duration = Duration::from_secs(3660);
    type Id = BackupId;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn step(
        at: &Moment<Self>,
        state: Option<&State>,
        input: Input<Self>,
    ) -> Result<Step<Self>, Fault> {
        match (state, input) {
            (None, Input::Command(Command::Create(backup))) => {
                let deadline = Some(at.now + WITHIN);
                let state = State { backup: *backup, deadline, removing: false };
                Ok(Step::put(state).intend(Intent::Now(Effect::Dump)))
            }
            (None, Input::Command(_)) => Err(Fault::NotFound("backup")),
            (None, Input::Outcome(_)) => Ok(Step::keep()),
            (Some(state), Input::Command(command)) => state.clone().take(at, command),
            (Some(state), Input::Outcome(outcome)) => Ok(state.clone().learn(at, outcome)),
        }
    }

    fn index(state: &State) -> Vec<String> {
        let backup = &state.backup;
        let mut entries =
            vec![format!("app/{}", backup.app_id), format!("instance/{}", backup.instance_id)];
        entries.extend(state.deadline.map(due));
        entries
    }

    /// A database is dumped, or put back, once at a time.
    fn claims(state: &State) -> Vec<String> {
        let running = state.backup.state == BackupState::Running || state.is_restoring();
        let of = database_claim(state.backup.instance_id, state.backup.kind);
        if running && !state.removing { vec![of] } else { vec![] }
    }

    fn taken(_: &str) -> Fault {
        Fault::NotNow("this database is being dumped or put back already; wait for that".into())
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
    fn take(mut self, at: &Moment<Backups>, command: Command) -> Result<Step<Backups>, Fault> {
        let restoring = self.is_restoring();
        match command {
            Command::Create(_) => Err(Fault::Exists("this backup exists already".into())),
            _ if self.removing => match command {
                Command::Remove => Ok(Step::keep()),
                _ => Err(Fault::NotFound("backup")),
            },
            Command::Restore => match self.backup.state {
                _ if restoring => Ok(Step::keep()),
                BackupState::Ready => {
                    self.backup.restore = Some(Restore {
                        state: RestoreState::Running,
                        error: None,
                        started_at: at.now,
                        finished_at: None,
                    });
                    self.deadline = Some(at.now + WITHIN);
                    Ok(Step::put(self).intend(Intent::Now(Effect::Restore)))
                }
                state => Err(Fault::NotNow(
                    format!("this backup is {state:?}; only one that is ready can be put back")
                        .to_lowercase(),
                )),
            },
            Command::Overdue => match self.deadline {
                Some(deadline) if at.now >= deadline => {
                    Ok(self.learn(at, Outcome::Failed("it was not done within an hour".into())))
                }
                _ => Ok(Step::keep()),
            },
            Command::Delete if self.backup.state == BackupState::Running || restoring => {
                Err(Fault::NotNow(
                    "this backup is being written or put back; delete it after that".into(),
                ))
            }
            Command::Delete | Command::Remove => {
                self.removing = true;
                self.deadline = None;
                Ok(Step::put(self).intend(Intent::Now(Effect::Discard)))
            }
        }
    }

    fn is_restoring(&self) -> bool {
        self.backup.restore.as_ref().is_some_and(|r| r.state == RestoreState::Running)
    }

    fn learn(mut self, at: &Moment<Backups>, outcome: Outcome) -> Step<Backups> {
        match outcome {
            Outcome::Discarded if self.removing => return Step::remove(),
            Outcome::Discarded => return Step::keep().intend(Intent::None),
            _ if self.removing => return Step::keep(),
            Outcome::Dumped(size, sha256) if self.backup.state == BackupState::Running => {
                self.backup.state = BackupState::Ready;
                (self.backup.size, self.backup.sha256) = (Some(size), Some(sha256));
                self.backup.finished_at = Some(at.now);
            }
            Outcome::Failed(why) if self.backup.state == BackupState::Running => {
                self.backup.state = BackupState::Failed;
                self.backup.error = Some(why);
                self.backup.finished_at = Some(at.now);
                self.deadline = None;
                return Step::put(self).intend(Intent::Now(Effect::Clean));
            }
            Outcome::Restored | Outcome::Failed(_) if self.is_restoring() => {
                if let Some(restore) = &mut self.backup.restore {
                    restore.finished_at = Some(at.now);
                    (restore.state, restore.error) = match outcome {
                        Outcome::Failed(why) => (RestoreState::Failed, Some(why)),
                        _ => (RestoreState::Succeeded, None),
                    };
                }
            }
            _ => return Step::keep(),
        }
        self.deadline = None;
        Step::put(self).intend(Intent::None)
    }
}
