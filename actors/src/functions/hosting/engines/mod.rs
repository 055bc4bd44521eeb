//! The handlers of the group Container engines.

mod keys;
pub mod place;
mod view;

use crate::{
    call::{context::Call, platform::Platform},
    functions::hosting::{backups::initial_restore, instances::engine_fault},
    installation::{This, engine::OwnDrained},
    kinds::{
        hosting::{
            backups::Backups,
            engines::{AddedEngine, Command, EngineIndex, Engines},
            instances::{self, Instance, InstanceIndex, Instances},
        },
        world::World,
    },
    ports::engines::Access,
    runtime::{entries::Under, pagination, ref_count::RefCount},
};
use container_engine::{About, EngineError};
use contract::{
    EngineId, Fault, InstanceId, Page, Serves, Timestamp,
    backups::{Backup, BackupState, RestoreState},
    engines::{
        AddEngine, ContainerEngine, DrainEngine, EngineList, GetEngineInstances, GetEngines,
        MoveInstance, PlacedInstance, RecoverInstance, RemoveEngine, RemovedEngine, UpdateEngine,
    },
};
use keys::{Given, sealed};
use std::time::Duration;
use store::{Change, Snapshot};
use view::{placed, view, view_own};

/// How many engines may be added.
const MOST: u64 = 100;
/// How long an engine may take to say who it is.
const TELLS_WITHIN: Duration = Duration::from_secs(20);

impl Serves<AddEngine> for Platform {
    async fn serve(&self, cx: &Call, p: AddEngine) -> Result<ContainerEngine, Fault> {
        let world = &self.world;
        if world.store.count(&EngineIndex::All)? >= MOST {
            return Err(Fault::NotNow(format!("there are {MOST} engines; remove one first")));
        }
        let id: EngineId = world.ports.random.id(cx.now);
        let given = Given {
            authority: p.authority,
            certificate: p.certificate,
            host_key: p.host_key,
            key: Some(p.key),
        };
        let access = Access {
            address: p.address.clone(),
            credentials: given.for_engine_at(&p.address)?,
            publishes_at: p.private_address.ip(),
            identity: None,
        };
        let about = ask(world, &access).await?;
        if own_identity(world).await.is_some_and(|own| own == about.id) {
            return Err(Fault::Exists(
                "this is the engine of SVC_DOCKER_HOST, which is used already".into(),
            ));
        }
        let engine = AddedEngine {
            name: p.name,
            address: p.address,
            private_address: p.private_address,
            identity: about.id,
            keys: sealed(world, id, access.credentials)?,
            renewals: 0,
            labels: p.labels,
            draining: false,
            created_at: cx.now,
            updated_at: cx.now,
        };
        let shown = world.clone();
        cx.to::<Engines>(id).create(engine, move |engine| view(&shown, id, engine)).await
    }
}

impl Serves<GetEngines> for Platform {
    async fn serve(&self, _: &Call, _: GetEngines) -> Result<EngineList, Fault> {
        let mut items = vec![view_own(&self.world)?];
        for (id, engine) in engines(&self.world)? {
            items.push(view(&self.world, id, &engine.state)?);
        }
        Ok(EngineList { items })
    }
}

impl Serves<UpdateEngine> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateEngine) -> Result<ContainerEngine, Fault> {
        let (id, world) = (p.engine_id, self.world.clone());
        let known = engine(&world, id)?;
        let given = Given {
            authority: p.authority,
            certificate: p.certificate,
            host_key: p.host_key,
            key: p.key,
        };
        let keys = if given.is_nothing() {
            None
        } else {
            let access = Access {
                address: known.address.clone(),
                credentials: given.for_engine_at(&known.address)?,
                publishes_at: known.private_address.ip(),
                identity: Some(known.identity.clone()),
            };
            ask(&world, &access).await?;
            Some(Box::new(sealed(&world, id, access.credentials)?))
        };
        let command = Command::Update { name: p.name, labels: p.labels, keys };
        cx.to::<Engines>(id).change(command, move |engine| view(&world, id, engine)).await
    }
}

impl Serves<DrainEngine> for Platform {
    async fn serve(&self, cx: &Call, p: DrainEngine) -> Result<ContainerEngine, Fault> {
        let world = self.world.clone();
        let Some(id) = p.engine_id else {
            let known = world.store.get::<OwnDrained>(&This)?;
            let change = match known {
                None if p.draining => Change::new().create::<OwnDrained>(&This, OwnDrained {}),
                Some(known) if !p.draining => Change::new().remove::<OwnDrained>(&This, &known),
                _ => Change::new(),
            };
            world.store.commit(change).await?;
            cx.note("engine");
            return view_own(&world);
        };
        engine(&world, id)?;
        let command = Command::Drain(p.draining);
        cx.to::<Engines>(id).change(command, move |engine| view(&world, id, engine)).await
    }
}

impl Serves<RemoveEngine> for Platform {
    async fn serve(&self, cx: &Call, p: RemoveEngine) -> Result<RemovedEngine, Fault> {
        let (world, id) = (&self.world, p.engine_id);
        engine(world, id)?;
        if p.lost {
            lose(world, id).await?;
        }
        if world.store.get::<RefCount>(&id.to_string())?.is_some() {
            return Err(Fault::NotNow(
                "the engine has instances, or the data of some that were deleted or moved away. \
                 svc_admin_getEngineInstances lists those that are there: move them, or delete them with their \
                 data. What moved away stays for seven days"
                    .into(),
            ));
        }
        let reply = RemovedEngine { removed: id };
        cx.to::<Engines>(id).change(Command::Remove, move |_| Ok(reply.clone())).await
    }
}

/// Tells those who need an engine that it is gone for good.
async fn lose(world: &World, id: EngineId) -> Result<(), Fault> {
    if !world.host(Some(id)).is_ok_and(|host| host.health.is_unreachable()) {
        return Err(Fault::NotNow(
            "the engine answers, or was not looked at yet, so it is not lost".into(),
        ));
    }
    let placed = world.store.newest::<Instances>(&Under::<Engines>(id), None);
    let mut told: Vec<InstanceId> = Vec::new();
    for found in placed {
        let (instance, seen) = found?;
        if !seen.is_deleted() {
            return Err(Fault::NotNow(format!(
                "{} ({instance}) is placed on this engine; begin it anew on another one with \
                 svc_admin_recoverInstance, or delete it, first",
                seen.name
            )));
        }
        told.push(instance);
    }
    let elsewhere = InstanceIndex::Elsewhere { engine: id };
    told.extend(world.store.newest(&elsewhere, None).keys().collect::<Result<Vec<_>, _>>()?);
    for instance in told {
        let command = instances::Command::LoseEngine(id);
        world.to::<Instances>(instance).ask_if_there(command).await?;
    }
    Ok(())
}

impl Serves<GetEngineInstances> for Platform {
    async fn serve(&self, _: &Call, p: GetEngineInstances) -> Result<Page<PlacedInstance>, Fault> {
        let (store, list, engine_id) = (&self.world.store, (p.limit, p.cursor), p.engine_id);
        let placed = |id, seen: &Snapshot<Instances>| {
            Ok((seen.engine == engine_id).then(|| placed(id, &seen.state)))
        };
        match engine_id {
            Some(id) => {
                engine(&self.world, id)?;
                pagination::counted::<Instances, _>(
                    store,
                    &Under::<Engines>(id),
                    list,
                    false,
                    placed,
                )
            }
            None => {
                pagination::counted::<Instances, _>(store, &InstanceIndex::All, list, true, placed)
            }
        }
    }
}

impl Serves<MoveInstance> for Platform {
    async fn serve(&self, cx: &Call, p: MoveInstance) -> Result<PlacedInstance, Fault> {
        let (world, id) = (&self.world, p.instance_id);
        let found = instance(world, id)?;
        let to = match found.engine == p.engine_id || found.moving.is_some() {
            true => p.engine_id.map(|id| engine(world, id).map(|seen| (id, seen))).transpose()?,
            false => taking(world, p.engine_id, &found.state)?,
        };
        let command = instances::Command::Move { to };
        let show = move |instance: &Instance| Ok(placed(id, instance));
        cx.to::<Instances>(id).change(command, show).await
    }
}

impl Serves<RecoverInstance> for Platform {
    async fn serve(&self, cx: &Call, p: RecoverInstance) -> Result<PlacedInstance, Fault> {
        let (world, id) = (&self.world, p.instance_id);
        let found = instance(world, id)?;
        let host = world.host(found.engine).map_err(engine_fault)?;
        if !host.health.is_unreachable() {
            return Err(Fault::NotNow(
                "the engine of this instance answers; move the instance with svc_admin_moveInstance".into(),
            ));
        }
        let to = taking(world, p.engine_id, &found.state)?;
        let backup = p.backup_id.ok_or_else(|| newest_backup(world, id, cx.now))?;
        let instance = &found.state;
        let restore = initial_restore(world, backup, instance.project_id, &instance.services)?;
        let command = instances::Command::Recover { to, restore };
        let show = move |instance: &Instance| Ok(placed(id, instance));
        cx.to::<Instances>(id).change(command, show).await
    }
}

/// The refusal of a recovery without a backup: it says which one there is.
fn newest_backup(world: &World, id: InstanceId, now: Timestamp) -> Fault {
    let is_verified = |backup: &Backup| {
        let verified = backup.verification.as_ref().map(|verification| verification.state);
        backup.state == BackupState::Ready && verified == Some(RestoreState::Succeeded)
    };
    let all = world.store.newest::<Backups>(&Under::<Instances>(id), None);
    let mut verified = all.flatten().filter(|(_, seen)| is_verified(&seen.state.backup));
    Fault::NotNow(match verified.next() {
        Some((backup, seen)) => {
            let (at, age) = (seen.state.backup.created_at, now.since(seen.state.backup.created_at));
            format!(
                "name the backup that it begins with: what was written since is lost. The newest that is \
                 verified is {backup}, of {at}, {} minutes ago",
                age.as_secs() / 60
            )
        }
        None => "name the backup that it begins with: none of this instance is verified, and svc_getBackups lists \
                 those that were made"
            .into(),
    })
}

/// An engine that can take an instance, as it was read.
fn taking(
    world: &World,
    id: Option<EngineId>,
    instance: &Instance,
) -> Result<Option<(EngineId, Snapshot<Engines>)>, Fault> {
    let to = match id {
        Some(id) => Some((id, engine(world, id)?)),
        None => None,
    };
    let host = world.host(id).map_err(engine_fault)?;
    place::check(world, &host, to.as_ref().map(|(_, seen)| seen), instance)?;
    Ok(to)
}

/// Asks an engine who it is.
async fn ask(world: &World, access: &Access) -> Result<About, Fault> {
    let engine = world.ports.engines.connect(access);
    let engine = engine.map_err(|why| match access.address.ssh() {
        Some(_) => Fault::invalid("key", why),
        None => Fault::invalid("certificate", why),
    })?;
    let about = world.ports.clock.limit(TELLS_WITHIN, engine.about()).await;
    let about = about.unwrap_or_else(|| Err(EngineError::Unreachable("it does not answer".into())));
    let about = about.map_err(|e| {
        tracing::warn!(address = %access.address, error = %e, "an engine did not say who it is");
        Fault::invalid("address", format!("is of no engine that can be used: {e}"))
    })?;
    if about.id.is_empty() {
        return Err(Fault::invalid("address", "is of an engine that does not say which one it is"));
    }
    Ok(about)
}

async fn own_identity(world: &World) -> Option<String> {
    let about = world.ports.clock.limit(TELLS_WITHIN, world.hosts.own().engine.about()).await;
    about.and_then(Result::ok).map(|about| about.id)
}

/// An instance that is not deleted.
fn instance(world: &World, id: InstanceId) -> Result<Snapshot<Instances>, Fault> {
    let found = world.store.get::<Instances>(&id)?.filter(|found| !found.is_deleted());
    found.ok_or(Fault::NotFound("instance"))
}

fn engine(world: &World, id: EngineId) -> Result<Snapshot<Engines>, Fault> {
    world.store.get::<Engines>(&id)?.ok_or(Fault::NotFound("container engine"))
}

fn engines(world: &World) -> Result<Vec<(EngineId, Snapshot<Engines>)>, Fault> {
    world.store.oldest(&EngineIndex::All, None).collect()
}
