//! The backups of an instance: made, verified, restored and scheduled.

use super::InstanceTab;
use crate::{
    form::Form,
    frame::Frame,
    list::{CURSOR, ListPart},
    pages::ListQuery,
    response::{PageResult, Refused, done, form_page},
    visitor::Visitor,
};
use actix_web::{HttpResponse, http::header, web};
use askama::Template;
use contract::{
    BackupId, Fault, InstanceId, Limit,
    backend_instances::GetBackendInstance,
    backups::{
        Backup, BackupKind, BackupSchedule, BackupState, CreateDocumentDbBackup, CreateSqlDbBackup,
        DeleteBackup, GetBackupDownloadUrl, GetBackupSchedule, GetBackups, Restore, RestoreBackup,
        RestoreState, ScheduleBackups, UnscheduleBackups, VerifyBackup,
    },
    instances::{Instance, Role},
};
use messages::Messages;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/instances/{id}/backups", web::get().to(show))
        .route("/instances/{id}/backups", web::post().to(create))
        .route("/instances/{id}/backups/verify", web::post().to(verify))
        .route("/instances/{id}/backups/restore", web::post().to(restore))
        .route("/instances/{id}/backups/delete", web::post().to(delete))
        .route("/instances/{id}/backups/schedule", web::post().to(schedule))
        .route("/instances/{id}/backups/unschedule", web::post().to(unschedule))
        .route("/backups/{id}/download", web::get().to(download));
}

#[derive(Template)]
#[template(path = "instance_backups.html")]
struct BackupsPage {
    frame: Frame,
    tab: InstanceTab,
    list: ListPart<Backup>,
    schedules: Vec<(BackupKind, Option<BackupSchedule>)>,
    form: Form,
}

impl BackupsPage {
    fn is_ready(backup: &Backup) -> bool {
        backup.state == BackupState::Ready
    }

    fn has_ready(&self) -> bool {
        self.list.items.iter().any(Self::is_ready)
    }

    /// What a database is called.
    fn label(say: &Messages, database: &BackupKind) -> String {
        match database {
            BackupKind::DocumentDb => super::service(say, &Role::DocumentDb),
            BackupKind::SqlDb => super::service(say, &Role::SqlDb),
        }
    }

    /// Whether something is under way, so that the page shows more when it is loaded again.
    fn changes(&self) -> bool {
        let runs = |restore: &Option<Restore>| {
            restore.as_ref().is_some_and(|restore| restore.state == RestoreState::Running)
        };
        let changes = |backup: &Backup| {
            backup.state == BackupState::Running
                || runs(&backup.restore)
                || runs(&backup.verification)
        };
        self.list.items.iter().any(changes)
    }
}

/// The databases of an instance that can be backed up.
fn databases(instance: &Instance) -> Vec<BackupKind> {
    let kind = |role| match role {
        Role::DocumentDb => Some(BackupKind::DocumentDb),
        Role::SqlDb => Some(BackupKind::SqlDb),
        _ => None,
    };
    instance.services.iter().filter_map(|service| kind(service.role)).collect()
}

async fn show(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ListQuery>,
) -> PageResult {
    let instance_id = super::super::id(path, "instance")?;
    part_with(&visitor, instance_id, &query, Form::default()).await
}

/// Shows the newest backups with a form that was refused.
async fn show_with(visitor: &Visitor, instance_id: InstanceId, form: Form) -> PageResult {
    part_with(visitor, instance_id, &ListQuery::default(), form).await
}

async fn part_with(
    visitor: &Visitor,
    instance_id: InstanceId,
    query: &ListQuery,
    form: Form,
) -> PageResult {
    let (frame, tab) = InstanceTab::open(visitor, instance_id, "/backups").await?;
    let (app_id, kind) = (tab.instance.app_id, tab.instance.kind);
    let mut list = ListPart::read(visitor, &at(instance_id), query.form(), |form| {
        let (limit, cursor) = (Limit::default(), form.get(CURSOR)?);
        Ok(GetBackups { app_id, kind: None, database: None, state: None, limit, cursor })
    })
    .await?;
    list.items.retain(|backup: &Backup| backup.instance_id == instance_id);
    let mut schedules = Vec::new();
    for database in databases(&tab.instance) {
        let of = GetBackupSchedule { app_id, kind: Some(kind), database: Some(database) };
        let schedule = match visitor.read(&of).await {
            Ok(schedule) => Some(schedule),
            Err(Refused(Fault::NotFound(_))) => None,
            Err(refused) => return Err(refused),
        };
        schedules.push((database, schedule));
    }
    let usual = [("cron", "0 3 * * *".to_owned()), ("keep", "7".to_owned())];
    let form = form.beside(Form::filled(usual));
    form_page(&form.clone(), &BackupsPage { frame, tab, list, schedules, form })
}

fn at(instance: InstanceId) -> String {
    format!("/instances/{instance}/backups")
}

async fn create(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
    let (app_id, kind) = (instance.app_id, Some(instance.kind));
    let verify = form.has("verify", "yes");
    let made = match form.value("database") {
        "documentDb" => {
            visitor.send(&form, |_| Ok(CreateDocumentDbBackup { app_id, kind, verify })).await
        }
        _ => visitor.send(&form, |_| Ok(CreateSqlDbBackup { app_id, kind, verify })).await,
    };
    match made {
        Ok(_) => done(&at(instance_id), visitor.say().backup_is_being_written()),
        Err(fault) => show_with(&visitor, instance_id, form.refused(fault)).await,
    }
}

async fn verify(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let params = |form: &Form| Ok(VerifyBackup { backup_id: form.get("backupId")? });
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(instance_id), visitor.say().backup_is_verified_now()),
        Err(fault) => show_with(&visitor, instance_id, form.refused(fault)).await,
    }
}

async fn restore(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
    let params = |form: &Form| {
        form.confirm(instance.name.as_str(), "the name of the instance")?;
        Ok(RestoreBackup { backup_id: form.get("backupId")? })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(instance_id), visitor.say().backup_is_being_restored()),
        Err(fault) => show_with(&visitor, instance_id, form.refused(fault)).await,
    }
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let params = |form: &Form| Ok(DeleteBackup { backup_id: form.get("backupId")? });
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(instance_id), visitor.say().the_backup_is_deleted()),
        Err(fault) => show_with(&visitor, instance_id, form.refused(fault)).await,
    }
}

async fn schedule(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
    let params = |form: &Form| {
        Ok(ScheduleBackups {
            app_id: instance.app_id,
            kind: Some(instance.kind),
            database: form.get("database")?,
            cron: form.get("cron")?,
            keep: form.get("keep")?,
            verify: form.has("verify", "yes"),
        })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(instance_id), visitor.say().backups_are_scheduled()),
        Err(fault) => show_with(&visitor, instance_id, form.refused(fault)).await,
    }
}

async fn unschedule(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
    let params = |form: &Form| {
        let (app_id, kind, database) = (instance.app_id, instance.kind, form.get("database")?);
        Ok(UnscheduleBackups { app_id, kind: Some(kind), database })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(instance_id), visitor.say().backups_are_unscheduled()),
        Err(fault) => show_with(&visitor, instance_id, form.refused(fault)).await,
    }
}

/// Leads to the signed address of a backup, which is made for this request only.
async fn download(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let backup_id: BackupId = super::super::id(path, "backup")?;
    let url = visitor.read(&GetBackupDownloadUrl { backup_id }).await?.url;
    Ok(HttpResponse::SeeOther().insert_header((header::LOCATION, url)).finish())
}
