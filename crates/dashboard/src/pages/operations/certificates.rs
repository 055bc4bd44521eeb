//! The certificates of this server.

use super::tab;
use crate::{
    form::Form,
    frame::Frame,
    list::{CURSOR, Rest},
    response::{PageResult, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, Limit, Page,
    certificates::{GetCertificates, RenewCertificate, ServerCertificate},
};
use serde::Deserialize;

const HERE: &str = "/operations/certificates";

pub fn configure(app: &mut web::ServiceConfig) {
    app.route(HERE, web::get().to(show)).route(HERE, web::post().to(renew));
}

/// Where in the list a person is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CertificatesQuery {
    cursor: String,
}

#[derive(Template)]
#[template(path = "operations_certificates.html")]
struct CertificatesPage {
    frame: Frame,
    form: Form,
    certificates: Vec<ServerCertificate>,
    rest: Rest,
}

async fn show(visitor: Visitor, query: web::Query<CertificatesQuery>) -> PageResult {
    show_with(&visitor, &query, None).await
}

async fn show_with(
    visitor: &Visitor,
    query: &CertificatesQuery,
    refused: Option<Fault>,
) -> PageResult {
    let form = Form::search([(CURSOR, &query.cursor)]);
    let params =
        |form: &Form| Ok(GetCertificates { limit: Limit::default(), cursor: form.get(CURSOR)? });
    let (found, mut form) = visitor.search(form, params).await?;
    let found = found.unwrap_or_else(|| Page::new(Vec::new(), None));
    let rest = Rest::of(&found, HERE, &form);
    if let Some(fault) = refused {
        form = form.refused(fault);
    }
    let frame = tab(visitor, "/certificates").await?;
    let certificates = found.items;
    form_page(&form.clone(), &CertificatesPage { frame, form, certificates, rest })
}

async fn renew(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| Ok(RenewCertificate { certificate_id: form.get("certificateId")? });
    match visitor.send(&form, params).await {
        Ok(certificate) => {
            done(HERE, visitor.say().a_certificate_is_being_obtained(certificate.host_name))
        }
        Err(fault) => show_with(&visitor, &CertificatesQuery::default(), Some(fault)).await,
    }
}
