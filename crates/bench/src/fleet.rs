//! Instances in a store and their containers in an engine. All instances are at rest: their servers
//! share one port of this machine, and their databases are healthy.

use crate::{
    echo,
    engine::ListingEngine,
    helper::Helper,
    outcome::{Explain, Outcome},
    seed,
};
use actors::{
    kinds::{
        hosting::{
            instances::{Definition, Instance, Instances, Revision, Service, ServiceImage},
            names,
        },
        people::apps::Apps,
    },
    ports::random::Random,
};
use contract::{
    AppId, ImageId, InstanceId, ProjectId,
    instances::{
        DesiredState, InstanceKind, InstanceState, Resources, Role, ServiceHealth, ServiceState,
    },
};
use serde_json::{Value, json};
use std::path::Path;
use store::{Change, Store};

pub struct Fleet {
    /// Each instance, and its app.
    pub instances: Vec<(InstanceId, AppId)>,
    /// All containers, in the form of `/containers/json` of Docker Engine's API.
    pub containers: Vec<Value>,
}

/// The address of the servers of a fleet.
pub struct Servers<'a> {
    /// The port on the loopback address.
    pub port: u16,
    /// The path of the health checks.
    pub health: &'a str,
}

/// An instance whose server answers bytes.
pub struct OneInstance {
    pub app: AppId,
    pub engine: ListingEngine,
    pub upstream: Helper,
}

impl OneInstance {
    /// Starts the server and the engine, and writes the instance to the store of a stopped service.
    pub fn seed(home: &Path, workers: usize) -> Outcome<OneInstance> {
        let upstream = echo::start(workers)?;
        let servers = Servers { port: upstream.address.port(), health: "/bytes/20" };
        let store = seed::open(home)?;
        let nobodys = Random::default().id(seed::MADE);
        let fleet = actix_rt::System::new().block_on(seed(&store, nobodys, 1, &servers))?;
        store.close();
        drop(store);
        let engine = ListingEngine::start(home, &fleet.containers)?;
        let (_, app) = fleet.instances.into_iter().next().or_say("an instance")?;
        Ok(OneInstance { app, engine, upstream })
    }
}

/// Writes `count` instances to the store, each with its own app in this project.
pub async fn seed(
    store: &Store,
    project: ProjectId,
    count: usize,
    servers: &Servers<'_>,
) -> Outcome<Fleet> {
    let mut fleet = Fleet { instances: Vec::new(), containers: Vec::new() };
    for _ in 0..count {
        let random = Random::default();
        let (app, id): (AppId, InstanceId) = (random.id(seed::MADE), random.id(seed::MADE));
        let change = seed::put::<Apps>(Change::new(), app, seed::app(project)?);
        let change = seed::put::<Instances>(change, id, instance(project, app, servers)?);
        seed::commit(store, change).await?;
        fleet.instances.push((id, app));
        let server = Some(servers.port);
        fleet.containers.push(container(id, Role::SqlDb, None, "Up 5 minutes (healthy)"));
        fleet.containers.push(container(id, Role::Server, server, "Up 5 minutes"));
    }
    Ok(fleet)
}

fn instance(project_id: ProjectId, app_id: AppId, servers: &Servers<'_>) -> Outcome<Instance> {
    let database = json!({"command": ["pg_isready"]});
    Ok(Instance {
        project_id,
        app_id,
        kind: InstanceKind::Backend,
        name: seed::text("An instance")?,
        engine: None,
        moving: None,
        not_moved: None,
        left_behind: Vec::new(),
        template_id: Random::default().id(seed::MADE),
        template_version: seed::text("1.0.0")?,
        resources: Resources::default(),
        secrets: Default::default(),
        schedules: Default::default(),
        initial_restore: None,
        services: vec![
            service(Role::SqlDb, None, &database)?,
            service(Role::Server, Some(servers.port), &json!({"http": servers.health}))?,
        ],
        desired: DesiredState::Running,
        state: InstanceState::Running,
        deadline: None,
        coming_up: false,
        delete_data: false,
        left_to: None,
        crashes: Vec::new(),
        unreachable_since: None,
        observing: false,
        advised: Default::default(),
        disk_bytes: None,
        held: None,
        awaits_room: false,
        last_error: None,
        last_log: Vec::new(),
        created_at: seed::MADE,
        updated_at: seed::MADE,
    })
}

fn service(role: Role, port: Option<u16>, health: &Value) -> Outcome<Service> {
    let image_id: ImageId = Random::default().id(seed::MADE);
    let service = json!({
        "role": role, "imageId": image_id, "imageVersion": "1.0.0",
        "port": port, "healthCheck": health,
    });
    let image = ServiceImage {
        image_id: Some(image_id),
        name: seed::text("an-image")?,
        version: seed::text("1.0.0")?,
        reference: Some(format!("an-image@sha256:{}", "5d".repeat(32))),
        build: None,
    };
    let service = serde_json::from_value(service).or_say("a service")?;
    let definition = Definition { template_version: seed::text("1.0.0")?, service };
    let mut live = Revision::new(1, definition, image, Default::default());
    (live.state, live.health, live.port) = (ServiceState::Running, ServiceHealth::Healthy, port);
    live.started_at = Some(seed::MADE);
    Ok(Service::new(live))
}

fn container(id: InstanceId, role: Role, port: Option<u16>, status: &str) -> Value {
    let name = names::container(id, role, 1);
    let published =
        |port| json!({"IP": "127.0.0.1", "PrivatePort": 1337, "PublicPort": port, "Type": "tcp"});
    json!({
        "Id": name,
        "Names": [format!("/{name}")],
        "ImageID": format!("sha256:{}", "5d".repeat(32)),
        "Created": seed::MADE.as_millis() / 1000,
        "State": "running",
        "Status": status,
        "Ports": port.map(published).into_iter().collect::<Vec<_>>(),
        "Labels": names::of_container("this-installation", id, role, 1),
    })
}
