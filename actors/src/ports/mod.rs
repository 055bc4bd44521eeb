//! What the platform needs of the outside world: traits, which the service implements, and values that it
//! passes in, such as the [`site`] and the [`registries`].

pub mod advisories;
pub mod attestations;
pub mod audit_archive;
pub mod binaries;
pub mod certificate_authority;
pub mod ci;
pub mod credentials;
pub mod domain_records;
pub mod dumps;
pub mod egress;
pub mod engines;
pub mod folders;
pub mod identities;
pub mod instance_domain;
pub mod machine;
pub mod mail;
pub mod parse;
pub mod passwords;
pub mod random;
pub mod receivers;
pub mod recipes;
pub mod registries;
pub mod sealed;
pub mod site;
pub mod sources;
#[cfg(feature = "nothing")]
pub mod unavailable;
pub mod upstream;

use self::{
    advisories::Advisories, attestations::Attestations, audit_archive::AuditArchive,
    binaries::Binaries, certificate_authority::CertificateAuthority, ci::Ci,
    credentials::CredentialFiles, domain_records::DomainRecords, dumps::Dumps, egress::Egress,
    engines::Engines, folders::Folders, identities::Identities, machine::Machine, mail::Mail,
    parse::ParseServers, passwords::Passwords, random::Random, receivers::Receivers,
    recipes::Recipes, registries::Registries, sealed::Sealer, site::Site, sources::Sources,
    upstream::Upstream,
};
use crate::runtime::clock::Clock;
use app_stores::AnyStore;
use commerce::Shop;
use container_engine::{Engine, EngineError};
use contract::{checkouts::PaymentProvider, releases::Target};
use payments::Provider;
use std::{collections::HashMap, sync::Arc};

/// Why work in the container engine or with a repository was not done.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// Another attempt would fail too.
    #[error("{0}")]
    Refused(String),
    /// The other side does not answer, or cut the work off. Another attempt may succeed.
    #[error("{0}")]
    Unreachable(String),
}

impl From<EngineError> for NotDone {
    /// Only operators see the reason of an engine that does not answer, in the log: it describes the inside of this
    /// machine.
    fn from(e: EngineError) -> Self {
        let told = match &e {
            EngineError::Unreachable(_) => "the container engine or a registry does not answer",
            EngineError::Exposed(_) => {
                "this machine does not keep containers from what they must not reach"
            }
            e => return NotDone::Refused(e.to_string()),
        };
        tracing::warn!(error = %e, "the container engine did not do its work");
        NotDone::Unreachable(told.to_owned())
    }
}

/// Something outside failed. A retry may help.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PortError(pub String);

/// All ports of the platform.
#[derive(Clone)]
pub struct Ports {
    pub clock: Clock,
    pub random: Random,
    pub passwords: Arc<dyn Passwords>,
    pub binaries: Arc<dyn Binaries>,
    pub mail: Arc<dyn Mail>,
    /// The stores that publish apps.
    pub app_stores: Arc<HashMap<Target, Arc<dyn AnyStore>>>,
    pub credential_files: Arc<dyn CredentialFiles>,
    /// The providers that take payments.
    pub payments: Arc<HashMap<PaymentProvider, Arc<dyn Provider>>>,
    /// The shops in which orders are built.
    pub shop: Arc<dyn Shop>,
    /// The engine of the settings.
    pub engine: Arc<dyn Engine>,
    /// Makes connections to the engines that operators add.
    pub engines: Arc<dyn Engines>,
    pub machine: Arc<dyn Machine>,
    pub upstream: Arc<dyn Upstream>,
    pub parse: Arc<dyn ParseServers>,
    pub sources: Arc<dyn Sources>,
    pub folders: Arc<dyn Folders>,
    pub audit_archive: Arc<dyn AuditArchive>,
    /// `None`: the service is not registered as an application at a host of repositories.
    pub ci: Option<Arc<dyn Ci>>,
    pub identities: Arc<dyn Identities>,
    pub attestations: Arc<dyn Attestations>,
    /// `None`: the service does not serve TLS, so it needs no certificates.
    pub certificates: Option<Arc<dyn CertificateAuthority>>,
    pub domain_records: Arc<dyn DomainRecords>,
    pub dumps: Arc<dyn Dumps>,
    pub egress: Arc<dyn Egress>,
    pub receivers: Arc<dyn Receivers>,
    pub registries: Arc<Registries>,
    pub recipes: Arc<Recipes>,
    pub advisories: Arc<Advisories>,
    pub sealer: Sealer,
    pub site: Arc<Site>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_nothing_of_the_inside_of_this_machine() {
        let inside = "/run/docker.sock: no such file; 10.0.0.7 answers".to_owned();
        for e in [EngineError::Unreachable(inside.clone()), EngineError::Exposed(inside.clone())] {
            let told = NotDone::from(e);
            assert!(
                matches!(&told, NotDone::Unreachable(why) if !why.contains(['/', '7'])),
                "{told}"
            );
        }
    }
}
