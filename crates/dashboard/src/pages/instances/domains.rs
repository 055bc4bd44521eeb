//! The domains that lead to an instance: those of its app.

use super::InstanceTab;
use crate::{
    form::Form,
    frame::Frame,
    list::{CURSOR, ListPart},
    pages::ListQuery,
    response::{PageResult, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, InstanceId, Limit,
    backend_instances::GetBackendInstance,
    domains::{AddDomain, Domain, DomainState, GetDomains, RemoveDomain, VerifyDomain},
    instances::Role,
};
use messages::Messages;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/instances/{id}/domains", web::get().to(show))
        .route("/instances/{id}/domains", web::post().to(add))
        .route("/instances/{id}/domains/verify", web::post().to(verify))
        .route("/instances/{id}/domains/remove", web::post().to(remove));
}

#[derive(Template)]
#[template(path = "instance_domains.html")]
struct DomainsPage {
    frame: Frame,
    tab: InstanceTab,
    list: ListPart<Domain>,
    form: Form,
}

impl DomainsPage {
    /// The services that a domain can lead to: on the wire, and in words.
    fn services(&self) -> Vec<(String, String)> {
        let roles = self.tab.instance.services.iter().map(|service| service.role);
        let is_served = |role: &Role| !matches!(role, Role::SqlDb | Role::DocumentDb);
        roles
            .filter(is_served)
            .map(|role| (crate::pages::wire(&role), super::service(&self.frame.messages, &role)))
            .collect()
    }

    fn is_verified(domain: &Domain) -> bool {
        domain.state == DomainState::Verified
    }

    fn label(say: &Messages, role: &Role) -> String {
        super::service(say, role)
    }
}

fn at(instance: InstanceId) -> String {
    format!("/instances/{instance}/domains")
}

async fn show(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ListQuery>,
) -> PageResult {
    show_with(&visitor, super::super::id(path, "instance")?, &query, Form::default()).await
}

async fn show_with(
    visitor: &Visitor,
    instance_id: InstanceId,
    query: &ListQuery,
    form: Form,
) -> PageResult {
    let (frame, tab) = InstanceTab::open(visitor, instance_id, "/domains").await?;
    let app_id = tab.instance.app_id;
    let list = ListPart::read(visitor, &at(instance_id), query.form(), |form| {
        Ok(GetDomains { app_id, limit: Limit::default(), cursor: form.get(CURSOR)? })
    })
    .await?;
    form_page(&form.clone(), &DomainsPage { frame, tab, list, form })
}

/// Shows the page with a form that was refused.
async fn refused(
    visitor: &Visitor,
    instance_id: InstanceId,
    form: Form,
    fault: Fault,
) -> PageResult {
    show_with(visitor, instance_id, &ListQuery::default(), form.refused(fault)).await
}

async fn add(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
    let params = |form: &Form| {
        Ok(AddDomain {
            app_id: instance.app_id,
            host_name: form.get("hostName")?,
            service: form.get("service")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(domain) => done(&at(instance_id), visitor.say().write_the_record_now(domain.host_name)),
        Err(fault) => refused(&visitor, instance_id, form, fault).await,
    }
}

async fn verify(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let params = |form: &Form| Ok(VerifyDomain { domain_id: form.get("domainId")? });
    match visitor.send(&form, params).await {
        Ok(domain) => {
            let say = visitor.say();
            let note = match domain.state {
                DomainState::Verified => say.the_domain_is_proven(domain.host_name),
                _ => say.the_domain_is_not_proven(domain.host_name),
            };
            done(&at(instance_id), note)
        }
        Err(fault) => refused(&visitor, instance_id, form, fault).await,
    }
}

async fn remove(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let params = |form: &Form| Ok(RemoveDomain { domain_id: form.get("domainId")? });
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(instance_id), visitor.say().the_domain_is_removed()),
        Err(fault) => refused(&visitor, instance_id, form, fault).await,
    }
}
