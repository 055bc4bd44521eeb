//! The credentials of an app. Their secrets are entered here, and never shown.

use super::apps::AppTab;
use crate::{
    files::form_with_files,
    form::{Form, value},
    frame::Frame,
    response::{Note, PageResult, done, form_page},
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
use messages::{Messages, Sentence};
use serde::Deserialize;
use std::borrow::Borrow;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/credentials", web::get().to(show))
        .route("/apps/{id}/credentials", web::post().to(set))
        .route("/apps/{id}/credentials/check", web::post().to(check))
        .route("/apps/{id}/credentials/delete", web::post().to(delete));
}

/// The kinds with what they are called, in the order of the list.
const KINDS: [(CredentialKind, Sentence); 8] = [
    (CredentialKind::IosSigning, Messages::kind_ios_signing),
    (CredentialKind::AndroidKeystore, Messages::kind_android_keystore),
    (CredentialKind::AppStoreConnectKey, Messages::kind_app_store_connect),
    (CredentialKind::GoogleServiceAccount, Messages::kind_google_play),
    (CredentialKind::FirebaseServiceAccount, Messages::kind_firebase),
    (CredentialKind::RepositoryHost, Messages::kind_repository_host),
    (CredentialKind::Paystack, Messages::kind_paystack),
    (CredentialKind::Stripe, Messages::kind_stripe),
];

/// What a kind is called.
pub fn label(say: &Messages, kind: impl Borrow<CredentialKind>) -> String {
    let known = KINDS.iter().find(|(known, _)| known == kind.borrow());
    known.map_or_else(String::new, |(_, label)| label(*say))
}

/// What a person enters for a kind, beside its name.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// The file with the credential, and what it is.
    File(Sentence),
    /// A token or a secret key in place of a file.
    Secret,
    /// The password of the file.
    Password,
    Profile,
    /// The key of a keystore: its alias and its password.
    Alias,
    /// The ids that App Store Connect gives a key.
    KeyIds,
    Currency,
}

/// What a person enters for a kind.
const fn parts(kind: &CredentialKind) -> &'static [Part] {
    use CredentialKind as K;
    match kind {
        K::IosSigning => &[Part::File(Messages::file_ios_signing), Part::Password, Part::Profile],
        K::AndroidKeystore => &[Part::File(Messages::file_keystore), Part::Password, Part::Alias],
        K::AppStoreConnectKey => &[Part::File(Messages::file_app_store_connect), Part::KeyIds],
        K::GoogleServiceAccount | K::FirebaseServiceAccount => {
            &[Part::File(Messages::file_service_account)]
        }
        K::RepositoryHost => &[Part::Secret],
        K::Paystack | K::Stripe => &[Part::Secret, Part::Currency],
    }
}

/// What the name of a credential is.
fn name_of(say: &Messages, kind: &CredentialKind) -> String {
    match kind {
        CredentialKind::RepositoryHost => say.host_name_hint(),
        _ => say.credential_name_hint(),
    }
}

#[derive(Template)]
#[template(path = "credentials.html")]
struct CredentialsPage {
    frame: Frame,
    tab: AppTab,
    credentials: Page<Credential>,
    /// The kind that the person stores one of.
    kind: Option<CredentialKind>,
    form: Form,
}

/// What the form begins with.
#[derive(Debug, Default, Deserialize)]
struct CredentialsQuery {
    #[serde(default)]
    kind: String,
}

impl CredentialsPage {
    /// What a file is, for its field.
    fn hint(say: &Messages, what: &Sentence) -> String {
        what(*say)
    }

    /// The kinds, by the name on the wire.
    fn kinds(&self) -> Vec<(String, String)> {
        KINDS.map(|(kind, label)| (super::wire(&kind), label(self.frame.messages))).into()
    }
}

async fn show(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<CredentialsQuery>,
) -> PageResult {
    let form = Form::filled([("kind", query.kind.clone())]);
    show_with(&visitor, super::id(path, "app")?, form).await
}

async fn show_with(visitor: &Visitor, app_id: AppId, form: Form) -> PageResult {
    let (frame, tab) = AppTab::open(visitor, app_id, "/credentials").await?;
    let all = GetCredentials { app_id, kind: None, limit: Limit::MOST, cursor: None };
    let credentials = visitor.read(&all).await?;
    let chosen = form.value("kind");
    let kind = KINDS.into_iter().map(|(kind, _)| kind).find(|kind| super::wire(kind) == chosen);
    form_page(&form.clone(), &CredentialsPage { frame, tab, credentials, kind, form })
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
                Some(warning) => Note::plain(visitor.say().credential_stored_with(warning)),
                None => visitor.say().the_credential_is_stored().into(),
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
                None => Note::plain(visitor.say().check_is_under_way()),
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
        Ok(_) => done(&at(app_id), visitor.say().the_credential_is_deleted()),
        Err(fault) => show_with(&visitor, app_id, form.refused(fault)).await,
    }
}
