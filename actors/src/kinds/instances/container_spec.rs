//! What a container of an instance is to be: the template's words, the instance's secrets, and what
//! was set for it, in the engine's terms.

use super::{
    names,
    record::{Incarnation, Instance, Part},
};
use crate::{
    kinds::templates::placeholder::{Placeholder, fill},
    ports::{
        Ports, Site,
        sealed::{SealError, Sealer},
    },
};
use container_engine::{Capability, ContainerSpec, HealthCommand, Limits, Mount};
use contract::{
    InstanceId,
    instances::Role,
    templates::{HealthCheck, TemplateService},
};
use std::{collections::BTreeMap, time::Duration};

/// What a service may use where neither template nor caller says.
const MEMORY_MB: u32 = 512;
/// Processes and threads of one container.
const PIDS: u32 = 512;
/// Folders in memory where the template names none.
const SCRATCH: [&str; 2] = ["/tmp", "/run"];

/// What the container of this incarnation is to be, of this image.
pub fn container(
    ports: &Ports,
    id: InstanceId,
    instance: &Instance,
    part: &Part,
    incarnation: &Incarnation,
    image: &str,
) -> Result<ContainerSpec, SealError> {
    let (site, sealer) = (&ports.site, &ports.sealer);
    let (service, role) = (incarnation.service(), part.role());
    let scratch = match &service.scratch {
        Some(folders) => folders.iter().map(ToString::to_string).collect(),
        None => SCRATCH.map(str::to_owned).to_vec(),
    };
    let mount = |path: &contract::text::ContainerPath| Mount {
        volume: names::volume(id, role),
        path: path.to_string(),
    };
    Ok(ContainerSpec {
        name: names::container(id, role, incarnation.generation),
        image: image.to_owned(),
        command: service.command.as_ref().map(|c| c.iter().map(ToString::to_string).collect()),
        env: environment(site, sealer, id, instance, incarnation)?,
        network: names::network(id),
        alias: role.label().to_owned(),
        port: service.port,
        mounts: service.volume.iter().map(mount).collect(),
        scratch,
        read_only: !service.writable,
        user: None,
        capabilities: if role.is_database() { DATABASE_CAPABILITIES.to_vec() } else { vec![] },
        limits: limits(instance, service),
        health: health(service.health_check.as_ref()),
        grace: part.grace(),
        labels: names::of_container(&site.installation, id, role, incarnation.generation),
    })
}

/// The entry points of databases give their files to the user that they run as; and the init process
/// passes the wish to end on to that user's processes, or the database would be killed.
const DATABASE_CAPABILITIES: [Capability; 6] = [
    Capability::Chown,
    Capability::DacOverride,
    Capability::Fowner,
    Capability::Kill,
    Capability::SetGid,
    Capability::SetUid,
];

fn limits(instance: &Instance, service: &TemplateService) -> Limits {
    let (memory_mb, cpus) = match service.role {
        Role::Server => (instance.resources.memory_mb, instance.resources.cpus),
        _ => (service.memory_mb.unwrap_or(MEMORY_MB), 1.0),
    };
    // Between 0.1 and 64, so it fits.
    let cpu_millis = (cpus * 1000.0).round() as u32;
    Limits { memory: u64::from(memory_mb) << 20, cpu_millis, pids: PIDS }
}

/// Checks over HTTP are done from outside.
fn health(check: Option<&HealthCheck>) -> Option<HealthCommand> {
    let Some(HealthCheck::Command(command)) = check else { return None };
    Some(HealthCommand {
        command: command.iter().map(ToString::to_string).collect(),
        interval: Duration::from_secs(2),
        timeout: Duration::from_secs(5),
        retries: 3,
        start_period: Duration::from_secs(120),
    })
}

/// What was set for it stands beside what the template says, and never in its place.
pub(super) fn environment(
    site: &Site,
    sealer: &Sealer,
    id: InstanceId,
    instance: &Instance,
    incarnation: &Incarnation,
) -> Result<BTreeMap<String, String>, SealError> {
    let owner = id.to_string();
    let secrets = open_all(sealer, &owner, &instance.secrets)?;
    let mut env = BTreeMap::new();
    for (name, sealed) in &incarnation.env {
        env.insert(name.to_string(), sealer.open(&owner, sealed)?);
    }
    for (name, value) in incarnation.service().env.iter() {
        let value = fill(value.as_str(), |placeholder| match placeholder {
            Placeholder::Secret(name) => secrets.get(*name).cloned(),
            Placeholder::InstanceId => Some(owner.clone()),
            Placeholder::AppId => Some(instance.app_id.to_string()),
            Placeholder::Url => Some(site.instance_url(id, instance.app_id, instance.kind)),
        });
        env.insert(name.to_string(), value);
    }
    Ok(env)
}

/// One secret of an instance, opened.
pub fn secret(
    sealer: &Sealer,
    id: InstanceId,
    instance: &Instance,
    name: &str,
) -> Result<Option<String>, SealError> {
    let sealed = instance.secrets.get(name);
    sealed.map(|sealed| sealer.open(&id.to_string(), sealed)).transpose()
}

/// All secrets of an instance, opened.
pub(super) fn open_all(
    sealer: &Sealer,
    owner: &str,
    secrets: &BTreeMap<String, crate::ports::sealed::Sealed>,
) -> Result<BTreeMap<String, String>, SealError> {
    let open = |(name, sealed): (&String, _)| Ok((name.clone(), sealer.open(owner, sealed)?));
    secrets.iter().map(open).collect()
}
