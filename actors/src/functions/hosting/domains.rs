//! The handlers of the group Domains.

use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        hosting::{
            certificates::{self, Certificates, id_of, is_own},
            domains::{Command, Domains, New, State, new_token},
        },
        people::apps::Apps,
        world::World,
    },
    runtime::{entries::Under, pagination},
};
use contract::{
    DomainId, Fault, Page, Serves, Timestamp,
    domains::{
        AddDomain, Domain, DomainState, GetDomains, RemoveDomain, RemovedDomain, VerifyDomain,
    },
    instances::Role,
};
use std::time::Duration;

/// How long a call waits for the name servers.
const LOOKS_WITHIN: Duration = Duration::from_secs(12);

impl Serves<AddDomain> for Platform {
    async fn serve(&self, cx: &Call, p: AddDomain) -> Result<Domain, Fault> {
        let service = p.service.unwrap_or(Role::Server);
        if matches!(service, Role::SqlDb | Role::DocumentDb) {
            return Err(Fault::invalid("service", "must be server, dashboard or storefront"));
        }
        let name = p.host_name.as_str();
        let site = &self.world.ports.site;
        if name.starts_with("*.") {
            return Err(Fault::invalid("hostName", "must be one name; add each name by itself"));
        }
        let is_of_instances =
            site.instance_domain.as_ref().is_some_and(|it| it.target(name).is_some());
        if is_of_instances || is_own(site, name) {
            return Err(Fault::invalid("hostName", "must not be a name of this server itself"));
        }
        let id: DomainId = self.world.ports.random.id(cx.now);
        let token = new_token(&self.world).map_err(|_| Fault::Internal)?;
        let new = New { app_id: p.app_id, host_name: p.host_name, service, token };
        cx.to::<Domains>(id).create(new, move |domain: &State| Ok(domain.view(id, None))).await
    }
}

impl Serves<VerifyDomain> for Platform {
    async fn serve(&self, cx: &Call, p: VerifyDomain) -> Result<Domain, Fault> {
        let (id, world, now) = (p.domain_id, self.world.clone(), cx.now);
        let reply = move |domain: &State| view(&world, now, id, domain);
        let begun = cx.to::<Domains>(id).change(Command::Look, reply).await?;
        if begun.state == DomainState::Verified {
            let certificate = self.world.to::<Certificates>(id_of(&begun.host_name));
            certificate.ask_if_there(certificates::Command::TrySoon).await?;
        }
        let is_over = |domain: &State| domain.state != DomainState::Pending || domain.looks > 0;
        match self.world.to::<Domains>(id).wait_until(LOOKS_WITHIN, is_over).await {
            Ok(Some(domain)) => view(&self.world, now, id, &domain),
            // The look goes on, whatever keeps this call from its end.
            _ => Ok(begun),
        }
    }
}

/// What members see of a domain.
fn view(world: &World, now: Timestamp, id: DomainId, domain: &State) -> Result<Domain, Fault> {
    let of = id_of(&domain.host_name);
    let certificate = world.store.get::<Certificates>(&of)?;
    let is_proven = domain.state == DomainState::Verified;
    let certificate = certificate.filter(|_| is_proven).map(|seen| seen.view(of, now));
    Ok(domain.view(id, certificate.as_ref()))
}

impl Serves<GetDomains> for Platform {
    async fn serve(&self, cx: &Call, p: GetDomains) -> Result<Page<Domain>, Fault> {
        let (store, entry) = (&self.world.store, Under::<Apps>(p.app_id));
        pagination::page::<Domains, _>(store, &entry, (p.limit, p.cursor), |id, domain| {
            view(&self.world, cx.now, id, domain).map(Some)
        })
    }
}

impl Serves<RemoveDomain> for Platform {
    async fn serve(&self, cx: &Call, p: RemoveDomain) -> Result<RemovedDomain, Fault> {
        let deleted = p.domain_id;
        let reply = move |_: &State| Ok(RemovedDomain { deleted });
        cx.to::<Domains>(deleted).change(Command::Remove, reply).await
    }
}
