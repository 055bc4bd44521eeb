//! The functions of the group Backups.

use super::{
    Backups, Command, Schedule, State,
    effects::{instance_of, role},
    restore_check::{NOT_TOLD, tells_health},
    rules::{BackupClaim, taken},
    schedule::{Made, begin, databases, next},
};
use crate::{
    call::{context::Call, pagination},
    kinds::{
        apps::Apps,
        artifacts::address::{self, Use},
        instances::{self, Instance, Instances},
    },
    platform::{DOWNLOAD_LIFETIME, Platform},
    runtime::entries::Under,
};
use contract::{
    AppId, BackupId, Fault, Page, Serves,
    backups::{
        Backup, BackupDownloadUrl, BackupKind, BackupSchedule, BackupState, CreateDocumentDbBackup,
        CreateSqlDbBackup, DeleteBackup, DeletedBackup, GetBackupDownloadUrl, GetBackups,
        RestoreBackup, ScheduleBackups, VerifyBackup,
    },
    instances::{InstanceKind, ServiceState},
};
use std::time::Duration;
use store::Snapshot;

/// How many backups a schedule keeps where nothing is said, and the most.
const USUAL_KEPT: u32 = 7;
const MOST_KEPT: u32 = 100;
/// Schedules may not be denser.
const CLOSEST: Duration = Duration::from_secs(600);

impl Platform {
    async fn back_up(
        &self,
        cx: &Call,
        app: AppId,
        instance: Option<InstanceKind>,
        kind: BackupKind,
        verify: bool,
    ) -> Result<Backup, Fault> {
        let (id, seen) = self.only_instance(app, instance)?;
        let instance = &seen.state;
        let part = instance
            .part(role(kind))
            .ok_or_else(|| Fault::NotNow("this instance has no such database".into()))?;
        if part.live.state != ServiceState::Running {
            return Err(instances::not_running(instance, "database"));
        }
        if verify {
            can_be_verified(instance, kind)?;
        }
        let store = &self.world.store;
        if store.holder(&BackupClaim::of(id, kind))?.is_some() {
            return Err(taken());
        }
        let backup: BackupId = self.world.ports.random.id(cx.now);
        let begin = begin(backup, (id, instance), kind, Made { scheduled: false, verify }, cx.now);
        let owners = &self.owners()?.backups;
        cx.create(&self.world, owners, backup, begin, |state| Ok(state.backup.clone())).await
    }
}

impl Platform {
    /// The backup of a signed address, while its app is there.
    pub fn reachable_backup(&self, id: BackupId) -> Result<Backup, Fault> {
        let missing = || Fault::NotFound("backup");
        let found = self.world.store.get::<Backups>(&id)?;
        let found = found.filter(|found| !found.state.removing).ok_or_else(missing)?;
        self.reachable(found.state.backup.app_id).map_err(|_| missing())?;
        Ok(found.state.backup.clone())
    }

    fn backed_up(&self, backup: &Backup) -> Result<Snapshot<Instances>, Fault> {
        instance_of(backup, &self.world.store)?.ok_or_else(|| {
            Fault::NotNow(
                "the instance of this backup was deleted; download the backup instead".into(),
            )
        })
    }
}

fn can_be_verified(instance: &Instance, kind: BackupKind) -> Result<(), Fault> {
    match instance.part(role(kind)) {
        Some(part) if !tells_health(part) => Err(Fault::NotNow(NOT_TOLD.into())),
        _ => Ok(()),
    }
}

impl Serves<CreateDocumentDbBackup> for Platform {
    async fn serve(&self, cx: &Call, p: CreateDocumentDbBackup) -> Result<Backup, Fault> {
        self.back_up(cx, p.app_id, p.kind, BackupKind::DocumentDb, p.verify).await
    }
}

impl Serves<CreateSqlDbBackup> for Platform {
    async fn serve(&self, cx: &Call, p: CreateSqlDbBackup) -> Result<Backup, Fault> {
        self.back_up(cx, p.app_id, p.kind, BackupKind::SqlDb, p.verify).await
    }
}

impl Serves<GetBackups> for Platform {
    async fn serve(&self, _: &Call, p: GetBackups) -> Result<Page<Backup>, Fault> {
        let (store, entry) = (&self.world.store, Under::<Apps>(p.app_id));
        pagination::page::<Backups, _>(store, &entry, (p.limit, p.cursor), |_, seen| {
            let State { backup, removing, .. } = &seen.state;
            let wanted = !removing && p.state.is_none_or(|state| backup.state == state);
            Ok(wanted.then(|| backup.clone()))
        })
    }
}

impl Serves<GetBackupDownloadUrl> for Platform {
    async fn serve(&self, cx: &Call, _: GetBackupDownloadUrl) -> Result<BackupDownloadUrl, Fault> {
        let (id, seen) = cx.ancestry.backup()?;
        if seen.state.backup.state != BackupState::Ready {
            return Err(Fault::NotNow(
                "this backup is not ready; only whole ones can be downloaded".into(),
            ));
        }
        let expires_at = cx.now + DOWNLOAD_LIFETIME;
        let (key, api_url) = (&self.settings.signing_key, &self.settings.api_url);
        let url = address::sign(key, api_url, Use::Backup, id, expires_at);
        cx.note(&self.world, &id.to_string());
        Ok(BackupDownloadUrl { url, expires_at })
    }
}

impl Serves<RestoreBackup> for Platform {
    async fn serve(&self, cx: &Call, p: RestoreBackup) -> Result<Backup, Fault> {
        let backup = &cx.ancestry.backup()?.1.state.backup;
        let found = self.backed_up(backup)?;
        let instance = &found.state;
        let part = instance.part(role(backup.kind));
        if part.is_none_or(|part| part.live.state != ServiceState::Running) {
            return Err(instances::not_running(instance, "database"));
        }
        let owners = &self.owners()?.backups;
        let show = |state: &State| Ok(state.backup.clone());
        cx.change(&self.world, owners, p.backup_id, Command::Restore, show).await
    }
}

impl Serves<VerifyBackup> for Platform {
    async fn serve(&self, cx: &Call, p: VerifyBackup) -> Result<Backup, Fault> {
        let backup = &cx.ancestry.backup()?.1.state.backup;
        can_be_verified(&self.backed_up(backup)?.state, backup.kind)?;
        let owners = &self.owners()?.backups;
        let show = |state: &State| Ok(state.backup.clone());
        cx.change(&self.world, owners, p.backup_id, Command::Verify, show).await
    }
}

impl Serves<DeleteBackup> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteBackup) -> Result<DeletedBackup, Fault> {
        let (id, owners) = (p.backup_id, &self.owners()?.backups);
        cx.change(&self.world, owners, id, Command::Delete, move |_| {
            Ok(DeletedBackup { deleted: id })
        })
        .await
    }
}

impl Serves<ScheduleBackups> for Platform {
    async fn serve(&self, cx: &Call, p: ScheduleBackups) -> Result<BackupSchedule, Fault> {
        let keep = p.keep.unwrap_or(USUAL_KEPT);
        if !(1..=MOST_KEPT).contains(&keep) {
            return Err(Fault::invalid("keep", format!("must be from 1 to {MOST_KEPT}")));
        }
        let (id, seen) = self.only_instance(p.app_id, p.kind)?;
        let there = databases(&seen.state);
        let database = match (p.database, there.as_slice()) {
            (Some(database), there) if there.contains(&database) => database,
            (None, [only]) => *only,
            (None, [_, _, ..]) => {
                return Err(Fault::invalid("database", "is needed: the instance has two"));
            }
            _ => return Err(Fault::NotNow("this instance has no such database".into())),
        };
        if p.verify {
            can_be_verified(&seen.state, database)?;
        }
        let schedule = match p.cron {
            None => None,
            Some(cron) => {
                let wrong = |e: String| Fault::invalid("cron", e);
                let next_at = next(&cron, cx.now).map_err(wrong)?;
                let after = next(&cron, next_at).map_err(wrong)?;
                if after.since(next_at) < CLOSEST {
                    return Err(Fault::invalid(
                        "cron",
                        "must leave ten minutes between two backups",
                    ));
                }
                Some(Schedule { cron, keep, verify: p.verify, next_at })
            }
        };
        let owners = &self.owners()?.instances;
        let command = instances::Command::Schedule(database, schedule);
        let show = move |instance: &instances::Instance| {
            let schedule = instance.schedules.get(&database);
            Ok(BackupSchedule {
                instance_id: id,
                database,
                cron: schedule.map(|schedule| schedule.cron.clone()),
                keep: schedule.map_or(keep, |schedule| schedule.keep),
                verify: schedule.is_some_and(|schedule| schedule.verify),
                next_at: schedule.map(|schedule| schedule.next_at),
            })
        };
        cx.change(&self.world, owners, id, command, show).await
    }
}
