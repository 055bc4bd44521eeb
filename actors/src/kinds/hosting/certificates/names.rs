//! Which host names lead to this server, and which certificate each has.

use crate::{
    kinds::{
        hosting::{domains, instances::exists},
        world::World,
    },
    ports::site::Site,
};
use contract::{CertificateId, Fault, Id, certificates::HostName};
use sha2::{Digest, Sha256};
use ulid::Ulid;

/// What stands before the domain in the name of a certificate for all names below it.
const ANY: &str = "*.";

/// Whether a host name leads to something of this server. Answers from an index: scanners ask for any name.
pub fn is_known(world: &World, host: &str) -> Result<bool, Fault> {
    let site = &world.ports.site;
    let domain = site.instance_domain.as_ref();
    if let Some(below) = host.strip_prefix(ANY) {
        return Ok(domain.is_some_and(|domain| domain.name == below));
    }
    if let Some(target) = domain.and_then(|domain| domain.target(host)) {
        return exists(&world.store, &target);
    }
    let is_own = site.own_hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
    Ok(is_own || domains::target_of(&world.store, host)?.is_some())
}

/// The name of the certificate that a host name is served with. All names below the domain of instances
/// share one where the authority issues such certificates.
pub fn certificate_name(site: &Site, host: HostName, has_wildcards: bool) -> HostName {
    let domain = site.instance_domain.as_ref().filter(|_| has_wildcards);
    let shared = domain
        .filter(|domain| domain.target(host.as_str()).is_some_and(|target| !target.is_empty()))
        .and_then(|domain| format!("{ANY}{}", domain.name).parse().ok());
    shared.unwrap_or(host)
}

/// The id of the certificate of a name. It is always the same, so that there is one for each name.
pub fn id_of(name: &HostName) -> CertificateId {
    let digest = Sha256::digest(name.as_str());
    let unique = digest.iter().take(16).fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
    CertificateId::of(Ulid(unique))
}
