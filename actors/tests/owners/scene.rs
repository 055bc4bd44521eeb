//! Handmade records: an instance with a database and a server, and its deployment, backup and image
//! build; and commands to the instance.

use actors::{
    kinds::{
        hosting::{
            backups, deployments, image_builds,
            instances::{
                Command, Definition, InitialRestore, Instance, Revision, Service, ServiceChange,
                ServiceImage,
            },
            templates::Templates,
        },
        people::apps::{App, Apps},
    },
    runtime::resource::Kept,
};
use contract::{
    AppId, BackupId, DeploymentId, Id, ImageId, InstanceId, JobId, OrganizationId, ProjectId,
    TemplateId, Timestamp,
    instances::{DesiredState, InstanceKind, InstanceState, Resources, Role},
    templates::TemplateService,
};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use store::Stored;
use ulid::Ulid;

pub fn id() -> InstanceId {
    InstanceId::of(Ulid(7))
}

pub fn deployment(n: u128) -> DeploymentId {
    DeploymentId::of(Ulid(n))
}

fn image() -> ServiceImage {
    ServiceImage {
        image_id: Some(ImageId::of(Ulid(3))),
        name: "an-image".parse().unwrap(),
        version: "1.0.0".parse().unwrap(),
        reference: Some("an-image@sha256:0".into()),
        build: None,
    }
}

fn service(role: Role) -> Service {
    let service = json!({
        "role": role,
        "imageId": ImageId::of(Ulid(3)),
        "imageVersion": "1.0.0",
    });
    let service: TemplateService = serde_json::from_value(service).unwrap();
    let definition = Definition { template_version: "1.0.0".parse().unwrap(), service };
    Service::new(Revision::new(1, definition, image(), BTreeMap::new()))
}

pub const START: Command = Command::Start { accept_data_loss: false };

/// The app is deleted.
pub fn leave() -> Command {
    Command::Leave(OrganizationId::of(Ulid(9)))
}

/// A service that is not essential.
pub fn storefront() -> Service {
    service(Role::Storefront)
}

/// A storefront is added to the instance.
pub fn add_storefront() -> Command {
    let service = Box::new(storefront());
    Command::AddService { service, secrets: BTreeMap::new() }
}

/// The instance comes back into another app.
pub fn undelete_into(now: Timestamp) -> Command {
    let app = App::new(ProjectId::of(Ulid(11)), "Another app".parse().unwrap(), now);
    let kept = Kept::<Apps>::at_rest(app);
    let app = (AppId::of(Ulid(12)), Arc::new(Stored::after(None, kept)));
    match undelete(now) {
        Command::Undelete { template, .. } => Command::Undelete { template, app: Some(app) },
        other => other,
    }
}

/// The instance's template, which still exists.
pub fn undelete(now: Timestamp) -> Command {
    let template = read(json!({
        "id": TemplateId::of(Ulid(4)), "name": "A template", "slug": "a-template",
        "kind": "backend", "description": null, "category": "backend", "tags": [],
        "status": "published", "featured": false, "pricing": {"model": "free"},
        "currentVersion": null, "versions": [], "createdAt": now, "updatedAt": now,
    }));
    let kept = Kept::<Templates>::at_rest(template);
    Command::Undelete { template: Arc::new(Stored::after(None, kept)), app: None }
}

pub fn instance(now: Timestamp) -> Instance {
    Instance {
        project_id: ProjectId::of(Ulid(1)),
        app_id: AppId::of(Ulid(2)),
        kind: InstanceKind::Backend,
        name: "an instance".parse().unwrap(),
        engine: None,
        moving: None,
        not_moved: None,
        left_behind: Vec::new(),
        template_id: TemplateId::of(Ulid(4)),
        template_version: "1.0.0".parse().unwrap(),
        resources: Resources::default(),
        secrets: BTreeMap::new(),
        schedules: BTreeMap::new(),
        initial_restore: None,
        services: vec![service(Role::SqlDb), service(Role::Server)],
        desired: DesiredState::Running,
        state: InstanceState::Provisioning,
        deadline: Some(now + Duration::from_secs(600)),
        coming_up: false,
        delete_data: false,
        left_to: None,
        crashes: vec![],
        unreachable_since: None,
        observing: false,
        advised: BTreeSet::new(),
        disk_bytes: None,
        held: None,
        awaits_room: false,
        last_error: None,
        last_log: vec![],
        created_at: now,
        updated_at: now,
    }
}

pub fn initial_restore() -> InitialRestore {
    InitialRestore {
        backup: BackupId::of(Ulid(9)),
        sha256: "5d".repeat(32).parse().unwrap(),
        role: Role::SqlDb,
        begun: false,
        failures: 0,
    }
}

/// The definition of the server.
pub fn definition() -> Definition {
    service(Role::Server).live.definition
}

/// Replaces the container of the server.
pub fn replace(n: u128) -> Command {
    replace_with(n, image())
}

/// Replaces the container of the server by one of this image.
pub fn replace_with(n: u128, image: ServiceImage) -> Command {
    let change = ServiceChange { image: Some(image), ..ServiceChange::default() };
    Command::Replace {
        role: Role::Server,
        change: Box::new(change),
        secrets: BTreeMap::new(),
        deployment: Some(deployment(n)),
        within: Duration::from_secs(300),
    }
}

/// Changes the resources of the instance.
pub fn resize(n: u32) -> Command {
    let resources = Resources { memory_mb: 512 + n, cpus: 1.0 };
    Command::Update { name: None, resources: Some(resources), env: None }
}

fn read<T: serde::de::DeserializeOwned>(record: serde_json::Value) -> T {
    serde_json::from_value(record).unwrap()
}

/// A new deployment of a repository to the server.
pub fn deploying(id: DeploymentId, instance: InstanceId, now: Timestamp) -> deployments::State {
    let step = |name: &str| json!({"name": name, "state": if name == "queue" { "running" } else { "pending" }});
    let steps = ["queue", "build", "start", "health", "switch", "drain"].map(step);
    let git = json!({"url": "https://git.example.com/app.git"});
    read(json!({
        "deployment": {
            "id": id, "appId": AppId::of(Ulid(2)), "instanceId": instance, "target": "backend",
            "source": {"git": git}, "state": "queued", "steps": steps, "createdAt": now,
        },
        "role": "server",
        "image": {"name": "an-image", "version": "1.0.0"},
        "in_lane": true,
        "removing": false,
    }))
}

/// A new scheduled backup of the database, with a restore check.
pub fn backing_up(id: BackupId, instance: InstanceId, now: Timestamp) -> backups::State {
    read(json!({
        "backup": {
            "id": id, "instanceId": instance, "appId": AppId::of(Ulid(2)), "kind": "sqlDb",
            "state": "running", "scheduled": true, "createdAt": now,
        },
        "deadline": now,
        "verify": true,
        "removing": false,
    }))
}

/// A new build of a version of an image.
pub fn building(id: JobId, image: ImageId, version: &str, now: Timestamp) -> image_builds::State {
    read(json!({
        "job": {
            "id": id, "imageId": image, "version": version, "state": "queued",
            "progress": 0, "createdAt": now,
        },
        "source": {"git": {"url": "https://git.example.com/app.git"}},
    }))
}
