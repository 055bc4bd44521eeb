//! Organizations, their members and invitations.

use crate::{
    answer::{Answer, Frame, done, form_page, page},
    form::Form,
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Fault, Limit, OrganizationId, Page,
    authentication::Role,
    organizations::{
        AcceptInvitation, CreateOrganization, DeleteOrganization, GetInvitations, GetOrganization,
        Invitation, InviteMember, ListOrganizations, Organization, RemoveMember, RevokeInvitation,
        UpdateMember, UpdateOrganization,
    },
};
use serde_json::{Value, json};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/organizations", web::get().to(list))
        .route("/organizations", web::post().to(create))
        .route("/invitations", web::post().to(accept))
        .route("/organizations/{id}", web::get().to(show))
        .route("/organizations/{id}", web::post().to(rename))
        .route("/organizations/{id}/invitations", web::post().to(invite))
        .route("/organizations/{id}/revoke", web::post().to(revoke))
        .route("/organizations/{id}/roles", web::post().to(set_role))
        .route("/organizations/{id}/remove", web::post().to(remove))
        .route("/organizations/{id}/delete", web::post().to(delete));
}

#[derive(Template)]
#[template(path = "organizations.html")]
struct List {
    frame: Frame,
    organizations: Page<Organization>,
    form: Form,
}

async fn list(visitor: Visitor) -> Answer {
    list_with(&visitor, Form::default()).await
}

async fn list_with(visitor: &Visitor, form: Form) -> Answer {
    let frame = Frame::of(visitor, "Organizations").await?;
    let organizations =
        visitor.read(&ListOrganizations { limit: Limit::default(), cursor: None }).await?;
    form_page(&form.clone(), &List { frame, organizations, form })
}

async fn create(visitor: Visitor, form: Form) -> Answer {
    let params = Value::Object(form.params(&["name"]));
    match visitor.send::<CreateOrganization>(&params, form.key()).await {
        Ok(made) => done(&format!("/organizations/{}", made.id), "The organization is there."),
        Err(fault) => list_with(&visitor, form.refused(fault)).await,
    }
}

async fn accept(visitor: Visitor, form: Form) -> Answer {
    let params = Value::Object(form.params(&["token"]));
    match visitor.send::<AcceptInvitation>(&params, form.key()).await {
        Ok(joined) => done(&format!("/organizations/{}", joined.id), "You are a member now."),
        Err(fault) => list_with(&visitor, form.refused(fault)).await,
    }
}

#[derive(Template)]
#[template(path = "organization.html")]
struct Show {
    frame: Frame,
    organization: Organization,
    /// `None`: the person may not see them.
    invitations: Option<Vec<Invitation>>,
    form: Form,
}

async fn show(visitor: Visitor, path: web::Path<String>) -> Answer {
    show_with(&visitor, super::id(path, "organization")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, organization_id: OrganizationId, form: Form) -> Answer {
    let organization = visitor.read(&GetOrganization { organization_id }).await?;
    let pending = GetInvitations { organization_id, limit: Limit::default(), cursor: None };
    let invitations = match visitor.read(&pending).await {
        Ok(page) => Some(page.items),
        Err(refused) if matches!(refused.0, Fault::Forbidden(_)) => None,
        Err(refused) => return Err(refused),
    };
    let frame = Frame::of(visitor, organization.name.as_str()).await?;
    let frame = frame.below("Organizations", "/organizations");
    form_page(&form.clone(), &Show { frame, organization, invitations, form })
}

async fn rename(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let organization_id: OrganizationId = super::id(path, "organization")?;
    let params = json!({"organizationId": organization_id, "name": form.value("name")});
    match visitor.send::<UpdateOrganization>(&params, form.key()).await {
        Ok(_) => done(&at(organization_id), "The organization is changed."),
        Err(fault) => show_with(&visitor, organization_id, form.refused(fault)).await,
    }
}

/// The page after an invitation: the only one that shows its token.
#[derive(Template)]
#[template(path = "invited.html")]
struct Invited {
    frame: Frame,
    invitation: Invitation,
}

async fn invite(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let organization_id: OrganizationId = super::id(path, "organization")?;
    let mut params = form.params(&["email", "role"]);
    params.insert("organizationId".into(), json!(organization_id));
    match visitor.send::<InviteMember>(&Value::Object(params), form.key()).await {
        Ok(invitation) => {
            let frame = Frame::of(&visitor, "Invitation").await?;
            page(&Invited { frame, invitation })
        }
        Err(fault) => show_with(&visitor, organization_id, form.refused(fault)).await,
    }
}

/// Sends what a button of a list says, and shows the list again.
macro_rules! action {
    ($name:ident, $function:ty, [$($field:literal),+], $note:literal) => {
        async fn $name(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
            let organization_id: OrganizationId = super::id(path, "organization")?;
            let mut params = form.params(&[$($field),+]);
            params.insert("organizationId".into(), json!(organization_id));
            match visitor.send::<$function>(&Value::Object(params), form.key()).await {
                Ok(_) => done(&at(organization_id), $note),
                Err(fault) => show_with(&visitor, organization_id, form.refused(fault)).await,
            }
        }
    };
}

action!(revoke, RevokeInvitation, ["invitationId"], "The invitation is withdrawn.");
action!(set_role, UpdateMember, ["userId", "role"], "The role is changed.");
action!(remove, RemoveMember, ["userId"], "The member is removed.");

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let organization_id: OrganizationId = super::id(path, "organization")?;
    let organization = visitor.read(&GetOrganization { organization_id }).await?;
    if form.value("confirmation") != organization.name.as_str() {
        let fault = Fault::invalid("confirmation", "is not the name of the organization");
        return show_with(&visitor, organization_id, form.refused(fault)).await;
    }
    let params = json!({"organizationId": organization_id, "cascade": form.has("cascade", "yes")});
    match visitor.send::<DeleteOrganization>(&params, form.key()).await {
        Ok(_) => done("/organizations", "The organization is deleted."),
        Err(fault) => show_with(&visitor, organization_id, form.refused(fault)).await,
    }
}

fn at(id: OrganizationId) -> String {
    format!("/organizations/{id}")
}

impl Show {
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
