//! Backups of the databases of instances. A backup counts once its dump is complete and hashed.

use crate::{
    AppId, BackupId, InstanceId, Page, ScheduleId, Sha256, Timestamp, instances::InstanceKind,
    page::*, text::CronExpression,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Backups";

    /// Back up the document database of an app's instance.
    ///
    /// The call returns at once. The backup is in `running`.
    "svc_createDocumentDbBackup": CreateDocumentDbBackup {
        app_id: AppId,
        /// Required if the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// Verify the backup when it is ready, as `svc_verifyBackup` does.
        #[serde(default)]
        verify: bool,
    } -> Backup { who: Member of (app_id), effect: Change,
        errors: [NotNow "the instance has no such database, does not run, or is being dumped"] }

    /// Back up the SQL database of an app's instance, compressed with gzip.
    ///
    /// The call returns at once. The backup is in `running`.
    "svc_createSqlDbBackup": CreateSqlDbBackup {
        app_id: AppId,
        /// Required if the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// Verify the backup when it is ready, as `svc_verifyBackup` does.
        #[serde(default)]
        verify: bool,
    } -> Backup { who: Member of (app_id), effect: Change,
        errors: [NotNow "the instance has no such database, does not run, or is being dumped"] }

    /// List the backups of an app's instances.
    "svc_getBackups": GetBackups {
        app_id: AppId,
        /// Return only backups of this kind of instance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// Return only backups of this database.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        database: Option<BackupKind>,
        /// Return only backups in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<BackupState>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Backup> { who: Member of (app_id), effect: Read }

    /// Get a URL that downloads a backup. It is valid for one hour.
    "svc_getBackupDownloadUrl": GetBackupDownloadUrl { backup_id: BackupId } -> BackupDownloadUrl
    { who: Member of (backup_id), effect: Read, errors: [NotNow "it is not ready"] }

    /// Restore a backup into the running database it was made from.
    ///
    /// An SQL database is replaced as a whole. In a document database, the collections of the
    /// backup are replaced and other collections stay. The call returns at once; `restore` shows
    /// the progress. Then the instance restarts, because its servers remember what was in the database.
    "svc_restoreBackup": RestoreBackup { backup_id: BackupId } -> Backup
    { who: OwnerOrAdmin of (backup_id), effect: Change, errors: [NotNow "it is not ready, or the instance does not run"] }

    /// Verify a backup by a restore into an empty database of the same image.
    ///
    /// The service deletes that database afterwards. The call returns at once; `verification` shows
    /// the progress. The service verifies at most two backups at the same time; others wait.
    "svc_verifyBackup": VerifyBackup { backup_id: BackupId } -> Backup
    { who: Member of (backup_id), effect: Change,
        errors: [NotNow "it is not ready, is being put back, the instance was deleted, or its template gives the database no health check by a command"] }

    /// Delete a backup and its data.
    "svc_deleteBackup": DeleteBackup { backup_id: BackupId } -> DeletedBackup
    { who: OwnerOrAdmin of (backup_id), effect: Change, errors: [NotNow "it is being written or put back"] }

    /// Schedule regular backups of a database.
    ///
    /// An earlier schedule of the same database is replaced. The service makes no backup while the
    /// instance is stopped.
    "svc_scheduleBackups": ScheduleBackups {
        app_id: AppId,
        /// Required if the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// Required if the instance has more than one database.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        database: Option<BackupKind>,
        /// The times in UTC: minute, hour, day, month, day of the week. At most every ten minutes.
        cron: CronExpression,
        /// How many scheduled backups to keep, from 1 to 100. The default is 7. Backups that a
        /// caller requested do not count and are never removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keep: Option<u32>,
        /// Verify each backup when it is ready. A backup that fails this does not count as kept.
        #[serde(default)]
        verify: bool,
    } -> BackupSchedule { who: OwnerOrAdmin of (app_id), effect: Change,
        errors: [NotNow "the instance has no such database"] }

    /// Read the backup schedule of a database.
    "svc_getBackupSchedule": GetBackupSchedule {
        app_id: AppId,
        /// Required if the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// Required if the instance has more than one database.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        database: Option<BackupKind>,
    } -> BackupSchedule { who: Member of (app_id), effect: Read,
        errors: [NotNow "the instance has no such database"] }

    /// Delete the backup schedule of a database. The backups are kept.
    "svc_unscheduleBackups": UnscheduleBackups {
        app_id: AppId,
        /// Required if the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// Required if the instance has more than one database.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        database: Option<BackupKind>,
    } -> UnscheduledBackups { who: OwnerOrAdmin of (app_id), effect: Change,
        errors: [NotNow "the instance has no such database"] }
}

records! {
    /// A backup of a database.
    pub struct Backup {
        id: BackupId,
        instance_id: InstanceId,
        /// Null for a backup of an earlier version.
        #[serde(default)]
        instance_kind: Option<InstanceKind>,
        app_id: AppId,
        /// The database that was dumped.
        kind: BackupKind,
        /// Where the backup stands. `ready` and `failed` are final.
        state: BackupState,
        /// Whether a schedule made the backup.
        scheduled: bool,
        /// The size of the file, in bytes.
        size: Option<u64>,
        /// The hash of the file.
        sha256: Option<Sha256>,
        /// Why the backup failed. Null unless it did.
        error: Option<String>,
        /// The last restore into the instance's database.
        restore: Option<Restore>,
        /// The last verification: a restore into an empty, temporary database.
        verification: Option<Restore>,
        created_at: Timestamp,
        finished_at: Option<Timestamp>,
    }

    /// The progress of a restore.
    pub struct Restore {
        /// How the restore goes. `succeeded` and `failed` are final.
        state: RestoreState,
        /// Why the restore failed. Null unless it did.
        error: Option<String>,
        started_at: Timestamp,
        finished_at: Option<Timestamp>,
    }

    /// A signed URL of a backup. It needs no other credentials.
    pub struct BackupDownloadUrl {
        /// Where a `GET` request downloads the file, which is compressed with gzip, until
        /// `expiresAt`.
        url: String,
        expires_at: Timestamp,
    }

    /// The backup that the call deleted.
    pub struct DeletedBackup { deleted: BackupId }

    /// The schedule of a database's backups.
    pub struct BackupSchedule {
        id: ScheduleId,
        app_id: AppId,
        instance_id: InstanceId,
        /// The database that is backed up.
        database: BackupKind,
        /// The times in UTC.
        cron: CronExpression,
        /// How many scheduled backups are kept.
        keep: u32,
        /// Whether each backup is verified.
        verify: bool,
        /// When the next backup is made.
        next_at: Timestamp,
    }

    /// The deleted schedule.
    pub struct UnscheduledBackups { deleted: ScheduleId }
}

/// The database of a backup.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum BackupKind {
    /// The document database.
    DocumentDb,
    /// The SQL database.
    SqlDb,
}

/// Where a backup stands. `ready` and `failed` are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BackupState {
    /// The service writes the backup.
    Running,
    /// The backup is complete and can be restored.
    Ready,
    /// The backup failed. Nothing of it is kept.
    Failed,
}

/// Where a restore stands. `succeeded` and `failed` are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestoreState {
    /// The service puts the data of the backup into the database.
    Running,
    /// The database contains the whole backup.
    Succeeded,
    /// The restore failed. An SQL database is unchanged.
    Failed,
}
