//! An instance as its members see it.

use super::record::{Incarnation, Instance, Part};
use crate::{
    ports::{Site, sealed::Sealer},
    world::World,
};
use contract::{
    InstanceId,
    instances::{self as wire, InstanceKind, Role},
    text::MASK,
};
use std::collections::BTreeMap;

/// An instance as its members see it.
pub(super) fn view(world: &World, id: InstanceId, instance: &Instance) -> wire::Instance {
    let (site, sealer) = (&world.ports.site, &world.ports.sealer);
    let part = |part: &Part| service(site, sealer, id, instance.app_id, instance.kind, part);
    let server = instance.part(Role::Server);
    wire::Instance {
        id,
        app_id: instance.app_id,
        project_id: instance.project_id,
        kind: instance.kind,
        name: instance.name.clone(),
        state: instance.state,
        desired_state: instance.desired,
        url: site.instance_url(id, instance.app_id, instance.kind),
        template_id: instance.template_id,
        template_version: instance.template_version.clone(),
        services: instance.parts.iter().map(part).collect(),
        env: server.map(|part| masked(sealer, id, &part.live)).unwrap_or_default(),
        resources: instance.resources,
        last_error: instance.last_error.clone(),
        last_log: instance.last_log.clone(),
        stale: world.engine_health.is_away(),
        created_at: instance.created_at,
        updated_at: instance.updated_at,
    }
}

fn service(
    site: &Site,
    sealer: &Sealer,
    id: InstanceId,
    app: contract::AppId,
    kind: InstanceKind,
    part: &Part,
) -> wire::Service {
    let (live, role) = (&part.live, part.role());
    let reference = live.image.reference.as_deref();
    wire::Service {
        role,
        image: live.image.name.clone(),
        image_version: live.image.version.clone(),
        image_digest: reference.map(|r| r.rsplit('@').next().unwrap_or(r).to_owned()),
        state: live.state,
        health: live.health,
        port: live.port,
        url: match role {
            Role::Server => Some(site.instance_url(id, app, kind)),
            Role::Dashboard | Role::Storefront => {
                Some(format!("{}/instances/{id}~{}", site.api_url, role.label()))
            }
            Role::DocumentDb | Role::SqlDb => None,
        },
        restarts: part.restarts,
        given_up: part.given_up.as_ref().map(|given_up| given_up.why.clone()),
        env: masked(sealer, id, live),
    }
}

/// What was set, with the values that are secrets masked.
fn masked(sealer: &Sealer, id: InstanceId, live: &Incarnation) -> BTreeMap<String, String> {
    let owner = id.to_string();
    let show = |(name, sealed): (&contract::text::EnvName, _)| {
        let value = sealer.open(&owner, sealed).ok();
        let value = value.filter(|value| !is_secret(name.as_str(), value));
        (name.to_string(), value.unwrap_or_else(|| MASK.to_owned()))
    };
    live.env.iter().map(show).collect()
}

/// Words in the names of variables that hold secrets.
const SECRET_WORDS: [&str; 12] = [
    "SECRET",
    "TOKEN",
    "PASS",
    "PWD",
    "KEY",
    "CREDENTIAL",
    "PRIVATE",
    "SALT",
    "DSN",
    "AUTH",
    "CERT",
    "SIGNING",
];

/// Whether a variable holds a secret, by its name, or because its value is an address with a
/// password in it.
fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let address = value.split_once("://").is_some_and(|(_, rest)| {
        rest.split('/').next().is_some_and(|authority| authority.contains('@'))
    });
    address || SECRET_WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn secrets_are_known_by_name_or_by_what_they_look_like() {
        assert!(is_secret("stripe_api_key", "x") && is_secret("DB_PASSWORD", "x"));
        assert!(is_secret("REDIS_URL", "redis://u:p@host/0"));
        assert!(!is_secret("LOG_LEVEL", "info") && !is_secret("HOME_PAGE", "https://a.example/@b"));
    }
}
