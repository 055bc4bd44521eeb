//! An instance as members see it.

use super::{
    record::Instance,
    service::{Revision, Service, VolumeUse},
};
use crate::{kinds::world::World, ports::sealed::Sealer};
use contract::{
    InstanceId,
    instances::{self as wire, Role},
    text::{EnvName, MASK},
};
use std::collections::BTreeMap;

pub(crate) fn view(world: &World, id: InstanceId, instance: &Instance) -> wire::Instance {
    let sealer = &world.ports.sealer;
    let url_of = |role| world.ports.site.service_url((id, instance.kind), instance.app_id, role);
    let service = |service: &Service| {
        let (state, health) = service.shown();
        wire::Service {
            role: service.role,
            image: service.live.image.name.clone(),
            image_version: service.live.image.version.clone(),
            image_digest: service.live.image.digest().map(str::to_owned),
            state,
            health,
            port: service.live.port,
            url: match service.role {
                role @ (Role::Server | Role::Dashboard | Role::Storefront) => Some(url_of(role)),
                Role::DocumentDb | Role::SqlDb => None,
            },
            restarts: service.restarts,
            volume_gone: service.volume == VolumeUse::Gone,
            given_up: service.rejected.as_ref().map(|rejected| rejected.why.clone()),
            outdated: service.live.image.outdated(world),
            env: masked(sealer, id, &service.live),
        }
    };
    // A revision that did not come up beside the one that serves has a log, too.
    let rejected = instance.services.iter().filter_map(|service| service.rejected.as_ref());
    let mut logs =
        std::iter::once(&instance.last_log).chain(rejected.map(|revision| &revision.log));
    let last_log = logs.find(|log| !log.is_empty()).cloned().unwrap_or_default();
    let server = instance.service(Role::Server);
    wire::Instance {
        id,
        app_id: instance.app_id,
        project_id: instance.project_id,
        kind: instance.kind,
        name: instance.name.clone(),
        state: instance.state,
        desired_state: instance.desired,
        template_id: instance.template_id,
        template_version: instance.template_version.clone(),
        services: instance.services.iter().map(service).collect(),
        env: server.map(|server| masked(sealer, id, &server.live)).unwrap_or_default(),
        resources: instance.resources,
        disk_bytes: instance.disk_bytes,
        from_backup_id: instance.initial_restore.as_ref().map(|restore| restore.backup),
        last_error: instance.why_held().or_else(|| instance.last_error.clone()),
        last_log,
        stale: world.host(instance.engine).is_ok_and(|host| host.health.is_unreachable()),
        created_at: instance.created_at,
        updated_at: instance.updated_at,
        url: url_of(Role::Server),
    }
}

/// The variables that callers set. Only those that the template declares plain are shown.
fn masked(sealer: &Sealer, id: InstanceId, live: &Revision) -> BTreeMap<String, String> {
    let owner = id.to_string();
    let plain = &live.template().plain_env;
    let show = |(name, sealed): (&EnvName, _)| {
        let value = sealer.open(&owner, sealed).ok().filter(|_| plain.contains(name));
        (name.to_string(), value.unwrap_or_else(|| MASK.to_owned()))
    };
    live.env.iter().map(show).collect()
}
