//! What an operator lets builds and instances reach of the inside.

use super::Reach;
use actors::ports::egress::Reached;
use container_engine::PROXY_PORT;
use contract::OrganizationId;
use futures_util::future::join_all;
use remote::PrivateHosts;
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

/// Hosts with their ports.
type Hosts = Vec<(String, u16)>;

/// What an operator allows.
#[derive(Debug, Default)]
pub struct Allowed {
    /// All builds reach these.
    pub builds: Hosts,
    /// All instances reach these. `None`: they reach all that this machine reaches.
    pub instances: Option<Hosts>,
    /// The builds and the instances of an organization reach these.
    pub organizations: Vec<(OrganizationId, (String, u16))>,
}

/// The exceptions, with the addresses that were last found.
pub(super) struct Exceptions {
    builds: Hosts,
    by_organization: BTreeMap<OrganizationId, Hosts>,
    instances: Option<(Reach, Vec<(OrganizationId, Reach)>)>,
}

impl Exceptions {
    /// Fails if they name the port at which a build finds its own proxy.
    pub fn of(allowed: Allowed) -> io::Result<Exceptions> {
        let Allowed { builds, instances, organizations } = allowed;
        let of_organizations = organizations.iter().map(|(_, host)| host);
        let proxy = ("127.0.0.1".to_owned(), PROXY_PORT);
        if builds.iter().chain(of_organizations).any(|host| *host == proxy) {
            return Err(io::Error::other(format!(
                "port {PROXY_PORT} of 127.0.0.1 is that of the proxy in a build; let what \
                 SVC_BUILD_PRIVATE_HOSTS or SVC_ORGANIZATION_PRIVATE_HOSTS names there listen on another one"
            )));
        }
        let mut by_organization = BTreeMap::<OrganizationId, Hosts>::new();
        for (organization, host) in organizations {
            by_organization.entry(organization).or_default().push(host);
        }
        let instances = instances.map(|of_all| {
            let of_one = by_organization.iter().map(|(of, hosts)| (*of, Reach::new(hosts.clone())));
            (Reach::new(of_all), of_one.collect())
        });
        Ok(Exceptions { builds, by_organization, instances })
    }

    /// What builds of an organization reach, or those of the service itself.
    pub fn of_builds(&self, organization: Option<OrganizationId>) -> PrivateHosts {
        let own = organization.and_then(|organization| self.by_organization.get(&organization));
        let all: BTreeSet<_> = self.builds.iter().chain(own.into_iter().flatten()).collect();
        all.into_iter().cloned().collect::<Hosts>().into()
    }

    /// What instances reach, as it is now. `None`: all that this machine reaches.
    pub async fn of_instances(&self) -> Option<Reached> {
        let (all, organizations) = self.instances.as_ref()?;
        let found = organizations.iter().map(async |(of, reach)| (*of, reach.addresses().await));
        Some(Reached {
            by_all: all.addresses().await,
            by_organization: join_all(found).await.into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_organization_reaches_what_is_allowed_to_it_and_to_all() {
        let host = |at: &str, port| (at.to_owned(), port);
        let organization = |id: &str| id.parse::<OrganizationId>().unwrap();
        let one = organization("org_01K4R8Z3V7Q2M5N6P9T0W1X2Y3");
        let other = organization("org_01K4R8Z3V7Q2M5N6P9T0W1X2Y4");
        let allowed = Allowed {
            builds: vec![host("127.0.0.2", 1)],
            instances: Some(vec![host("127.0.0.3", 2)]),
            organizations: vec![(one, host("127.0.0.4", 3)), (one, host("127.0.0.5", 4))],
        };
        let exceptions = Exceptions::of(allowed).unwrap();
        let may = |of, at: &str, port| exceptions.of_builds(of).contains(at, port);
        for (at, port) in [("127.0.0.2", 1), ("127.0.0.4", 3), ("127.0.0.5", 4)] {
            assert!(may(Some(one), at, port), "{at}");
            assert_eq!(may(Some(other), at, port), port == 1, "{at}");
            assert_eq!(may(None, at, port), port == 1, "{at}");
        }
        assert!(!may(Some(one), "127.0.0.3", 2), "that is for instances");
        let at = |all: &[&str]| all.iter().map(|at| at.parse().unwrap()).collect();
        assert_eq!(
            exceptions.of_instances().await.unwrap(),
            Reached {
                by_all: at(&["127.0.0.3:2"]),
                by_organization: [(one, at(&["127.0.0.4:3", "127.0.0.5:4"]))].into(),
            }
        );
        let proxy = vec![(one, host("127.0.0.1", PROXY_PORT))];
        let refused = Exceptions::of(Allowed { organizations: proxy, ..Allowed::default() });
        assert!(refused.err().unwrap().to_string().contains("listen on another one"));
    }
}
