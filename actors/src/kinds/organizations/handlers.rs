//! The functions of the group Organizations.

use super::{
    Command, Invitation, New, Organization, Organizations,
    rules::{INVITATION_LIFETIME, invitation_claim},
};
use crate::{
    call::{
        authz::{self, reach},
        context::Call,
        pagination,
    },
    kinds::{accounts::digest, projects::Projects},
    platform::Platform,
    runtime::entries::Under,
    world::World,
};
use contract::{
    Fault, OrganizationId, Page, Serves,
    authentication::Nothing,
    organizations::{
        self as wire, AcceptInvitation, CreateOrganization, DeleteOrganization,
        DeletedOrganization, GetOrganization, InviteMember, ListOrganizations, Member,
        OrganizationContents, RemoveMember, UpdateMember, UpdateOrganization,
    },
};
use std::{sync::Arc, time::Duration};

/// An organization as its members see it. A member without an account is left out.
fn view(world: &World, id: OrganizationId, o: &Organization) -> Result<wire::Organization, Fault> {
    let mut members = Vec::with_capacity(o.members.len());
    for member in &o.members {
        if let Ok(account) = authz::account(&world.store, member.user) {
            let account = &account.state;
            members.push(Member {
                user_id: member.user,
                email: account.email.clone(),
                name: account.name.clone(),
                role: member.role,
                joined_at: member.joined_at,
            });
        }
    }
    Ok(wire::Organization {
        id,
        name: o.name.clone(),
        owner_id: o.owner,
        personal: o.personal,
        members,
        created_at: o.created_at,
        updated_at: o.updated_at,
    })
}

impl Platform {
    /// Changes an organization and answers it.
    async fn change_organization(
        &self,
        cx: &Call,
        id: OrganizationId,
        command: Command,
    ) -> Result<wire::Organization, Fault> {
        let world: Arc<World> = self.world.clone();
        let reply = move |organization: &Organization| view(&world, id, organization);
        cx.change(&self.world, &self.owners()?.organizations, id, command, reply).await
    }
}

impl Serves<CreateOrganization> for Platform {
    async fn serve(&self, cx: &Call, p: CreateOrganization) -> Result<wire::Organization, Fault> {
        let id: OrganizationId = self.world.ports.random.id(cx.now);
        let new = New { name: p.name, owner: cx.user()?.id };
        let world: Arc<World> = self.world.clone();
        let reply = move |organization: &Organization| view(&world, id, organization);
        cx.create(&self.world, &self.owners()?.organizations, id, new, reply).await
    }
}

impl Serves<GetOrganization> for Platform {
    async fn serve(&self, cx: &Call, p: GetOrganization) -> Result<wire::Organization, Fault> {
        view(&self.world, p.organization_id, &cx.ancestry.organization()?.1.state)
    }
}

impl Serves<UpdateOrganization> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateOrganization) -> Result<wire::Organization, Fault> {
        self.change_organization(cx, p.organization_id, Command::Rename(p.name)).await
    }
}

impl Serves<DeleteOrganization> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteOrganization) -> Result<DeletedOrganization, Fault> {
        let id = p.organization_id;
        let has_projects = || {
            Fault::NotNow(
                "this organization still has projects: delete them first, or set cascade".into(),
            )
        };
        let projects = self.world.store.count::<Projects>(&Under::<Organizations>(id))?;
        if projects > 0 && !p.cascade {
            return Err(has_projects());
        }
        let owners = &self.owners()?.organizations;
        let reply = DeletedOrganization { deleted: OrganizationContents { projects } };
        let command = Command::Delete { cascade: p.cascade };
        let reply = cx.change(&self.world, owners, id, command, move |_| Ok(reply.clone())).await?;
        // Without cascade, a project may have come in between: then the organization stays.
        if !p.cascade && owners.wait_idle(id, Duration::from_secs(10)).await?.is_some() {
            cx.take_back(&self.world, &has_projects()).await;
            return Err(has_projects());
        }
        Ok(reply)
    }
}

impl Serves<ListOrganizations> for Platform {
    async fn serve(
        &self,
        cx: &Call,
        p: ListOrganizations,
    ) -> Result<Page<wire::Organization>, Fault> {
        let mut all = Vec::new();
        for id in reach(&self.world, cx.user()?.id)?.organizations.keys().copied() {
            let seen = self.world.store.get::<Organizations>(&id)?;
            if let Some(seen) = seen.filter(|o| !o.state.deleting) {
                all.push(view(&self.world, id, &seen.state)?);
            }
        }
        Ok(pagination::slice(all, |o| o.id.to_string(), (p.limit, p.cursor)))
    }
}

impl Serves<InviteMember> for Platform {
    async fn serve(&self, cx: &Call, p: InviteMember) -> Result<wire::Invitation, Fault> {
        let random = &self.world.ports.random;
        let token = random.secret("svc_inv_", 40).map_err(|_| Fault::Internal)?;
        let known = self.account_of(&p.email)?.map(|(id, _)| id);
        let invitation = Invitation {
            id: random.id(cx.now),
            email: p.email.clone(),
            role: p.role,
            digest: digest(&token),
            created_at: cx.now,
            expires_at: cx.now + INVITATION_LIFETIME,
            accepted_by: None,
        };
        let reply = wire::Invitation {
            id: invitation.id,
            organization_id: p.organization_id,
            email: p.email.clone(),
            role: p.role,
            accept_token: token.clone(),
            created_at: invitation.created_at,
            expires_at: invitation.expires_at,
        };
        let name = cx.ancestry.organization()?.1.state.name.clone();
        let command = Command::Invite { invitation, known };
        let owners = &self.owners()?.organizations;
        let reply = cx
            .change(&self.world, owners, p.organization_id, command, move |_| Ok(reply.clone()))
            .await?;
        let text = format!(
            "You are invited to {name} at {}.\n\nSign in or register there with this e-mail and accept within 7 days with this token:\n\n{token}",
            self.settings.api_url
        );
        let mail = self.world.ports.mail.clone();
        actix_rt::spawn(async move {
            if let Err(e) = mail.send(&p.email, "Your invitation", &text).await {
                tracing::error!(error = %e, "a mail for an invitation was not sent");
            }
        });
        Ok(reply)
    }
}

impl Serves<AcceptInvitation> for Platform {
    async fn serve(&self, cx: &Call, p: AcceptInvitation) -> Result<wire::Organization, Fault> {
        let user = cx.user()?;
        let none = || Fault::NotFound("invitation for this account");
        if p.token.len() > 64 {
            return Err(none());
        }
        let digest = digest(&p.token);
        let id = self.world.store.holder(&invitation_claim(&digest))?.ok_or_else(none)?;
        let command =
            Command::Accept { digest, user: user.id, email: user.account.state.email.clone() };
        self.change_organization(cx, id, command).await
    }
}

impl Serves<UpdateMember> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateMember) -> Result<wire::Organization, Fault> {
        self.change_organization(cx, p.organization_id, Command::SetRole(p.user_id, p.role)).await
    }
}

impl Serves<RemoveMember> for Platform {
    async fn serve(&self, cx: &Call, p: RemoveMember) -> Result<Nothing, Fault> {
        let owners = &self.owners()?.organizations;
        cx.change(&self.world, owners, p.organization_id, Command::Remove(p.user_id), |_| {
            Ok(Nothing {})
        })
        .await
    }
}
