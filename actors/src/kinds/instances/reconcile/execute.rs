//! What an instance does outside of its record: it looks at its containers, and does one thing.

use crate::{
    kinds::{
        images,
        instances::{
            container_spec, names,
            reconcile::plan::{Act, Look, Seen, plan},
            record::{Incarnation, Instance, Part, Source},
            rules::{Instances, Outcome},
        },
    },
    runtime::resource::{Kept, Retry},
    world::World,
};
use container_engine::{Container, EngineError, Health, LogQuery, Phase};
use contract::{
    InstanceId,
    instances::{InstanceState, Role, ServiceHealth, ServiceState},
    templates::HealthCheck,
};
use std::{sync::Arc, time::Duration};

/// How long a health check over HTTP may take.
const PROBE_WITHIN: Duration = Duration::from_secs(3);
/// How often one of an instance that was well is tried before it counts as failed.
const PROBES: u32 = 3;
/// How much of the output of what failed is kept.
const KEPT_LINES: u32 = 200;

pub(in crate::kinds::instances) async fn reconcile(
    id: InstanceId,
    kept: Arc<Kept<Instances>>,
    world: Arc<World>,
) -> Result<Outcome, Retry> {
    let work = Work { id, instance: &kept.state, world: &world };
    let look = match work.look().await {
        Ok(look) => look,
        Err(e) => return Ok(Outcome::Away(e.to_string())),
    };
    let act = plan(work.instance, &look, world.ports.clock.now());
    let done = match work.perform(&act).await {
        Ok(settled) => Ok(settled),
        Err(EngineError::Away(why)) => return Ok(Outcome::Away(why)),
        Err(e) => Err(e.to_string()),
    };
    let log = work.output(&act, done.is_err()).await;
    Ok(Outcome::Looked { look, act, done, log })
}

struct Work<'a> {
    id: InstanceId,
    instance: &'a Instance,
    world: &'a World,
}

impl Work<'_> {
    /// Looks at every container that the record knows of.
    async fn look(&self) -> Result<Look, EngineError> {
        let mut look = Look::default();
        for part in &self.instance.parts {
            let candidate = part.candidate.as_ref().map(|candidate| candidate.next.generation);
            let retired = part.retired.iter().map(|retired| retired.generation);
            for generation in [part.live.generation].into_iter().chain(candidate).chain(retired) {
                if let Some(seen) = self.look_at(part, generation).await? {
                    look.containers.insert((part.role(), generation), seen);
                }
            }
        }
        Ok(look)
    }

    async fn look_at(&self, part: &Part, generation: u32) -> Result<Option<Seen>, EngineError> {
        let name = names::container(self.id, part.role(), generation);
        let found = self.world.ports.engine.container(&name).await?;
        let Some(container) = found.filter(|found| self.is_ours(found)) else { return Ok(None) };
        // Of one that served before nobody asks whether it is well.
        let made = self.incarnation(part.role(), generation);
        let check = made.and_then(|(_, made)| made.service().health_check.as_ref());
        let health = match check {
            _ if !container.is_running() => ServiceHealth::Unknown,
            None => ServiceHealth::Healthy,
            Some(HealthCheck::Command(_)) => match container.health {
                Some(Health::Healthy) => ServiceHealth::Healthy,
                Some(Health::Unhealthy) => ServiceHealth::Unhealthy,
                Some(Health::Starting) | None => ServiceHealth::Starting,
            },
            Some(HealthCheck::Http(path)) => self.probe(container.port, path.as_str()).await,
        };
        let (state, ending) = match container.phase {
            Phase::Created => (ServiceState::Created, None),
            Phase::Running => (ServiceState::Running, None),
            Phase::Between => (ServiceState::Missing, None),
            Phase::Exited { code, out_of_memory } => {
                (ServiceState::Exited, Some(ending(code, out_of_memory)))
            }
        };
        let (port, started_at) = (container.port, container.started_at);
        Ok(Some(Seen { state, health, port, started_at, ending }))
    }

    /// One under our name that is not ours is none of ours: making our own will be refused.
    fn is_ours(&self, container: &Container) -> bool {
        container.labels.get(names::INSTANCE).is_some_and(|owner| *owner == self.id.to_string())
    }

    /// What was well is asked more than once before it counts as not well.
    async fn probe(&self, port: Option<u16>, path: &str) -> ServiceHealth {
        let Some(port) = port else { return ServiceHealth::Starting };
        let was_up =
            matches!(self.instance.state, InstanceState::Running | InstanceState::Degraded);
        for _ in 0..if was_up { PROBES } else { 1 } {
            if self.world.ports.upstream.is_well(port, path, PROBE_WITHIN).await {
                return ServiceHealth::Healthy;
            }
        }
        if was_up { ServiceHealth::Unhealthy } else { ServiceHealth::Starting }
    }

    /// Does it. What comes of it is the image that was settled by it, if one was.
    async fn perform(&self, act: &Act) -> Result<Option<(Role, u32, String)>, EngineError> {
        let engine = &self.world.ports.engine;
        match act {
            Act::Provision(role, generation) => {
                let reference = self.provision(*role, *generation).await?;
                return Ok(Some((*role, *generation, reference)));
            }
            Act::Start(role, generation) => self.start(*role, *generation).await?,
            Act::Stop(role, generation) => {
                let name = names::container(self.id, *role, *generation);
                engine.stop(&name, self.grace(*role)).await?;
            }
            Act::Remove(role, generation) => {
                let name = names::container(self.id, *role, *generation);
                engine.stop(&name, self.grace(*role)).await?;
                engine.remove_container(&name).await?;
            }
            Act::Clear => self.clear().await?,
            Act::Switch(_)
            | Act::Reject(..)
            | Act::Dismiss(_)
            | Act::GiveUp(..)
            | Act::Crashed(..)
            | Act::Wait(_)
            | Act::Rest => {}
        }
        Ok(None)
    }

    fn grace(&self, role: Role) -> Duration {
        self.instance.part(role).map_or(Duration::ZERO, Part::grace)
    }

    fn incarnation(&self, role: Role, generation: u32) -> Option<(&Part, &Incarnation)> {
        let part = self.instance.part(role)?;
        let candidate = part.candidate.as_ref().map(|candidate| &candidate.next);
        let all = [Some(&part.live), candidate];
        let found = all.into_iter().flatten().find(|i| i.generation == generation)?;
        Some((part, found))
    }

    /// Network, volume, image, container, in this order: what is made last names all the others.
    async fn provision(&self, role: Role, generation: u32) -> Result<String, EngineError> {
        let engine = &self.world.ports.engine;
        let Some((part, incarnation)) = self.incarnation(role, generation) else {
            return Err(EngineError::Refused("this service is not there any more".into()));
        };
        let labels = names::of_instance(&self.world.ports.site.installation, self.id);
        engine.ensure_network(&names::network(self.id), &labels).await?;
        if incarnation.service().volume.is_some() {
            let mut labels = labels.clone();
            labels.insert(names::ROLE.into(), role.label().into());
            engine.ensure_volume(&names::volume(self.id, role), &labels).await?;
        }
        let reference = self.settle(&incarnation.image).await?;
        let login = self.world.ports.registries.login(&reference);
        engine.ensure_image(&reference, login).await?;
        engine.ensure_container(&self.spec(part, incarnation, &reference)?).await?;
        Ok(reference)
    }

    fn spec(
        &self,
        part: &Part,
        incarnation: &Incarnation,
        image: &str,
    ) -> Result<container_engine::ContainerSpec, EngineError> {
        let ports = &self.world.ports;
        container_spec::container(ports, self.id, self.instance, part, incarnation, image)
            .map_err(|e| EngineError::Refused(e.to_string()))
    }

    /// The reference that names the image of a container for ever.
    async fn settle(&self, source: &Source) -> Result<String, EngineError> {
        if let Some(reference) = &source.reference {
            return Ok(reference.clone());
        }
        let missing = |why: &str| EngineError::NoImage {
            image: format!("{} {}", source.name, source.version),
            why: why.to_owned(),
        };
        let id = source.image_id.ok_or_else(|| missing("nobody built it"))?;
        images::settle(self.world, id, &source.version).await
    }

    /// The container is as the record says when it starts; one of an earlier configuration, which
    /// does not run, is made anew.
    async fn start(&self, role: Role, generation: u32) -> Result<(), EngineError> {
        let engine = &self.world.ports.engine;
        let name = names::container(self.id, role, generation);
        self.provision(role, generation).await?;
        match engine.start(&name).await {
            // what it hangs from was removed behind our back, and made anew: so is the container
            Err(EngineError::Missing(_)) => {
                engine.remove_container(&name).await?;
                self.provision(role, generation).await?;
                engine.start(&name).await
            }
            started => started,
        }
    }

    /// Everything that carries the instance's label, those of no record included.
    async fn clear(&self) -> Result<(), EngineError> {
        let engine = &self.world.ports.engine;
        let labels = names::of_instance(&self.world.ports.site.installation, self.id);
        let there = engine.inventory(&labels).await?;
        for container in &there.containers {
            engine.remove_container(&container.name).await?;
        }
        for network in &there.networks {
            engine.remove_network(&network.name).await?;
        }
        if self.instance.delete_data {
            for volume in &there.volumes {
                engine.remove_volume(&volume.name).await?;
            }
        }
        Ok(())
    }

    /// The last output of what failed.
    async fn output(&self, act: &Act, refused: bool) -> Vec<String> {
        let live = |role: Role| self.instance.part(role).map(|part| part.live.generation);
        let found = match act {
            Act::GiveUp(role, _) | Act::Crashed(role, _) => live(*role).map(|g| (*role, g)),
            Act::Start(role, generation) if refused => Some((*role, *generation)),
            Act::Reject(role, _) => {
                let part = self.instance.part(*role);
                let candidate = part.and_then(|part| part.candidate.as_ref());
                candidate.map(|candidate| (*role, candidate.next.generation))
            }
            _ => None,
        };
        let Some((role, generation)) = found else { return Vec::new() };
        let name = names::container(self.id, role, generation);
        let query = LogQuery { tail: KEPT_LINES, since: None, stream: None };
        let lines = self.world.ports.engine.logs(&name, query).await.unwrap_or_default();
        lines.into_iter().map(|line| line.text.chars().take(1000).collect()).collect()
    }
}

/// How a container ended, in words.
fn ending(code: Option<i64>, out_of_memory: bool) -> String {
    match code {
        _ if out_of_memory => "ran out of memory".into(),
        Some(0) => "ended by itself with code 0".into(),
        Some(137) => "was killed".into(),
        Some(code) => format!("failed with code {code}"),
        None => "ended".into(),
    }
}
