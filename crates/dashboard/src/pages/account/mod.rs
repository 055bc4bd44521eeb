//! The account of the person: profile, password, sessions and limits. [`tokens`] has the deploy tokens
//! and the trusted publishers, [`webhooks`] the webhooks of organizations, [`audit`] the changes of the
//! person.

mod audit;
mod tokens;
mod webhooks;

use crate::{
    cookies,
    form::Form,
    list::{CURSOR, ListPart},
    pages::ListQuery,
    response::{Frame, PageResult, Refused, done, form_page, with_session},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Limit, Patch,
    authentication::{
        ChangePassword, GetSessions, GetUsage, RevokeSession, Session, UpdateProfile, Usage,
    },
};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/account", web::get().to(show))
        .route("/account", web::post().to(change))
        .route("/account/password", web::post().to(set_password))
        .route("/account/sessions", web::post().to(end_session));
    audit::configure(app);
    tokens::configure(app);
    webhooks::configure(app);
}

/// The pages of the account: the last part of the address, and the label.
const TABS: &[(&str, &str)] = &[
    ("", "Profile"),
    ("/tokens", "Deploy tokens"),
    ("/webhooks", "Webhooks"),
    ("/audit", "Audit log"),
];

/// The frame of the tab with this last part of the address.
async fn tab(visitor: &Visitor, here: &str) -> Result<Frame, Refused> {
    let frame = Frame::of(visitor, "Account").await?;
    Ok(frame.with_tabs("Account settings", ("/account", here), TABS))
}

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    frame: Frame,
    sessions: ListPart<Session>,
    usage: Usage,
    form: Form,
}

impl AccountPage {
    /// How much of the rate limit is left.
    fn calls(&self) -> String {
        match (self.usage.calls_left, self.usage.calls_per_minute) {
            (Some(left), Some(all)) => format!("{left} of {all} calls a minute are left"),
            _ => "unlimited".to_owned(),
        }
    }
}

async fn show(visitor: Visitor, query: web::Query<ListQuery>) -> PageResult {
    show_with(&visitor, &query, Form::default()).await
}

/// Shows the account with a form that was refused, or an empty one. The other forms have what is set
/// now.
async fn show_with(visitor: &Visitor, query: &ListQuery, form: Form) -> PageResult {
    let user = visitor.user().await?;
    let company = user.company.as_ref().map(ToString::to_string).unwrap_or_default();
    let form = form.beside(Form::filled([("name", user.name.to_string()), ("company", company)]));
    let frame = tab(visitor, "").await?;
    let sessions = ListPart::read(visitor, "/account", query.form(), |form| {
        Ok(GetSessions { limit: Limit::default(), cursor: form.get(CURSOR)? })
    })
    .await?;
    let usage = visitor.read(&GetUsage {}).await?;
    form_page(&form.clone(), &AccountPage { frame, sessions, usage, form })
}

async fn change(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        let (name, company) = (Some(form.get("name")?), form.get("company")?);
        Ok(UpdateProfile { name, avatar_url: Patch::Keep, company })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done("/account", "The profile is changed."),
        Err(fault) => show_with(&visitor, &ListQuery::default(), form.refused(fault)).await,
    }
}

async fn set_password(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        Ok(ChangePassword {
            current_password: form.get("currentPassword")?,
            new_password: form.get("newPassword")?,
            revoke_tokens: form.has("revokeTokens", "yes"),
        })
    };
    match visitor.send(&form, params).await {
        Ok(new) => with_session("/account", cookies::signed_in(new.session_token)),
        Err(fault) => show_with(&visitor, &ListQuery::default(), form.refused(fault)).await,
    }
}

async fn end_session(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| Ok(RevokeSession { session_id: form.get("sessionId")? });
    match visitor.send(&form, params).await {
        Ok(_) => done("/account", "The session is over."),
        Err(fault) => show_with(&visitor, &ListQuery::default(), form.refused(fault)).await,
    }
}
