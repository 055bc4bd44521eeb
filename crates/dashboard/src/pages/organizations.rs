//! Organizations, their members and invitations.

use crate::{
    Settings,
    form::Form,
    frame::Frame,
    list::{CURSOR, ListPart, address},
    pages::ListQuery,
    response::{PageResult, Refused, done, form_page, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, Function, Limit, OrganizationId,
    authentication::{GetUsage, Role, Usage},
    organizations::{
        AcceptInvitation, CreateOrganization, DeleteOrganization, GetInvitations, GetOrganization,
        Invitation, InviteMember, ListOrganizations, Organization, RemoveMember, RevokeInvitation,
        UpdateMember, UpdateOrganization,
    },
    projects::{GetProjects, Project},
};
use messages::{Messages, Sentence};
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
    let frame = Frame::of(visitor, Messages::menu_organizations).await?;
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
        Ok(made) => {
            done(&format!("/organizations/{}", made.id), visitor.say().the_organization_is_there())
        }
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
            visitor.say().you_are_a_member(joined.name),
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
    let frame = match Frame::of(visitor, Messages::invitation).await {
        Ok(frame) => frame,
        Err(Refused(Fault::Unauthenticated(_))) => Frame::open(visitor, Messages::invitation),
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
    /// Its newest projects that the person sees.
    projects: Vec<Project>,
    /// What it uses of its quotas.
    usage: Usage,
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
    let newest = GetProjects {
        organization_id: Some(organization_id),
        query: None,
        limit: Limit::default(),
        cursor: None,
    };
    let projects = visitor.read(&newest).await?.items;
    let usage = visitor.read(&GetUsage { organization_id: Some(organization_id) }).await?;
    let form = form.beside(Form::filled([("name", organization.name.to_string())]));
    let frame = Frame::of(visitor, |_| organization.name.to_string()).await?;
    let frame = frame.below_page(Messages::menu_organizations, "/organizations");
    let page = OrganizationPage { frame, organization, invitations, projects, usage, form };
    form_page(&page.form.clone(), &page)
}

async fn rename(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let organization_id: OrganizationId = super::id(path, "organization")?;
    let params =
        |form: &Form| Ok(UpdateOrganization { organization_id, name: Some(form.get("name")?) });
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(organization_id), visitor.say().organization_is_renamed()),
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
            let frame = Frame::of(&visitor, Messages::invitation).await?;
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
    note: Sentence,
) -> PageResult {
    let organization_id: OrganizationId = super::id(path, "organization")?;
    match visitor.send(&form, |form| params(organization_id, form)).await {
        Ok(_) => done(&at(organization_id), note(visitor.say())),
        Err(fault) => again(&visitor, organization_id, form.refused(fault)).await,
    }
}

async fn revoke(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let params = |organization_id, form: &Form| {
        Ok(RevokeInvitation { organization_id, invitation_id: form.get("invitationId")? })
    };
    act(visitor, path, form, params, Messages::the_invitation_is_withdrawn).await
}

async fn set_role(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let params = |organization_id, form: &Form| {
        let (user_id, role) = (form.get("userId")?, form.get("role")?);
        Ok(UpdateMember { organization_id, user_id, role })
    };
    act(visitor, path, form, params, Messages::the_role_is_changed).await
}

async fn remove(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let params = |organization_id, form: &Form| {
        Ok(RemoveMember { organization_id, user_id: form.get("userId")? })
    };
    act(visitor, path, form, params, Messages::the_member_is_removed).await
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let organization_id: OrganizationId = super::id(path, "organization")?;
    let organization = visitor.read(&GetOrganization { organization_id }).await?;
    let params = |form: &Form| {
        form.confirm(organization.name.as_str(), "the name of the organization")?;
        Ok(DeleteOrganization { organization_id, cascade: form.has("cascade", "yes") })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done("/organizations", visitor.say().the_organization_is_deleted()),
        Err(fault) => again(&visitor, organization_id, form.refused(fault)).await,
    }
}

fn at(id: OrganizationId) -> String {
    format!("/organizations/{id}")
}

impl OrganizationPage {
    /// The roles that a member can get.
    const ROLES: [Role; 3] = [Role::Client, Role::Supervisor, Role::Admin];

    /// Those roles: on the wire, and in words.
    fn roles(&self) -> [(String, String); 3] {
        let words = |role: Role| crate::text::sentence(super::name(&self.frame.messages, &role));
        Self::ROLES.map(|role| (super::wire(&role), words(role)))
    }

    fn is(role: &Role, name: &str) -> bool {
        super::wire(role) == name
    }
}
