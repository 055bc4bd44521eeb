//! The rules of a backup: `running → ready | failed`, and what becomes of one that is ready: it is
//! put back, or verified, one at a time.

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
    /// Once it is ready, it is verified.
    #[serde(default)]
    pub verify: bool,
    /// The database that it is put into to verify it, while there may be one.
    #[serde(default)]
    pub trial: Option<Trial>,
    /// It is being removed; nobody sees it any more.
    pub removing: bool,
}

/// How far a backup is verified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Trial {
    /// It is put into an empty database.
    Running,
    /// It was, or it could not be for this reason; the database is thrown away.
    Over(Option<String>),
}

/// What can be asked of a backup.
#[derive(Debug, Clone)]
pub enum Command {
    /// Make it.
    Create {
        /// As it begins.
        backup: Box<Backup>,
        /// Verify it once it is ready.
        verify: bool,
    },
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
    /// Remove all that there is of it, and then the record.
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
    /// Nothing is left of the database that it was put into.
    Disposed,
    /// No more are left than the schedule keeps.
    Thinned,
    /// Nothing is left of the bytes.
    Discarded,
}

impl Outcome {
    fn problem(self) -> Option<String> {
        match self {
            Outcome::Failed(why) => Some(why),
            _ => None,
        }
    }
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
            (None, Input::Command(Command::Create { backup, verify })) => {
                let deadline = Some(at.now + WITHIN);
                let state =
                    State { backup: *backup, deadline, verify, trial: None, removing: false };
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
        let running =
            state.backup.state == BackupState::Running || is_running(&state.backup.restore);
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
        match command {
            Command::Create { .. } => Err(Fault::Exists("this backup exists already".into())),
            Command::Remove if self.removing => Ok(Step::keep()),
            _ if self.removing => Err(Fault::NotFound("backup")),
            Command::Restore if is_running(&self.backup.restore) => Ok(Step::keep()),
            Command::Verify if is_running(&self.backup.verification) => Ok(Step::keep()),
            Command::Restore => {
                self.is_free_to("put back")?;
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
                    Ok(self.learn(at, Outcome::Failed("it was not done within an hour".into())))
                }
                _ => Ok(Step::keep()),
            },
            Command::Delete if self.is_busy() => Err(Fault::NotNow(
                "this backup is being written, put back or verified; delete it after that".into(),
            )),
            Command::Delete | Command::Remove => {
                self.removing = true;
                self.deadline = None;
                Ok(Step::put(self).intend(Intent::Now(Effect::Discard)))
            }
        }
    }

    /// Whether it is ready and nothing is under way with it.
    fn is_free_to(&self, what: &str) -> Result<(), Fault> {
        match self.backup.state {
            BackupState::Ready if self.is_busy() => Err(Fault::NotNow(
                "this backup is being put back or verified already; wait for that".into(),
            )),
            BackupState::Ready => Ok(()),
            state => Err(Fault::NotNow(
                format!("this backup is {state:?}; only one that is ready can be {what}")
                    .to_lowercase(),
            )),
        }
    }

    fn is_busy(&self) -> bool {
        let Backup { state, restore, verification, .. } = &self.backup;
        *state == BackupState::Running || is_running(restore) || is_running(verification)
    }

    fn verify(mut self, at: &Moment<Backups>) -> Step<Backups> {
        self.backup.verification = Some(begun(at));
        self.trial = Some(Trial::Running);
        self.deadline = Some(at.now + WITHIN);
        Step::put(self).intend(Intent::Now(Effect::Verify))
    }

    fn learn(mut self, at: &Moment<Backups>, outcome: Outcome) -> Step<Backups> {
        let Backup { state, restore, verification, .. } = &mut self.backup;
        let after = match outcome {
            Outcome::Discarded if self.removing => return Step::remove(),
            Outcome::Discarded | Outcome::Thinned => return Step::keep().intend(Intent::None),
            _ if self.removing => return Step::keep(),
            Outcome::Disposed => {
                let Some(Trial::Over(problem)) = self.trial.take() else { return Step::keep() };
                end(verification, problem, at.now);
                self.thin()
            }
            Outcome::Dumped(size, sha256) if *state == BackupState::Running => {
                *state = BackupState::Ready;
                (self.backup.size, self.backup.sha256) = (Some(size), Some(sha256));
                self.backup.finished_at = Some(at.now);
                if self.verify {
                    return self.verify(at);
                }
                self.thin()
            }
            Outcome::Failed(why) if *state == BackupState::Running => {
                *state = BackupState::Failed;
                self.backup.error = Some(why);
                self.backup.finished_at = Some(at.now);
                Intent::Now(Effect::Clean)
            }
            Outcome::Restored | Outcome::Failed(_) if is_running(restore) => {
                end(restore, outcome.problem(), at.now);
                Intent::None
            }
            Outcome::Restored | Outcome::Failed(_) if self.trial == Some(Trial::Running) => {
                self.trial = Some(Trial::Over(outcome.problem()));
                Intent::Now(Effect::Dispose)
            }
            _ => return Step::keep(),
        };
        self.deadline = None;
        Step::put(self).intend(after)
    }

    /// What comes after a scheduled one was made.
    fn thin(&self) -> Intent<Effect> {
        if self.backup.scheduled { Intent::Now(Effect::Thin) } else { Intent::None }
    }
}

fn begun(at: &Moment<Backups>) -> Restore {
    Restore { state: RestoreState::Running, error: None, started_at: at.now, finished_at: None }
}

fn is_running(restore: &Option<Restore>) -> bool {
    restore.as_ref().is_some_and(|restore| restore.state == RestoreState::Running)
}

fn end(restore: &mut Option<Restore>, problem: Option<String>, now: Timestamp) {
    if let Some(restore) = restore {
        restore.finished_at = Some(now);
        restore.state =
            if problem.is_some() { RestoreState::Failed } else { RestoreState::Succeeded };
        restore.error = problem;
    }
}
