//! Backups of instances' databases: dumps that were read whole and hashed before they count.

use crate::{
    AppId, BackupId, InstanceId, Page, ScheduleId, Sha256, Timestamp, instances::InstanceKind,
    page::*, text::CronExpression,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Backups";

    /// Dump the document database of an app's instance. Answers at once; the backup is in
    /// `running`.
    "svc_createDocumentDbBackup": CreateDocumentDbBackup {
        app_id: AppId,
        /// Needed where the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// Verify it as soon as it is ready, as `svc_verifyBackup` does.
        #[serde(default)]
        verify: bool,
    } -> Backup { who: Member of (app_id), effect: Change,
        errors: [NotNow "the instance has no such database, does not run, or is being dumped"] }

    /// Dump the SQL database of an app's instance, compressed with gzip. Answers at once; the
    /// backup is in `running`.
    "svc_createSqlDbBackup": CreateSqlDbBackup {
        app_id: AppId,
        /// Needed where the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// Verify it as soon as it is ready, as `svc_verifyBackup` does.
        #[serde(default)]
        verify: bool,
    } -> Backup { who: Member of (app_id), effect: Change,
        errors: [NotNow "the instance has no such database, does not run, or is being dumped"] }

    /// List the backups of an app's instances.
    "svc_getBackups": GetBackups {
        app_id: AppId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<BackupState>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Backup> { who: Member of (app_id), effect: Read }

    /// Get an address that downloads a backup, good for one hour.
    "svc_getBackupDownloadUrl": GetBackupDownloadUrl { backup_id: BackupId } -> BackupDownloadUrl
    { who: Member of (backup_id), effect: Read, errors: [NotNow "it is not ready"] }

    /// Put a backup back into the running database that it is of. An SQL database is replaced whole;
    /// in a document database, the collections of the backup are replaced, and others stay. Answers
    /// at once; `restore` says how it goes.
    "svc_restoreBackup": RestoreBackup { backup_id: BackupId } -> Backup
    { who: OwnerOrAdmin of (backup_id), effect: Change, errors: [NotNow "it is not ready, or the instance does not run"] }

    /// Put a backup into an empty database of the same image, which is thrown away afterwards: what
    /// succeeds there can be relied upon. Answers at once; `verification` says how it goes. Two at a
    /// time, the next ones wait.
    "svc_verifyBackup": VerifyBackup { backup_id: BackupId } -> Backup
    { who: Member of (backup_id), effect: Change,
        errors: [NotNow "it is not ready, is being put back, the instance was deleted, or its template gives the database no health check by a command"] }

    /// Delete a backup.
    "svc_deleteBackup": DeleteBackup { backup_id: BackupId } -> DeletedBackup
    { who: OwnerOrAdmin of (backup_id), effect: Change, errors: [NotNow "it is being written or put back"] }

    /// Dump a database again and again. A schedule of the same database is replaced. While the
    /// instance is stopped, no backup is made.
    "svc_scheduleBackups": ScheduleBackups {
        app_id: AppId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// The instance's only database where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        database: Option<BackupKind>,
        /// When, in UTC: minute, hour, day, month, day of the week. At most every ten minutes.
        cron: CronExpression,
        /// How many of its backups are kept, 1 to 100; 7 where nothing is given. Those that somebody
        /// asked for are not counted, and never removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keep: Option<u32>,
        /// Verify each of them as soon as it is ready. One that cannot be put back does not count as
        /// kept.
        #[serde(default)]
        verify: bool,
    } -> BackupSchedule { who: OwnerOrAdmin of (app_id), effect: Change,
        errors: [NotNow "the instance has no such database"] }

    /// Get the backup schedule of a database.
    "svc_getBackupSchedule": GetBackupSchedule {
        app_id: AppId,
        /// Needed where the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// The instance's only database where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        database: Option<BackupKind>,
    } -> BackupSchedule { who: Member of (app_id), effect: Read,
        errors: [NotNow "the instance has no such database"] }

    /// End the backup schedule of a database. The backups that it made stay.
    "svc_unscheduleBackups": UnscheduleBackups {
        app_id: AppId,
        /// Needed where the app has both a backend and a market server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<InstanceKind>,
        /// The instance's only database where nothing is given.
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
        app_id: AppId,
        kind: BackupKind,
        state: BackupState,
        /// Made by a schedule.
        scheduled: bool,
        /// Bytes of the file.
        size: Option<u64>,
        /// Of the file.
        sha256: Option<Sha256>,
        error: Option<String>,
        /// How it was last put back.
        restore: Option<Restore>,
        /// How it was last put into an empty database that is thrown away.
        verification: Option<Restore>,
        created_at: Timestamp,
        finished_at: Option<Timestamp>,
    }

    /// How a backup was put back.
    pub struct Restore {
        state: RestoreState,
        error: Option<String>,
        started_at: Timestamp,
        finished_at: Option<Timestamp>,
    }

    /// An address that downloads a backup.
    pub struct BackupDownloadUrl { url: String, expires_at: Timestamp }

    /// What was deleted.
    pub struct DeletedBackup { deleted: BackupId }

    /// When a database is dumped.
    pub struct BackupSchedule {
        id: ScheduleId,
        app_id: AppId,
        instance_id: InstanceId,
        database: BackupKind,
        /// In UTC.
        cron: CronExpression,
        /// How many of its backups are kept.
        keep: u32,
        /// Whether each backup is verified.
        verify: bool,
        /// When the next backup is made.
        next_at: Timestamp,
    }

    /// The schedule that ended.
    pub struct UnscheduledBackups { deleted: ScheduleId }
}

/// Which database a backup is of.
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

/// The states of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BackupState {
    /// It is being written.
    Running,
    /// It is whole, and can be put back.
    Ready,
    /// It could not be made. Nothing is kept of it.
    Failed,
}

/// How far a backup is put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RestoreState {
    /// It is under way.
    Running,
    /// All of it is in the database.
    Succeeded,
    /// It could not be done. An SQL database is as it was before.
    Failed,
}
