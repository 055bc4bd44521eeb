//! The handlers of the group Backups.

use super::instances::only_instance;
use crate::{
    call::{
        context::Call,
        lookup::check_reachable,
        platform::{DOWNLOAD_LIFETIME, Platform},
    },
    kinds::{
        delivery::artifacts::address::{self, Use},
        hosting::{
            backups::{
                Backups, Command, State,
                begin::{begin, database_name},
                effects::instance_of_backup,
                restore_check::{NOT_TOLD, tells_health},
                rules::{BackupClaim, in_use},
            },
            instances::{InitialRestore, Instance, Instances, Service, database::role},
        },
        people::apps::Apps,
        world::World,
    },
    runtime::{
        entries::{Under, wire_name},
        pagination,
        store::Store,
    },
};
use contract::{
    AppId, BackupId, Fault, Page, ProjectId, Serves,
    backups::{
        Backup, BackupDownloadUrl, BackupKind, BackupState, CreateDocumentDbBackup,
        CreateSqlDbBackup, DeleteBackup, DeletedBackup, GetBackupDownloadUrl, GetBackups,
        RestoreBackup, VerifyBackup,
    },
    instances::{InstanceKind, ServiceState},
};
use store::Snapshot;

async fn back_up(
    cx: &Call,
    app: AppId,
    instance: Option<InstanceKind>,
    kind: BackupKind,
    verify: bool,
) -> Result<Backup, Fault> {
    let world = &cx.world;
    let (id, seen) = only_instance(world, app, instance)?;
    let instance = &seen.state;
    let service = instance.service(role(kind)).ok_or_else(|| no_database(Some(kind)))?;
    if service.live.state != ServiceState::Running {
        return Err(instance.not_running("database"));
    }
    if verify {
        can_be_verified(instance, kind)?;
    }
    world.ports.machine.check_room(0)?;
    let store = &world.store;
    if store.holder(&BackupClaim::of(id, kind))?.is_some() {
        return Err(in_use());
    }
    let backup: BackupId = world.ports.random.id(cx.now);
    let begin = begin(backup, (id, instance), kind, (None, verify), cx.now);
    cx.to::<Backups>(backup).create(begin, |state| Ok(state.backup.clone())).await
}

/// The backup that a signed address names. Not found once the backup or its app is deleted.
pub fn reachable_backup(world: &World, id: BackupId) -> Result<Backup, Fault> {
    let missing = || Fault::NotFound("backup");
    let found = world.store.get::<Backups>(&id)?;
    let found = found.filter(|found| !found.state.removing).ok_or_else(missing)?;
    check_reachable(world, found.state.backup.app_id).map_err(|_| missing())?;
    Ok(found.state.backup.clone())
}

fn backed_up(world: &World, backup: &Backup) -> Result<Snapshot<Instances>, Fault> {
    instance_of_backup(backup, &world.store)?.ok_or_else(|| {
        Fault::NotNow(
            "the instance of this backup was deleted; create an instance with fromBackupId, \
             or download the backup"
                .into(),
        )
    })
}

/// The restore of this backup that a new instance with these services begins with.
pub(crate) fn initial_restore(
    world: &World,
    id: BackupId,
    project: ProjectId,
    services: &[Service],
) -> Result<InitialRestore, Fault> {
    let missing = || Fault::NotFound("backup of this project");
    let found = world.store.get::<Backups>(&id)?;
    let found = found.filter(|found| !found.state.removing).ok_or_else(missing)?;
    let (backup, role) = (&found.state.backup, role(found.state.backup.kind));
    let app = world.store.get::<Apps>(&backup.app_id)?.filter(|app| !app.is_deleted());
    app.filter(|app| app.project_id == project).ok_or_else(missing)?;
    let Some(sha256) = backup.sha256.clone().filter(|_| backup.state == BackupState::Ready) else {
        let state = wire_name(backup.state);
        return Err(Fault::NotNow(format!(
            "this backup is {state}; an instance is made from one that is ready"
        )));
    };
    let unfit = |problem| Fault::invalid("fromBackupId", problem);
    let target = services.iter().find(|service| service.role == role);
    let target = target.and_then(|service| service.live.template().database.as_ref());
    let target = target.ok_or_else(|| unfit("needs a template with such a database"))?;
    let source = match &found.state.database {
        Some(name) => Some(name.clone()),
        None => {
            let source = world.store.get::<Instances>(&backup.instance_id)?;
            source.and_then(|source| database_name(&source.state, backup.kind))
        }
    };
    // A MongoDB tool restores nothing from another database, and reports success.
    if source.as_ref() != Some(&target.name) {
        return Err(unfit("needs a template whose database has the name of the backup's"));
    }
    Ok(InitialRestore { backup: id, sha256, role, begun: false, failures: 0 })
}

/// The refusal of a database that the template of an instance does not have.
pub(crate) fn no_database(kind: Option<BackupKind>) -> Fault {
    let what = match kind {
        Some(BackupKind::DocumentDb) => "document database",
        Some(BackupKind::SqlDb) => "SQL database",
        None => "database",
    };
    Fault::NotNow(format!("this instance has no {what}: its template has none"))
}

/// Refuses a database whose template has no health check by a command.
pub(crate) fn can_be_verified(instance: &Instance, kind: BackupKind) -> Result<(), Fault> {
    match instance.service(role(kind)) {
        Some(service) if !tells_health(service) => Err(Fault::NotNow(NOT_TOLD.into())),
        _ => Ok(()),
    }
}

impl Serves<CreateDocumentDbBackup> for Platform {
    async fn serve(&self, cx: &Call, p: CreateDocumentDbBackup) -> Result<Backup, Fault> {
        back_up(cx, p.app_id, p.kind, BackupKind::DocumentDb, p.verify).await
    }
}

impl Serves<CreateSqlDbBackup> for Platform {
    async fn serve(&self, cx: &Call, p: CreateSqlDbBackup) -> Result<Backup, Fault> {
        back_up(cx, p.app_id, p.kind, BackupKind::SqlDb, p.verify).await
    }
}

impl Serves<GetBackups> for Platform {
    async fn serve(&self, _: &Call, p: GetBackups) -> Result<Page<Backup>, Fault> {
        let (store, entry) = (&self.world.store, Under::<Apps>(p.app_id));
        let is_filtered = p.state.is_some() || p.database.is_some() || p.kind.is_some();
        let list = (p.limit, p.cursor);
        pagination::counted::<Backups, _>(store, &entry, list, is_filtered, |_, seen| {
            let State { backup, removing, .. } = &seen.state;
            let wanted = !removing
                && p.state.is_none_or(|state| backup.state == state)
                && p.database.is_none_or(|database| backup.kind == database)
                && match p.kind {
                    Some(kind) => kind_of_instance(store, backup)? == Some(kind),
                    None => true,
                };
            Ok(wanted.then(|| backup.clone()))
        })
    }
}

/// The kind of the instance of a backup. Earlier versions did not store it with the backup.
fn kind_of_instance(store: &Store, backup: &Backup) -> Result<Option<InstanceKind>, Fault> {
    if backup.instance_kind.is_some() {
        return Ok(backup.instance_kind);
    }
    Ok(store.get::<Instances>(&backup.instance_id)?.map(|seen| seen.state.kind))
}

impl Serves<GetBackupDownloadUrl> for Platform {
    async fn serve(&self, cx: &Call, _: GetBackupDownloadUrl) -> Result<BackupDownloadUrl, Fault> {
        let (id, seen) = cx.ancestry.backup()?;
        let state = seen.state.backup.state;
        if state != BackupState::Ready {
            let state = wire_name(state);
            return Err(Fault::NotNow(format!(
                "this backup is {state}; only one that is ready can be downloaded"
            )));
        }
        let expires_at = cx.now + DOWNLOAD_LIFETIME;
        let (key, api_url) = (&self.settings.signing_key, &self.settings.api_url);
        let url = address::sign(key, api_url, Use::Backup, id, expires_at);
        cx.record(&id.to_string()).await?;
        Ok(BackupDownloadUrl { url, expires_at })
    }
}

impl Serves<RestoreBackup> for Platform {
    async fn serve(&self, cx: &Call, p: RestoreBackup) -> Result<Backup, Fault> {
        let backup = &cx.ancestry.backup()?.1.state.backup;
        let found = backed_up(&self.world, backup)?;
        let instance = &found.state;
        let service = instance.service(role(backup.kind));
        if service.is_none_or(|service| service.live.state != ServiceState::Running) {
            return Err(instance.not_running("database"));
        }
        let show = |state: &State| Ok(state.backup.clone());
        cx.to::<Backups>(p.backup_id).change(Command::Restore, show).await
    }
}

impl Serves<VerifyBackup> for Platform {
    async fn serve(&self, cx: &Call, p: VerifyBackup) -> Result<Backup, Fault> {
        let backup = &cx.ancestry.backup()?.1.state.backup;
        can_be_verified(&backed_up(&self.world, backup)?.state, backup.kind)?;
        let show = |state: &State| Ok(state.backup.clone());
        cx.to::<Backups>(p.backup_id).change(Command::Verify, show).await
    }
}

impl Serves<DeleteBackup> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteBackup) -> Result<DeletedBackup, Fault> {
        let id = p.backup_id;
        cx.to::<Backups>(id)
            .change(Command::Delete, move |_| Ok(DeletedBackup { deleted: id }))
            .await
    }
}
