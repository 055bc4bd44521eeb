//! The settings of an app: its name and identifiers, the rules of its channels, and its end.

use super::apps::AppTab;
use crate::{
    form::Form,
    frame::Frame,
    response::{PageResult, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, Fault, Patch,
    apps::{DeleteApp, GetApp, SetChannelPolicy, UpdateApp},
    artifacts::Trust,
    text::StoreIdentifier,
};
use messages::Messages;
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/settings", web::get().to(show))
        .route("/apps/{id}/settings", web::post().to(change))
        .route("/apps/{id}/settings/channels", web::post().to(set_policy))
        .route("/apps/{id}/settings/delete", web::post().to(delete));
}

#[derive(Template)]
#[template(path = "app_settings.html")]
struct AppSettingsPage {
    frame: Frame,
    tab: AppTab,
    form: Form,
}

/// What a release must be trusted at least, from the least on.
const TRUSTS: [Trust; 4] = [Trust::Unverified, Trust::Token, Trust::Oidc, Trust::Attested];

/// What a trust is called.
fn words(say: &Messages, trust: &Trust) -> String {
    match trust {
        Trust::Unverified => say.trust_of_anything(),
        Trust::Token => say.trust_by_token(),
        Trust::Oidc => say.trust_by_ci_run(),
        Trust::Attested => say.trust_by_attestation(),
    }
}

fn at(app_id: AppId) -> String {
    format!("/apps/{app_id}/settings")
}

/// The channel whose rule the form begins with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SettingsQuery {
    channel: String,
}

async fn show(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<SettingsQuery>,
) -> PageResult {
    let form = Form::filled([("channel", query.channel.clone())]);
    show_with(&visitor, super::id(path, "app")?, form).await
}

/// Shows what was entered, and beside it what is: the app, and the rule of the channel.
async fn show_with(visitor: &Visitor, app_id: AppId, form: Form) -> PageResult {
    let (frame, tab) = AppTab::open(visitor, app_id, "/settings").await?;
    let text = |value: Option<String>| value.unwrap_or_default();
    let bundle_id = text(tab.app.bundle_id.as_ref().map(ToString::to_string));
    let package_name = text(tab.app.package_name.as_ref().map(ToString::to_string));
    let app = Form::filled([
        ("name", tab.app.name.to_string()),
        ("bundleId", bundle_id.clone()),
        ("bundleIdWas", bundle_id),
        ("packageName", package_name.clone()),
        ("packageNameWas", package_name),
    ]);
    let mut rules = tab.app.channel_policies.iter();
    let rule = rules.find(|rule| rule.channel.to_string() == form.value("channel"));
    let rule = rule.map_or_else(Form::default, |rule| {
        Form::filled([
            ("minimumTrust", text(rule.minimum_trust.as_ref().map(super::wire))),
            ("signer", text(rule.signer.as_ref().map(ToString::to_string))),
            ("attestedBy", text(rule.attested_by.as_ref().map(ToString::to_string))),
        ])
    });
    let form = form.beside(app).beside(rule);
    form_page(&form.clone(), &AppSettingsPage { frame, tab, form })
}

/// An identifier that the person changed. Another one ends what the app learned about who signs its files, so
/// one that the page did not know yet stays.
fn changed(form: &Form, field: &str, was: &str) -> Result<Patch<StoreIdentifier>, Fault> {
    match form.value(field) == form.value(was) {
        true => Ok(Patch::Keep),
        false => form.get(field),
    }
}

async fn change(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    let params = |form: &Form| {
        Ok(UpdateApp {
            app_id,
            name: Some(form.get("name")?),
            platforms: None,
            bundle_id: changed(form, "bundleId", "bundleIdWas")?,
            package_name: changed(form, "packageName", "packageNameWas")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(app_id), visitor.say().the_app_is_changed()),
        Err(fault) => show_with(&visitor, app_id, form.refused(fault)).await,
    }
}

async fn set_policy(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    let params = |form: &Form| {
        Ok(SetChannelPolicy {
            app_id,
            channel: form.get("channel")?,
            minimum_trust: form.get("minimumTrust")?,
            signer: form.get("signer")?,
            attested_by: form.get("attestedBy")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(app) => {
            let channel = form.value("channel");
            let has_rule =
                app.channel_policies.iter().any(|rule| rule.channel.to_string() == channel);
            let note = match has_rule {
                true => visitor.say().channel_has_rule(channel),
                false => visitor.say().channel_has_no_rule(channel),
            };
            done(&at(app_id), note)
        }
        Err(fault) => show_with(&visitor, app_id, form.refused(fault)).await,
    }
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    let app = visitor.read(&GetApp { app_id }).await?;
    let params = |form: &Form| {
        form.confirm(app.name.as_str(), "the name of the app")?;
        Ok(DeleteApp { app_id })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&format!("/projects/{}", app.project_id), visitor.say().the_app_is_deleted()),
        Err(fault) => show_with(&visitor, app_id, form.refused(fault)).await,
    }
}
