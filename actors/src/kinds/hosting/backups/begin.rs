//! How a backup begins, and which databases an instance has. Pure.

use super::State;
use crate::kinds::hosting::instances::{
    Instance,
    database::{WITHIN, role},
};
use contract::{
    BackupId, InstanceId, Timestamp,
    backups::{Backup, BackupKind, BackupState},
    text::Identifier,
};

/// What a backup begins with.
#[derive(Debug, Clone)]
pub struct Begin {
    pub backup: Backup,
    /// See [`State::database`].
    pub database: Option<Identifier>,
    /// See [`State::keep`].
    pub keep: Option<u32>,
    /// See [`State::verify`].
    pub verify: bool,
    /// Why the backup of a schedule was refused: it has failed from its beginning, so that members see it.
    pub refused: Option<String>,
}

/// A backup that begins at `now`. For `keep`, see [`State::keep`](super::rules::State::keep).
pub fn begin(
    id: BackupId,
    instance: (InstanceId, &Instance),
    kind: BackupKind,
    (keep, verify): (Option<u32>, bool),
    now: Timestamp,
) -> Begin {
    let backup = Backup {
        id,
        instance_id: instance.0,
        instance_kind: Some(instance.1.kind),
        app_id: instance.1.app_id,
        kind,
        state: BackupState::Running,
        scheduled: keep.is_some(),
        size: None,
        sha256: None,
        error: None,
        restore: None,
        verification: None,
        created_at: now,
        finished_at: None,
    };
    Begin { backup, database: database_name(instance.1, kind), keep, verify, refused: None }
}

/// The name of the database that a backup of this kind contains.
pub(crate) fn database_name(instance: &Instance, kind: BackupKind) -> Option<Identifier> {
    let database = instance.service(role(kind))?.live.template().database.as_ref();
    database.map(|database| database.name.clone())
}

pub fn databases(instance: &Instance) -> Vec<BackupKind> {
    let all = [BackupKind::DocumentDb, BackupKind::SqlDb];
    all.into_iter().filter(|kind| instance.service(role(*kind)).is_some()).collect()
}

impl State {
    /// The state of a backup that begins at `now`, or that failed because it was refused.
    pub(super) fn new(begin: Begin, now: Timestamp) -> State {
        let Begin { mut backup, database, keep, verify, refused } = begin;
        let is_refused = refused.is_some();
        if is_refused {
            (backup.state, backup.error) = (BackupState::Failed, refused);
            backup.finished_at = Some(now);
        }
        State {
            backup,
            deadline: (!is_refused).then_some(now + WITHIN),
            verify,
            keep,
            has_check_database: false,
            restored: false,
            database,
            has_left_bytes: false,
            useless: false,
            surplus: is_refused && keep.is_some(),
            removing: false,
        }
    }
}
