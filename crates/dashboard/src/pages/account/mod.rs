//! The account of the person: profile, password, sessions and limits. [`tokens`] has the deploy tokens
//! and the trusted publishers, [`webhooks`] the webhooks of organizations, [`audit`] the changes of the
//! person.

mod audit;
mod tokens;
mod webhooks;

use crate::{
    cookies,
    form::Form,
    frame::{Frame, Tab},
    list::{CURSOR, ListPart},
    pages::ListQuery,
    response::{Note, PageResult, Refused, done, form_page, with_session},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, Limit, Patch,
    authentication::{
        ChangeEmail, ChangePassword, GetSessions, GetUsage, RevokeSession, Session, UpdateProfile,
        Usage,
    },
};
use messages::Messages;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/account", web::get().to(show))
        .route("/account", web::post().to(change))
        .route("/account/email", web::post().to(change_email))
        .route("/account/password", web::post().to(set_password))
        .route("/account/sessions", web::post().to(end_session))
        .route("/account/sessions/others", web::post().to(end_others));
    audit::configure(app);
    tokens::configure(app);
    webhooks::configure(app);
}

/// The pages of the account: the last part of the address, and the label.
const TABS: &[Tab] = &[
    ("", Messages::profile),
    ("/tokens", Messages::deploy_tokens),
    ("/webhooks", Messages::webhooks),
    ("/audit", Messages::audit_log),
];

/// The frame of the tab with this last part of the address.
async fn tab(visitor: &Visitor, here: &str) -> Result<Frame, Refused> {
    let frame = Frame::of(visitor, Messages::account).await?;
    Ok(frame.with_tabs(Messages::account_settings, ("/account", here), TABS))
}

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    frame: Frame,
    sessions: ListPart<Session>,
    usage: Usage,
    sends_mail: bool,
    form: Form,
}

impl AccountPage {
    /// How the person proves that an e-mail is theirs.
    fn proof(&self) -> String {
        let say = self.frame.messages;
        match self.sends_mail {
            true => say.email_proof_by_mail(),
            false => say.email_proof_in_log(),
        }
    }

    /// How much of the rate limit is left.
    fn calls(&self) -> String {
        match (self.usage.calls_left, self.usage.calls_per_minute) {
            (Some(left), Some(all)) => self.frame.messages.calls_left(left, all),
            _ => self.frame.messages.unlimited(),
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
    let usage = visitor.read(&GetUsage { organization_id: None }).await?;
    let sends_mail = visitor.settings().sends_mail;
    form_page(&form.clone(), &AccountPage { frame, sessions, usage, sends_mail, form })
}

async fn change(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        let (name, company) = (Some(form.get("name")?), form.get("company")?);
        Ok(UpdateProfile { name, avatar_url: Patch::Keep, company })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done("/account", visitor.say().the_profile_is_changed()),
        Err(fault) => show_with(&visitor, &ListQuery::default(), form.refused(fault)).await,
    }
}

async fn change_email(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| {
        let current_password = Some(form.get("passwordForEmail")?);
        Ok(ChangeEmail { new_email: form.get("newEmail")?, current_password })
    };
    match visitor.send(&form, params).await {
        Ok(_) if visitor.settings().sends_mail => {
            done("/account", Note::plain(visitor.say().follow_link_in_mail()))
        }
        Ok(_) => {
            let note = visitor.say().ask_operator_for_link();
            done("/account", Note::plain(note))
        }
        Err(fault) => {
            let form = form.refused(at_field(fault, "passwordForEmail"));
            show_with(&visitor, &ListQuery::default(), form).await
        }
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
        Err(fault) => {
            let form = form.refused(at_field(fault, "currentPassword"));
            show_with(&visitor, &ListQuery::default(), form).await
        }
    }
}

/// A wrong current password is the fault of the field that has it.
fn at_field(fault: Fault, field: &str) -> Fault {
    match fault {
        Fault::WrongCurrentPassword => Fault::invalid(field, "is not the current password"),
        fault => fault,
    }
}

/// Ends every session of the person but this one.
async fn end_others(visitor: Visitor, form: Form) -> PageResult {
    match others_ended(&visitor).await {
        Ok(0) => done("/account", visitor.say().no_other_session()),
        Ok(1) => done("/account", visitor.say().other_session_is_over()),
        Ok(count) => done("/account", visitor.say().other_sessions_are_over(count)),
        Err(Refused(fault)) => {
            show_with(&visitor, &ListQuery::default(), form.refused(fault)).await
        }
    }
}

async fn others_ended(visitor: &Visitor) -> Result<usize, Refused> {
    let (mut count, mut cursor) = (0, None);
    loop {
        let page = visitor.read(&GetSessions { limit: Limit::MOST, cursor }).await?;
        for session in page.items.iter().filter(|session| !session.current) {
            match visitor.call(&RevokeSession { session_id: session.id }, None).await {
                // It ended meanwhile.
                Ok(_) | Err(Fault::NotFound(_)) => count += 1,
                Err(fault) => return Err(Refused(fault)),
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(count);
        }
    }
}

async fn end_session(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| Ok(RevokeSession { session_id: form.get("sessionId")? });
    match visitor.send(&form, params).await {
        Ok(_) => done("/account", visitor.say().the_session_is_over()),
        Err(fault) => show_with(&visitor, &ListQuery::default(), form.refused(fault)).await,
    }
}
