//! Executes the action that [`plan`] chose. Every action may run twice.

use super::{
    observe::{Observation, observe},
    plan::{Action, plan},
};
use crate::{
    kinds::{
        hosting::{
            engines::{Egress, Host},
            image_builds::from_recipe::Availability,
            instances::{
                container_spec,
                database::RunningDatabase,
                image,
                record::Instance,
                rules::{Instances, Outcome, ResolvedImage},
                service::{Service, VolumeUse},
            },
            names,
        },
        people::tenant::tenant,
        world::World,
    },
    ports::NotDone,
    runtime::{
        resource::Retry,
        turns::{Tenant, Turn, Turns},
    },
};
use container_engine::{EngineError, LogQuery};
use contract::{
    InstanceId,
    image_builds::BuildJob,
    instances::{Role, ServiceState},
};
use std::{sync::Arc, time::Duration};
use store::Snapshot;

/// Lines of output that are kept of a container that failed.
const KEPT_LINES: u32 = 200;
/// How long an action waits for its turn at the engine, at most.
const AWAITS_TURN: Duration = Duration::from_secs(20);

/// The turns at the engine of containers that are created and started. Too many at once take the processors from
/// everybody, and are ready later than one after the other.
pub fn turns() -> Turns<Tenant> {
    Turns::two_for_each_processor()
}

/// Observes the instance, decides one action and executes it. The outcome is applied to the record
/// in [`apply`](super::apply).
pub(in crate::kinds::hosting::instances) async fn reconcile(
    id: InstanceId,
    kept: Snapshot<Instances>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let instance = &kept.state;
    let host = match world.host(instance.engine) {
        Ok(host) => host,
        Err(e) => return Ok(unreachable(Egress::Unknown, instance, e.to_string())),
    };
    let observation = match observe(&world, &host, id, instance).await {
        Ok(observation) => observation,
        Err(e) => return Ok(unreachable(host.health.status().egress, instance, e.to_string())),
    };
    let action = plan(instance, &observation, world.ports.clock.now());
    let executor = Executor { id, instance, observation: &observation, host: &host, world: &world };
    let result = match executor.execute(&action).await {
        Ok(Done::Building(role, generation, job)) => {
            let (job, progress) = (job.id, job.progress);
            return Ok(Outcome::Building { observation, role, generation, job, progress });
        }
        Ok(Done::Resolved(image)) => Ok(Some(image)),
        Ok(Done::Executed) => Ok(None),
        Ok(Done::NoTurn) => return Ok(Outcome::NoTurn),
        Err(NotDone::Unreachable(why)) => {
            return Ok(unreachable(host.health.status().egress, instance, why));
        }
        Err(NotDone::Refused(why)) => Err(why),
    };
    let log = executor.output(&action, result.is_err()).await;
    Ok(Outcome::Reconciled { observation, action, result, log })
}

/// Only operators see the engine's own message: it describes the inside of this machine.
fn unreachable(egress: Egress, instance: &Instance, why: String) -> Outcome {
    tracing::warn!(name = %instance.name, why, "the container engine did not serve an instance");
    Outcome::Waits(match egress {
        Egress::Open(_) => {
            "an operator: this machine does not keep instances from its internal network"
        }
        _ => "the container engine or a registry, which does not answer",
    })
}

/// What came of an action.
enum Done {
    Executed,
    /// A container of this image exists.
    Resolved(ResolvedImage),
    /// The image of this revision is still being built: nothing else was done.
    Building(Role, u32, BuildJob),
    /// There was no turn at the engine.
    NoTurn,
}

/// An instance that does not serve waits for no engine: it is better off where it was.
fn given_up<T>(done: Result<T, NotDone>) -> Result<T, NotDone> {
    done.map_err(|(NotDone::Refused(why) | NotDone::Unreachable(why))| NotDone::Refused(why))
}

struct Executor<'a> {
    id: InstanceId,
    instance: &'a Instance,
    observation: &'a Observation,
    host: &'a Host,
    world: &'a World,
}

impl Executor<'_> {
    async fn execute(&self, action: &Action) -> Result<Done, NotDone> {
        let engine = &self.host.engine;
        let name = |role: Role, generation: u32| names::container(self.id, role, generation);
        match action {
            Action::Provision(role, generation) => {
                return self.provision(*role, *generation).await;
            }
            Action::Start(role, generation) => return self.start(*role, *generation).await,
            Action::Restore(role) => self.restore(*role).await?,
            Action::Stop(role, generation) => {
                engine.stop(&name(*role, *generation), self.grace(*role)).await?;
            }
            Action::Remove(role, generation) => {
                let name = name(*role, *generation);
                engine.stop(&name, self.grace(*role)).await?;
                engine.remove_container(&name).await?;
            }
            Action::Clear => self.clear(self.host, self.instance.delete_data).await?,
            Action::Prepare(role) => return self.prepare(*role).await,
            Action::Copy(role) => given_up(self.copy(*role).await)?,
            Action::Arrive => {
                // The volumes stay for a while. An engine that went away meanwhile keeps nobody from arriving.
                if let Err(e) = self.clear(self.host, false).await {
                    tracing::warn!(id = %self.id, error = %e, "an instance that moved left containers behind");
                }
            }
            Action::Forget(engine) => {
                let host = self.world.host(*engine);
                let gone = async { self.clear(&*host?, true).await };
                // It waits for no engine: it tries again later.
                gone.await.map_err(|e| NotDone::Refused(e.to_string()))?;
            }
            Action::BeginRestore(_)
            | Action::Switch(_)
            | Action::Halt
            | Action::BeginCopy(_)
            | Action::Reject(..)
            | Action::Dismiss(_)
            | Action::GiveUp(..)
            | Action::Crashed(..)
            | Action::Wait(_)
            | Action::Rest => {}
        }
        Ok(Done::Executed)
    }

    fn grace(&self, role: Role) -> Duration {
        self.instance.service(role).map_or(Duration::ZERO, Service::grace)
    }

    /// Creates network, volume and image before the container, which refers to all three.
    async fn provision(&self, role: Role, generation: u32) -> Result<Done, NotDone> {
        let ports = &self.world.ports;
        let service = self.instance.service(role);
        let found = service.and_then(|service| Some((service, service.revision(generation)?)));
        let Some((service, revision)) = found else {
            return Err(NotDone::Refused("this service does not exist any more".into()));
        };
        let reference = match image::provide(self.world, self.host, &revision.image).await? {
            Availability::Here(reference) => reference,
            Availability::Building(job) => return Ok(Done::Building(role, generation, job)),
        };
        let Some(_turn) = self.turn().await? else { return Ok(Done::NoTurn) };
        self.ensure_network(self.host).await?;
        let labels = names::of_instance(&ports.site.installation, self.id);
        if revision.template().volume.is_some() {
            let volume = names::volume(self.id, role);
            if self.begins_with_backup() && service.volume == VolumeUse::None {
                // What an earlier stay left there is not what the backup has.
                self.host.engine.remove_volume(&volume).await?;
            }
            let labels = names::of_volume(labels, role);
            self.host.engine.ensure_volume(&volume, &labels).await?;
        }
        let instance = self.instance;
        let spec =
            container_spec::container(ports, self.id, instance, service, revision, &reference);
        let spec = spec.map_err(|e| NotDone::Refused(e.to_string()))?;
        self.host.engine.ensure_container(&spec).await?;
        Ok(Done::Resolved(ResolvedImage { role, generation, reference }))
    }

    /// Whether the backup that it begins with is still to be restored.
    fn begins_with_backup(&self) -> bool {
        self.instance.initial_restore.as_ref().is_some_and(|restore| !restore.begun)
    }

    /// Ensures the network at an engine, and that what is on it reaches only what it may.
    async fn ensure_network(&self, host: &Host) -> Result<(), EngineError> {
        let ports = &self.world.ports;
        let labels = names::of_instance(&ports.site.installation, self.id);
        host.engine.ensure_network(&names::network(self.id), &labels).await
    }

    /// The turn at the engine of the tenant whose instance this is, unless it comes too late.
    async fn turn(&self) -> Result<Option<Turn<Tenant>>, NotDone> {
        let World { store, ports, container_turns, .. } = self.world;
        let tenant = tenant(store, self.instance.app_id)
            .map_err(|fault| NotDone::Unreachable(fault.to_string()))?;
        let turn = ports.clock.limit(AWAITS_TURN, container_turns.take(tenant)).await;
        Ok(turn.and_then(Result::ok))
    }

    /// Starts a container. A stopped container with an outdated configuration is created anew.
    async fn start(&self, role: Role, generation: u32) -> Result<Done, NotDone> {
        let engine = &self.host.engine;
        let name = names::container(self.id, role, generation);
        let observed = self.observation.get(role, generation);
        // A container that was never started is as it was created, also if it waited long for a database.
        let is_as_created =
            observed.is_some_and(|observed| observed.state == ServiceState::Created);
        let mut done = match is_as_created {
            true => Done::Executed,
            false => self.provision(role, generation).await?,
        };
        if matches!(done, Done::Building(..) | Done::NoTurn) {
            return Ok(done);
        }
        let Some(turn) = self.turn().await? else { return Ok(Done::NoTurn) };
        if is_as_created {
            self.ensure_network(self.host).await?;
        }
        // The engine was asked just now, so it is there. The new container may get the port of another one.
        self.host.health.set_back();
        match engine.start(&name).await {
            // The network or volume was removed from outside and created anew. The container still
            // refers to the old one, so it is created anew as well.
            Err(EngineError::Missing(_)) => {
                drop(turn);
                engine.remove_container(&name).await?;
                done = self.provision(role, generation).await?;
                if !matches!(done, Done::Building(..) | Done::NoTurn) {
                    engine.start(&name).await?;
                }
            }
            started => started?,
        }
        Ok(done)
    }

    /// The engine that the instance moves to.
    fn target(&self) -> Result<Arc<Host>, NotDone> {
        let moving = self.instance.moving.as_ref();
        let moving = moving.ok_or_else(|| NotDone::Refused("it is not being moved".into()))?;
        Ok(self.world.host(moving.to)?)
    }

    /// Has the network and the image of a service at the engine that the instance moves to. While the walls there are
    /// raised or the image is built, the move waits, and the instance serves.
    async fn prepare(&self, role: Role) -> Result<Done, NotDone> {
        let target = self.target()?;
        self.ensure_network(&target).await?;
        let Some(service) = self.instance.service(role) else { return Ok(Done::Executed) };
        let live = &service.live;
        Ok(match image::provide(self.world, &target, &live.image).await? {
            Availability::Here(_) => Done::Executed,
            Availability::Building(job) => Done::Building(role, live.generation, job),
        })
    }

    /// Copies the volume of a service, whose container does not run.
    async fn copy(&self, role: Role) -> Result<(), NotDone> {
        let (target, name) = (self.target()?, names::volume(self.id, role));
        let labels = names::of_instance(&self.world.ports.site.installation, self.id);
        // An earlier attempt may have left a part, and an earlier stay there what is old.
        let there = target.engine.inventory(&labels).await?;
        for container in &there.containers {
            target.engine.remove_container(&container.name).await?;
        }
        target.engine.remove_volume(&name).await?;
        let had_data = self.instance.service(role).map(|service| service.volume);
        let content = match self.host.engine.read_volume(&name).await {
            Ok(content) => content,
            // No container ran with it.
            Err(EngineError::Missing(_)) if had_data == Some(VolumeUse::None) => return Ok(()),
            Err(EngineError::Missing(_)) => {
                return Err(NotDone::Refused("its volume with data is gone".into()));
            }
            Err(e) => return Err(e.into()),
        };
        target.engine.ensure_volume(&name, &names::of_volume(labels, role)).await?;
        Ok(target.engine.write_volume(&name, content).await?)
    }

    async fn restore(&self, role: Role) -> Result<(), NotDone> {
        let Executor { id, instance, world, .. } = *self;
        let found = instance.initial_restore.as_ref().zip(instance.service(role));
        let Some((restore, service)) = found else {
            return Err(NotDone::Refused("this database does not exist any more".into()));
        };
        let container = names::container(id, role, service.live.generation);
        let database = RunningDatabase::of(world, id, instance, service, container);
        let database = database.map_err(NotDone::Refused)?;
        database.restore(restore.backup, &restore.sha256, world).await
    }

    /// Removes every object with the instance's label from an engine, including those that the record does not
    /// name; volumes only with the `data`.
    async fn clear(&self, host: &Host, data: bool) -> Result<(), EngineError> {
        let engine = &host.engine;
        let labels = names::of_instance(&self.world.ports.site.installation, self.id);
        let inventory = engine.inventory(&labels).await?;
        for container in &inventory.containers {
            engine.remove_container(&container.name).await?;
        }
        for network in &inventory.networks {
            engine.remove_network(&network.name).await?;
        }
        if data {
            for volume in &inventory.volumes {
                engine.remove_volume(&volume.name).await?;
            }
        }
        Ok(())
    }

    /// The last output of the container that failed.
    async fn output(&self, action: &Action, refused: bool) -> Vec<String> {
        let service = |role: Role| self.instance.service(role);
        let live = |role: Role| service(role).map(|service| (role, service.live.generation));
        let failed = match action {
            Action::GiveUp(role, _) | Action::Crashed(role, _) => live(*role),
            Action::Restore(role) if refused => live(*role),
            Action::Start(role, generation) if refused => Some((*role, *generation)),
            Action::Reject(role, _) => {
                let candidate = service(*role).and_then(|service| service.candidate.as_ref());
                candidate.map(|candidate| (*role, candidate.revision.generation))
            }
            _ => None,
        };
        let Some((role, generation)) = failed else { return Vec::new() };
        let name = names::container(self.id, role, generation);
        let query = LogQuery { tail: KEPT_LINES, since: None, stream: None };
        let lines = self.host.engine.logs(&name, query).await.unwrap_or_default();
        lines.into_iter().map(|line| line.text.chars().take(1000).collect()).collect()
    }
}
