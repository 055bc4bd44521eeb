//! The specification of a revision's container: the template, the instance's secrets and the
//! caller's variables, in the engine's terms.

use super::{
    record::Instance,
    service::{Revision, Service},
};
use crate::{
    kinds::hosting::{
        names,
        templates::placeholder::{Placeholder, fill},
    },
    ports::{
        Ports,
        sealed::{SealError, Sealer},
        site::Site,
    },
    runtime::uses::Uses,
};
use container_engine::{Capability, ContainerSpec, HealthCommand, Limits, Mount};
use contract::{
    InstanceId,
    instances::Role,
    quotas::Quota,
    templates::{HealthCheck, TemplateService},
    text::{EnvName, EnvValue},
};
use std::{collections::BTreeMap, time::Duration};

/// The memory limit of a service whose template sets none.
const MEMORY_MB: u32 = 512;
/// The limit of processes and threads of one container.
const PIDS: u32 = 512;
/// The in-memory folders of a service whose template names none.
const SCRATCH: [&str; 2] = ["/tmp", "/run"];

pub fn container(
    ports: &Ports,
    id: InstanceId,
    instance: &Instance,
    service: &Service,
    revision: &Revision,
    image: &str,
) -> Result<ContainerSpec, SealError> {
    let (site, sealer) = (&ports.site, &ports.sealer);
    let (template, role) = (revision.template(), service.role);
    let scratch = match &template.scratch {
        Some(folders) => folders.iter().map(ToString::to_string).collect(),
        None => SCRATCH.map(str::to_owned).to_vec(),
    };
    let mount = |path: &contract::text::ContainerPath| Mount {
        volume: names::volume(id, role),
        path: path.to_string(),
    };
    Ok(ContainerSpec {
        name: names::container(id, role, revision.generation),
        image: image.to_owned(),
        command: template.command.as_ref().map(|c| c.iter().map(ToString::to_string).collect()),
        env: environment(site, sealer, id, instance, revision)?,
        network: names::network(id),
        alias: role.label().to_owned(),
        port: template.port,
        mounts: template.volume.iter().map(mount).collect(),
        scratch,
        read_only: !template.writable,
        user: None,
        capabilities: if role.is_database() { DATABASE_CAPABILITIES.to_vec() } else { vec![] },
        limits: limits(instance, template),
        health: health(template.health_check.as_ref()),
        grace: service.grace(),
        labels: names::of_container(&site.installation, id, role, revision.generation),
    })
}

/// The entry point of a database changes the owner of its files and switches to another user. The
/// init process must be able to signal that user's processes, or the database would be killed when
/// it stops.
const DATABASE_CAPABILITIES: [Capability; 6] = [
    Capability::Chown,
    Capability::DacOverride,
    Capability::Fowner,
    Capability::Kill,
    Capability::SetGid,
    Capability::SetUid,
];

/// What an instance counts as holding on the disk until it is measured: an empty database.
pub const UNMEASURED_BYTES: u64 = 128 << 20;

/// What an instance and the containers of its services take of the quotas.
pub(super) fn uses(instance: &Instance) -> Uses {
    let uses = Uses::one(Quota::Instances).and_all(&uses_of_disk(instance));
    instance.services.iter().fold(uses, |uses, service| {
        let limits = limits(instance, service.live.template());
        uses.and(Quota::InstanceMemory, limits.memory)
            .and(Quota::InstanceCpus, limits.cpu_millis.into())
    })
}

/// What an instance takes of the disk, also a deleted one whose data is kept.
pub(super) fn uses_of_disk(instance: &Instance) -> Uses {
    Uses::default().and(Quota::InstanceDisk, instance.disk_bytes.unwrap_or(UNMEASURED_BYTES))
}

fn limits(instance: &Instance, template: &TemplateService) -> Limits {
    let (memory_mb, cpus) = match template.role {
        Role::Server => (instance.resources.memory_mb, instance.resources.cpus),
        _ => (template.memory_mb.unwrap_or(MEMORY_MB), 1.0),
    };
    // From 0.1 to 64 processors, so the cast is exact.
    let cpu_millis = (cpus * 1000.0).round() as u32;
    Limits { memory: u64::from(memory_mb) << 20, cpu_millis, pids: PIDS }
}

/// The engine runs health checks that are commands. HTTP checks are ours.
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

/// The variables of a revision. The caller's take precedence over the template's defaults, and the
/// template's own over both.
pub(crate) fn environment(
    site: &Site,
    sealer: &Sealer,
    id: InstanceId,
    instance: &Instance,
    revision: &Revision,
) -> Result<BTreeMap<String, String>, SealError> {
    let owner = id.to_string();
    let secrets = open_all(sealer, &owner, &instance.secrets)?;
    let filled = |(name, value): (&EnvName, &EnvValue)| {
        let value = fill(value.as_str(), |placeholder| match placeholder {
            Placeholder::Secret(name) => secrets.get(*name).cloned(),
            Placeholder::InstanceId => Some(owner.clone()),
            Placeholder::AppId => Some(instance.app_id.to_string()),
            Placeholder::Url(role) => {
                Some(site.service_url((id, instance.kind), instance.app_id, *role))
            }
            Placeholder::ServiceUrl => Some(site.functions_url()),
            Placeholder::ApplicationId => Some(site.installation.clone()),
        });
        (name.to_string(), value)
    };
    let template = revision.template();
    let mut env: BTreeMap<_, _> = template.default_env.iter().map(filled).collect();
    for (name, sealed) in &revision.env {
        env.insert(name.to_string(), sealer.open(&owner, sealed)?);
    }
    env.extend(template.env.iter().map(filled));
    Ok(env)
}

pub fn secret(
    sealer: &Sealer,
    id: InstanceId,
    instance: &Instance,
    name: &str,
) -> Result<Option<String>, SealError> {
    let sealed = instance.secrets.get(name);
    sealed.map(|sealed| sealer.open(&id.to_string(), sealed)).transpose()
}

pub(crate) fn open_all(
    sealer: &Sealer,
    owner: &str,
    secrets: &BTreeMap<String, crate::ports::sealed::Sealed>,
) -> Result<BTreeMap<String, String>, SealError> {
    let open = |(name, sealed): (&String, _)| Ok((name.clone(), sealer.open(owner, sealed)?));
    secrets.iter().map(open).collect()
}
