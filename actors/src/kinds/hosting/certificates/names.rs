//! Which host names lead to this server, and which certificate each has.

use crate::{
    kinds::{
        hosting::{
            domains,
            instances::{exists, find},
        },
        people::{projects::Projects, tenant},
        world::World,
    },
    ports::site::Site,
    runtime::{store::get, turns::Tenant},
};
use contract::{CertificateId, Fault, Id, certificates::HostName};
use sha2::{Digest, Sha256};
use ulid::Ulid;

/// What stands before the domain in the name of a certificate for all names below it.
const ANY: &str = "*.";

/// Whether a host name leads to something of this server. Answers from an index: scanners ask for any name.
pub fn is_known(world: &World, host: &str) -> Result<bool, Fault> {
    let site = &world.ports.site;
    if let Some(below) = host.strip_prefix(ANY) {
        return Ok(site.instance_domain.as_ref().is_some_and(|domain| domain.name == below));
    }
    if is_own(site, host) {
        return Ok(true);
    }
    match target_of(world, host)? {
        Some(target) => exists(&world.store, &target),
        None => Ok(false),
    }
}

/// Whether a host name is one of the service and its dashboard, or stands for all names of instances.
pub fn is_own(site: &Site, host: &str) -> bool {
    host.starts_with(ANY) || site.own_hosts.iter().any(|own| own.eq_ignore_ascii_case(host))
}

/// The names of the certificates that are the server's own, and no tenant's.
pub fn own_names(site: &Site) -> impl Iterator<Item = HostName> {
    let all_instances = site.instance_domain.iter().map(|domain| format!("{ANY}{}", domain.name));
    let own = site.own_hosts.iter().cloned().chain(all_instances);
    own.filter_map(|name| name.parse().ok())
}

/// What a host leads to, as paths name it, if that is an instance or would be one. `host` may have a port.
/// Reads the store only for a host that may be the domain of an app.
pub fn target_of(world: &World, host: &str) -> Result<Option<String>, Fault> {
    let site = &world.ports.site;
    if let Some(target) = site.instance_domain.as_ref().and_then(|domain| domain.target(host)) {
        return Ok(Some(target));
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_address = !name.bytes().any(|b| b.is_ascii_alphabetic());
    match is_address || name.eq_ignore_ascii_case("localhost") || is_own(site, name) {
        true => Ok(None),
        false => domains::target_of(&world.store, name),
    }
}

/// For whom the certificate of a name is obtained.
pub(super) fn tenant_of(world: &World, name: &HostName) -> Result<Tenant, Fault> {
    if is_own(&world.ports.site, name.as_str()) {
        return Ok(Tenant::Service);
    }
    let target = target_of(world, name.as_str())?.unwrap_or_default();
    let (_, _, instance) = find(&world.store, &target)?;
    let project = get::<Projects>(&world.store, instance.project_id)?;
    tenant::tenant_of(&world.store, project.organization_id)
}

/// The name of the certificate that a host name is served with. All names below the domain of instances
/// share one where the authority issues such certificates.
pub fn certificate_name(site: &Site, host: &HostName, has_wildcards: bool) -> HostName {
    let domain = site.instance_domain.as_ref().filter(|_| has_wildcards);
    let shared = domain
        .filter(|domain| domain.target(host.as_str()).is_some_and(|target| !target.is_empty()))
        .and_then(|domain| format!("{ANY}{}", domain.name).parse().ok());
    shared.unwrap_or_else(|| host.clone())
}

/// The id of the certificate of a name. It is always the same, so that there is one for each name.
pub fn id_of(name: &HostName) -> CertificateId {
    let digest = Sha256::digest(name.as_str());
    let unique = digest.iter().take(16).fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
    CertificateId::of(Ulid(unique))
}
