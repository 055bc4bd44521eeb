//! The handlers of the groups Backend instances, Market-server instances and Instance helpers, and
//! what they share.

pub mod create;

mod backend;
mod cloud_functions;
mod details;
mod logs;
mod market;
mod metrics;
mod sql_connection;

use self::create::{NewInstance, creation};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        hosting::instances::{
            Command, Instance, Instances, instance_of_app, rules::app_has_one, view::view,
        },
        world::World,
    },
    ports::sealed::SealError,
};
use container_engine::EngineError;
use contract::{
    AppId, Fault, InstanceId,
    instances::{self as wire, InstanceKind},
};
use std::{collections::BTreeMap, time::Duration};
use store::Snapshot;

/// How long a call waits for an instance to come to rest.
const WAIT: Duration = Duration::from_secs(25);

/// Sends a command to an instance. With `wait`, answers when the instance has come to rest.
async fn ask_instance(
    cx: &Call,
    id: InstanceId,
    command: Command,
    wait: bool,
) -> Result<wire::Instance, Fault> {
    let (world, instance) = (cx.world.clone(), cx.to::<Instances>(id));
    let show = move |instance: &Instance| Ok(view(&world, id, instance));
    match wait {
        true => instance.change_and_wait(command, WAIT, show).await,
        false => instance.change(command, show).await,
    }
}

async fn create_instance(
    platform: &Platform,
    cx: &Call,
    new: NewInstance,
) -> Result<wire::Instance, Fault> {
    if let Some(app) = new.app_id
        && instance_of_app(&platform.world.store, app, new.kind)?.is_some()
    {
        return Err(app_has_one(new.kind));
    }
    let id: InstanceId = platform.world.ports.random.id(cx.now);
    let mut refused = BTreeMap::new();
    loop {
        let creation = creation(platform, cx, id, new.clone())?;
        let engine = creation.instance.engine;
        if let Some(why) = refused.remove(&engine) {
            return Err(why);
        }
        let world = platform.world.clone();
        let show = move |instance: &Instance| Ok(view(&world, id, instance));
        match cx.to::<Instances>(id).create(creation, show).await {
            // Others may have been placed on that engine meanwhile, and another one may have more left now.
            Err(why @ Fault::OverQuota(_)) => refused.insert(engine, why),
            made => return made,
        };
    }
}

/// The app's instance of this kind. Without a kind: the only instance of the app.
pub(crate) fn only_instance(
    world: &World,
    app: AppId,
    kind: Option<InstanceKind>,
) -> Result<(InstanceId, Snapshot<Instances>), Fault> {
    let of = |kind| instance_of_app(&world.store, app, kind);
    let id = match kind {
        Some(kind) => of(kind)?,
        None => match (of(InstanceKind::Backend)?, of(InstanceKind::Market)?) {
            (Some(_), Some(_)) => {
                return Err(Fault::invalid("kind", "is needed: the app has two instances"));
            }
            (backend, market) => backend.or(market),
        },
    };
    let id = id.ok_or(Fault::NotFound("instance of this app"))?;
    let found = world.store.get::<Instances>(&id)?;
    Ok((id, found.ok_or(Fault::NotFound("instance of this app"))?))
}

impl Instance {
    /// The refusal of a function that needs this service to run.
    pub(crate) fn not_running(&self, service: &str) -> Fault {
        let state = self.state_name();
        Fault::NotNow(format!(
            "this instance is {state}, and its {service} does not run; start it first"
        ))
    }
}

pub(in crate::functions::hosting) fn engine_fault(e: EngineError) -> Fault {
    match e {
        EngineError::Missing(_) => Fault::NotNow(
            "the container of this service does not exist; see the state of the instance".into(),
        ),
        e => {
            tracing::warn!(error = %e, "the container engine refused a request");
            Fault::Unavailable("the container engine")
        }
    }
}

fn seal_fault(e: SealError) -> Fault {
    tracing::error!(error = %e, "the secrets of an instance cannot be opened");
    Fault::Internal
}
