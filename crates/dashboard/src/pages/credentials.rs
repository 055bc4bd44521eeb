//! The credentials of an app. Their secrets are entered here, and never shown.

use super::apps::Tab;
use crate::{
    answer::{Answer, Frame, Note, done, form_page},
    files::form_with_files,
    form::Form,
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
use serde_json::{Value, json};

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
struct Show {
    frame: Frame,
    tab: Tab,
    credentials: Page<Credential>,
    form: Form,
}

impl Show {
    /// The kinds, by the name on the wire.
    fn kinds(&self) -> Vec<(String, &'static str)> {
        KINDS.map(|(kind, label)| (super::wire(&kind), label)).into()
    }

    fn label(&self, kind: &CredentialKind) -> &'static str {
        KINDS.iter().find(|(known, _)| known == kind).map_or("", |(_, label)| *label)
    }
}

async fn show(visitor: Visitor, path: web::Path<String>) -> Answer {
    show_with(&visitor, super::id(path, "app")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, app_id: AppId, form: Form) -> Answer {
    let (frame, tab) = Tab::open(visitor, app_id, "/credentials").await?;
    let all = GetCredentials { app_id, kind: None, limit: Limit::MOST, cursor: None };
    let credentials = visitor.read(&all).await?;
    form_page(&form.clone(), &Show { frame, tab, credentials, form })
}

fn at(app_id: AppId) -> String {
    format!("/apps/{app_id}/credentials")
}

async fn set(visitor: Visitor, path: web::Path<String>, parts: Multipart) -> Answer {
    let app_id: AppId = super::id(path, "app")?;
    let form = form_with_files(&visitor, parts).await?;
    let fields = [
        "kind",
        "name",
        "data",
        "password",
        "profile",
        "alias",
        "keyPassword",
        "keyId",
        "issuerId",
        "currency",
    ];
    let mut params = form.params(&fields);
    params.insert("appId".into(), json!(app_id));
    // A token or a secret key is entered, the others are files.
    let entered = form.value("secret").trim();
    if !params.contains_key("data") && !entered.is_empty() {
        params.insert("data".into(), BASE64.encode(entered.as_bytes()).into());
    }
    match visitor.send::<SetCredential>(&Value::Object(params), form.key()).await {
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

async fn check(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let app_id: AppId = super::id(path, "app")?;
    let params = Value::Object(form.params(&["credentialId"]));
    match visitor.send::<CheckCredential>(&params, form.key()).await {
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

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
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
    let params = json!({"credentialId": credential.id});
    match visitor.send::<DeleteCredential>(&params, form.key()).await {
        Ok(_) => done(&at(app_id), "The credential is deleted."),
        Err(fault) => show_with(&visitor, app_id, form.refused(fault)).await,
    }
}
