//! The credentials of an app. Their secrets are entered here, and never shown.

use super::apps::AppTab;
use crate::{
    files::form_with_files,
    form::{Form, value},
    response::{Frame, Note, PageResult, done, form_page},
    visitor::Visitor,
};
use actix_multipart::Multipart;
use actix_web::web;
use askama::Template;
use contract::{
    AppId, Fault, Limit, Page,
    credentials::{
        CheckCredential, Credential, CredentialKind, DeleteCredential, GetCredentials,
        SetCredential,
    },
};
use data_encoding::BASE64;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/credentials", web::get().to(show))
        .route("/apps/{id}/credentials", web::post().to(set))
        .route("/apps/{id}/credentials/check", web::post().to(check))
        .route("/apps/{id}/credentials/delete", web::post().to(delete));
}

/// The kinds with what they are called, in the order of the list.
const KINDS: [(CredentialKind, &str); 8] = [
    (CredentialKind::IosSigning, "iOS signing (.p12 and profile)"),
    (CredentialKind::AndroidKeystore, "Android keystore"),
    (CredentialKind::AppStoreConnectKey, "App Store Connect key (.p8)"),
    (CredentialKind::GoogleServiceAccount, "Google Play service account (JSON)"),
    (CredentialKind::FirebaseServiceAccount, "Firebase service account (JSON)"),
    (CredentialKind::RepositoryHost, "Repository host token"),
    (CredentialKind::Paystack, "Paystack secret key"),
    (CredentialKind::Stripe, "Stripe secret key"),
];

#[derive(Template)]
#[template(path = "credentials.html")]
struct CredentialsPage {
    frame: Frame,
    tab: AppTab,
    credentials: Page<Credential>,
    form: Form,
}

impl CredentialsPage {
    /// The kinds, by the name on the wire.
    fn kinds(&self) -> Vec<(String, &'static str)> {
        KINDS.map(|(kind, label)| (super::wire(&kind), label)).into()
    }

    fn label(&self, kind: &CredentialKind) -> &'static str {
        KINDS.iter().find(|(known, _)| known == kind).map_or("", |(_, label)| *label)
    }
}

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    show_with(&visitor, super::id(path, "app")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, app_id: AppId, form: Form) -> PageResult {
    let (frame, tab) = AppTab::open(visitor, app_id, "/credentials").await?;
    let all = GetCredentials { app_id, kind: None, limit: Limit::MOST, cursor: None };
    let credentials = visitor.read(&all).await?;
    form_page(&form.clone(), &CredentialsPage { frame, tab, credentials, form })
}

fn at(app_id: AppId) -> String {
    format!("/apps/{app_id}/credentials")
}

/// The credential of a form. A token or a secret key is entered, the others are files.
fn credential(form: &Form, app_id: AppId) -> Result<SetCredential, Fault> {
    let entered = match form.value("data") {
        "" => BASE64.encode(form.value("secret").trim().as_bytes()),
        file => file.to_owned(),
    };
    Ok(SetCredential {
        app_id,
        kind: form.get("kind")?,
        name: form.get("name")?,
        data: value::read("data", [entered.as_str()])?,
        password: form.get("password")?,
        profile: form.get("profile")?,
        alias: form.get("alias")?,
        key_password: form.get("keyPassword")?,
        key_id: form.get("keyId")?,
        issuer_id: form.get("issuerId")?,
        currency: form.get("currency")?,
    })
}

async fn set(visitor: Visitor, path: web::Path<String>, parts: Multipart) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    let form = form_with_files(&visitor, parts).await?;
    match visitor.send(&form, |form| credential(form, app_id)).await {
        Ok(credential) => {
            let note = match credential.warnings.first() {
                Some(warning) => Note::plain(format!("The credential is stored. {warning}")),
                None => "The credential is stored.".into(),
            };
            done(&at(app_id), note)
        }
        Err(fault) => show_with(&visitor, app_id, form.refused(fault)).await,
    }
}

async fn check(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    let params = |form: &Form| Ok(CheckCredential { credential_id: form.get("credentialId")? });
    match visitor.send(&form, params).await {
        Ok(credential) => {
            let note = match credential.check {
                Some(check) if check.ok => check.text.into(),
                Some(check) => Note::bad(check.text),
                None => Note::plain("The check is under way."),
            };
            done(&at(app_id), note)
        }
        Err(fault) => show_with(&visitor, app_id, form.refused(fault)).await,
    }
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    let all = GetCredentials { app_id, kind: None, limit: Limit::MOST, cursor: None };
    let known = visitor.read(&all).await?.items.into_iter();
    let name = form.value("confirmation").to_owned();
    let mut named = known.filter(|credential| {
        credential.id.to_string() == form.value("credentialId") && credential.name.as_str() == name
    });
    let Some(credential) = named.next() else {
        let fault = Fault::invalid("confirmation", "is not the name of this credential");
        return show_with(&visitor, app_id, form.refused(fault)).await;
    };
    let params = |_: &Form| Ok(DeleteCredential { credential_id: credential.id });
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(app_id), "The credential is deleted."),
        Err(fault) => show_with(&visitor, app_id, form.refused(fault)).await,
    }
}
