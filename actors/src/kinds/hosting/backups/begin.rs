//! How a backup begins, and which databases an instance has. Pure.

use super::Begin;
use crate::kinds::hosting::instances::{Instance, database::role};
use contract::{
    BackupId, InstanceId, Timestamp,
    backups::{Backup, BackupKind, BackupState},
    text::Identifier,
};

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
    Begin { backup, database: database_name(instance.1, kind), keep, verify }
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
