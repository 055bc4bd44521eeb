//! Organizations, their members and invitations.

use crate::{
    Settings,
    form::Form,
    list::{CURSOR, ListPart, address},
    pages::ListQuery,
    response::{Frame, PageResult, Refused, done, form_page, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, Function, Limit, OrganizationId,
    authentication::Role,
    organizations::{
        AcceptInvitation, CreateOrganization, DeleteOrganization, GetInvitations, GetOrganization,
        Invitation, InviteMember, ListOrganizations, Organization, RemoveMember, RevokeInvitation,
        UpdateMember, UpdateOrganization,
    },
};
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/organizations", web::get().to(list))
        .route("/organizations", web::post().to(create))
        .route("/invitations", web::get().to(show_invitation))
        .route("/invitations", web::post().to(accept))
        .route("/organizations/{id}", web::get().to(show))
        .route("/organizations/{id}", web::post().to(rename))
        .route("/organizations/{id}/invitations", web::post().to(invite))
        .route("/organizations/{id}/revoke", web::post().to(revoke))
        .route("/organizations/{id}/roles", web::post().to(set_role))
        .route("/organizations/{id}/remove", web::post().to(remove))
        .route("/organizations/{id}/delete", web::post().to(delete));
}

/// The organizations that a person searches for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OrganizationsQuery {
    query: String,
    cursor: String,
}

#[derive(Template)]
#[template(path = "organizations.html")]
struct OrganizationsPage {
    frame: Frame,
    list: ListPart<Organization>,
    form: Form,
}

async fn list(visitor: Visitor, query: web::Query<OrganizationsQuery>) -> PageResult {
    list_with(&visitor, &query, Form::default()).await
}

async fn list_with(visitor: &Visitor, query: &OrganizationsQuery, form: Form) -> PageResult {
    let frame = Frame::of(visitor, "Organizations").await?;
    let search = Form::search([("query", &query.query), (CURSOR, &query.cursor)]);
    let list = ListPart::read(visitor, "/organizations", search, |form| {
        let (query, cursor) = (form.get("query")?, form.get(CURSOR)?);
        Ok(ListOrganizations { query, limit: Limit::default(), cursor })
    })
    .await?;
    form_page(&form.clone(), &OrganizationsPage { frame, list, form })
}

async fn create(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| Ok(CreateOrganization { name: form.get("name")? });
    match visitor.send(&form, params).await {
        Ok(made) => done(&format!("/organizations/{}", made.id), "The organization is there."),
        Err(fault) => {
            list_with(&visitor, &OrganizationsQuery::default(), form.refused(fault)).await
        }
    }
}

async fn accept(visitor: Visitor, form: Form) -> PageResult {
    let params = |form: &Form| Ok(AcceptInvitation { token: form.get("token")? });
    match visitor.send(&form, params).await {
        Ok(joined) => done(
            &format!("/organizations/{}", joined.id),
            format!("You are a member of {}.", joined.name),
        ),
        Err(fault) => invitation_with(&visitor, form.refused(fault)).await,
    }
}

/// The page to which the mail of an invitation leads, also for people without an account.
#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage {
    frame: Frame,
    form: Form,
}

impl InvitationPage {
    /// The address of this page with its token, for the pages that lead back to it.
    fn here(&self) -> String {
        address("/invitations", [("token", self.form.value("token"))])
    }

    /// The page that signs in, or the one that makes an account, and leads back here.
    fn through(&self, page: &str) -> String {
        address(page, [("to", self.here().as_str()), ("invitation", self.form.value("token"))])
    }
}

/// The token of the link that a person followed.
#[derive(Deserialize)]
struct TokenQuery {
    #[serde(default)]
    token: String,
}

async fn show_invitation(visitor: Visitor, query: web::Query<TokenQuery>) -> PageResult {
    invitation_with(&visitor, Form::filled([("token", query.into_inner().token)])).await
}

async fn invitation_with(visitor: &Visitor, form: Form) -> PageResult {
    let title = "Invitation";
    let frame = match Frame::of(visitor, title).await {
        Ok(frame) => frame,
        Err(Refused(Fault::Unauthenticated(_))) => Frame::open(visitor, title),
        Err(refused) => return Err(refused),
    };
    form_page(&form.clone(), &InvitationPage { frame, form })
}

#[derive(Template)]
#[template(path = "organization.html")]
struct OrganizationPage {
    frame: Frame,
    organization: Organization,
    /// `None`: the person may not see them.
    invitations: Option<ListPart<Invitation>>,
    form: Form,
}

async fn show(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ListQuery>,
) -> PageResult {
    show_with(&visitor, super::id(path, "organization")?, &query, Form::default()).await
}

/// Shows an organization with a form that was refused, and otherwise with what is set now.
async fn again(visitor: &Visitor, organization_id: OrganizationId, form: Form) -> PageResult {
    show_with(visitor, organization_id, &ListQuery::default(), form).await
}

async fn show_with(
    visitor: &Visitor,
    organization_id: OrganizationId,
    query: &ListQuery,
    form: Form,
) -> PageResult {
    let organization = visitor.read(&GetOrganization { organization_id }).await?;
    let pending = ListPart::read(visitor, &at(organization_id), query.form(), |form| {
        Ok(GetInvitations { organization_id, limit: Limit::default(), cursor: form.get(CURSOR)? })
    })
    .await;
    let invitations = match pending {
        Ok(list) => Some(list),
        Err(refused) if matches!(refused.0, Fault::Forbidden(_)) => None,
        Err(refused) => return Err(refused),
    };
    let form = form.beside(Form::filled([("name", organization.name.to_string())]));
    let frame = Frame::of(visitor, organization.name.as_str()).await?;
    let frame = frame.below("Organizations", "/organizations");
    form_page(&form.clone(), &OrganizationPage { frame, organization, invitations, form })
}

async fn rename(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let organization_id: OrganizationId = super::id(path, "organization")?;
    let params =
        |form: &Form| Ok(UpdateOrganization { organization_id, name: Some(form.get("name")?) });
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(organization_id), "The organization has the new name."),
        Err(fault) => again(&visitor, organization_id, form.refused(fault)).await,
    }
}

/// The page after an invitation: the only one that shows its token.
#[derive(Template)]
#[template(path = "invited.html")]
struct InvitedPage {
    frame: Frame,
    invitation: Invitation,
    /// The address at which the invitation is accepted.
    link: Option<String>,
    sends_mail: bool,
}

async fn invite(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let organization_id: OrganizationId = super::id(path, "organization")?;
    let params = |form: &Form| {
        Ok(InviteMember { organization_id, email: form.get("email")?, role: form.get("role")? })
    };
    match visitor.send(&form, params).await {
        Ok(invitation) => {
            let frame = Frame::of(&visitor, "Invitation").await?;
            let Settings { url, sends_mail, .. } = visitor.settings();
            let at = format!("{}invitations", url.as_str());
            let token = invitation.accept_token.as_deref();
            let link = token.map(|token| address(&at, [("token", token)]));
            page(&InvitedPage { frame, invitation, link, sends_mail: *sends_mail })
        }
        Err(fault) => again(&visitor, organization_id, form.refused(fault)).await,
    }
}

/// Sends what a button of a list says, and shows the list again.
async fn act<F: Function>(
    visitor: Visitor,
    path: web::Path<String>,
    form: Form,
    params: impl FnOnce(OrganizationId, &Form) -> Result<F, Fault>,
    note: &str,
) -> PageResult {
    let organization_id: OrganizationId = super::id(path, "organization")?;
    match visitor.send(&form, |form| params(organization_id, form)).await {
        Ok(_) => done(&at(organization_id), note),
        Err(fault) => again(&visitor, organization_id, form.refused(fault)).await,
    }
}

async fn revoke(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let params = |organization_id, form: &Form| {
        Ok(RevokeInvitation { organization_id, invitation_id: form.get("invitationId")? })
    };
    act(visitor, path, form, params, "The invitation is withdrawn.").await
}

async fn set_role(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let params = |organization_id, form: &Form| {
        let (user_id, role) = (form.get("userId")?, form.get("role")?);
        Ok(UpdateMember { organization_id, user_id, role })
    };
    act(visitor, path, form, params, "The role is changed.").await
}

async fn remove(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let params = |organization_id, form: &Form| {
        Ok(RemoveMember { organization_id, user_id: form.get("userId")? })
    };
    act(visitor, path, form, params, "The member is removed.").await
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let organization_id: OrganizationId = super::id(path, "organization")?;
    let organization = visitor.read(&GetOrganization { organization_id }).await?;
    let params = |form: &Form| {
        form.confirm(organization.name.as_str(), "the name of the organization")?;
        Ok(DeleteOrganization { organization_id, cascade: form.has("cascade", "yes") })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done("/organizations", "The organization is deleted."),
        Err(fault) => again(&visitor, organization_id, form.refused(fault)).await,
    }
}

fn at(id: OrganizationId) -> String {
    format!("/organizations/{id}")
}

impl OrganizationPage {
    /// The roles that a member can get.
    const ROLES: [(&str, &str); 3] =
        [("client", "Client"), ("supervisor", "Supervisor"), ("admin", "Admin")];

    fn roles(&self) -> [(&str, &str); 3] {
        Self::ROLES
    }

    fn is(role: &Role, name: &str) -> bool {
        super::name(role) == name
    }
}
