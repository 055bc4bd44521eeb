//! The handlers of the group Organizations.

use super::accounts::account_of;
use crate::{
    call::{
        authz::{self, memberships},
        context::Call,
        mail_limit::{NotCounted, Share},
        platform::{Platform, Settings},
    },
    functions::commerce::checkouts::unsettled::{Whole, refuse_unsettled},
    kinds::{
        people::{
            accounts::digest,
            organizations::{
                Command, INVITATION_LIFETIME, Invitation, New, Organization, Organizations,
                rules::invitation_claim,
            },
            projects::Projects,
            usage::{limit, told},
        },
        world::World,
    },
    runtime::{
        entries::Under,
        pagination::{self, is_meant},
        store::Store,
    },
};
use contract::{
    Cursor, Email, Fault, Limit, Name, OrganizationId, Page, Serves, Timestamp, UserId,
    authentication::Empty,
    organizations::{
        self as wire, AcceptInvitation, CreateOrganization, DeleteOrganization,
        DeletedOrganization, GetInvitations, GetOrganization, InviteMember, ListOrganizations,
        Member, OrganizationContents, RemoveMember, RevokeInvitation, UpdateMember,
        UpdateOrganization,
    },
    quotas::Quota,
};
use std::{sync::Arc, time::Duration};

/// The most organizations that one user is a member of. One record of the user names all of them.
const MOST_MEMBERSHIPS: usize = 500;
/// No token of an invitation is longer, in bytes.
const LONGEST_TOKEN: usize = 64;
/// The most invitations to one e-mail within an hour.
const MOST_TO_ONE: usize = 3;

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

/// Lists organizations, whether the caller is a member or not.
pub fn all_organizations(
    world: &World,
    page: (Limit, Option<Cursor>),
    wanted: impl Fn(OrganizationId, &Organization) -> bool,
) -> Result<Page<wire::Organization>, Fault> {
    pagination::whole::<Organizations, _>(&world.store, page, |id, seen| {
        let shown = !seen.is_deleted() && wanted(id, seen);
        shown.then(|| view(world, id, seen)).transpose()
    })
}

/// Changes an organization and returns its new state as the reply.
async fn change_organization(
    cx: &Call,
    id: OrganizationId,
    command: Command,
) -> Result<wire::Organization, Fault> {
    let world = cx.world.clone();
    let reply = move |organization: &Organization| view(&world, id, organization);
    cx.to::<Organizations>(id).change(command, reply).await
}

impl Serves<CreateOrganization> for Platform {
    async fn serve(&self, cx: &Call, p: CreateOrganization) -> Result<wire::Organization, Fault> {
        let id: OrganizationId = self.world.ports.random.id(cx.now);
        let owner = cx.user()?.id;
        let _turn = self.world.creation(owner).await?;
        check_memberships(&self.world, owner, id)?;
        let (personal, made) = (cx.user()?.account.state.personal, made(&self.world, owner)?);
        if limit(&self.world, personal, Quota::Organizations)?.is_some_and(|most| made >= most) {
            return Err(Fault::OverQuota(told(&self.world, personal, Quota::Organizations, made)?));
        }
        let new = New { name: p.name.into(), owner };
        let world: Arc<World> = self.world.clone();
        let reply = move |organization: &Organization| view(&world, id, organization);
        cx.to::<Organizations>(id).create(new, reply).await
    }
}

impl Serves<GetOrganization> for Platform {
    async fn serve(&self, cx: &Call, p: GetOrganization) -> Result<wire::Organization, Fault> {
        view(&self.world, p.organization_id, &cx.ancestry.organization()?.1.state)
    }
}

impl Serves<UpdateOrganization> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateOrganization) -> Result<wire::Organization, Fault> {
        change_organization(cx, p.organization_id, Command::Rename(p.name.map(Into::into))).await
    }
}

impl Serves<DeleteOrganization> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteOrganization) -> Result<DeletedOrganization, Fault> {
        refuse_unsettled(&self.world, Whole::Organization(p.organization_id)).await?;
        let id = p.organization_id;
        let has_projects = || {
            Fault::NotNow(
                "this organization still has projects: delete them first, or set cascade".into(),
            )
        };
        let projects = self.world.store.count_all::<Projects>(&Under::<Organizations>(id)).await?;
        if projects > 0 && !p.cascade {
            return Err(has_projects());
        }
        let reply = DeletedOrganization { deleted: OrganizationContents { projects } };
        let command = Command::Delete { cascade: p.cascade };
        let reply = cx.to::<Organizations>(id).change(command, move |_| Ok(reply.clone())).await?;
        // Without cascade, the organization stays if a project was created meanwhile.
        if !p.cascade
            && self
                .world
                .to::<Organizations>(id)
                .wait_idle(Duration::from_secs(10))
                .await?
                .is_some()
        {
            cx.take_back(&has_projects()).await;
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
        let wanted = |id: OrganizationId, organization: &Organization| {
            is_meant(p.query.as_ref(), &id.to_string(), &[organization.name.as_str()])
        };
        let Some(user) = cx.listed_user()? else {
            return all_organizations(&self.world, (p.limit, p.cursor), wanted);
        };
        let mut all = Vec::new();
        for id in memberships(&self.world, user.id)?.organizations.keys().copied() {
            let seen = self.world.store.get::<Organizations>(&id)?;
            if let Some(seen) = seen.filter(|o| !o.is_deleted() && wanted(id, o)) {
                all.push((id, seen));
            }
        }
        let page = pagination::slice(all, |(id, _)| id.to_string(), (p.limit, p.cursor));
        let items = page.items.iter().map(|(id, seen)| view(&self.world, *id, seen));
        let items = items.collect::<Result<_, _>>()?;
        Ok(Page { items, next_cursor: page.next_cursor, total: page.total })
    }
}

/// The invitation as a reply shows it. Only the reply to its creation has the token.
fn show(id: OrganizationId, invitation: &Invitation, token: Option<String>) -> wire::Invitation {
    wire::Invitation {
        id: invitation.id,
        organization_id: id,
        email: invitation.email.clone(),
        role: invitation.role,
        accept_token: token,
        created_at: invitation.created_at,
        expires_at: invitation.expires_at,
    }
}

/// Refuses another organization of a user who is a member of the most.
fn check_memberships(world: &World, user: UserId, joins: OrganizationId) -> Result<(), Fault> {
    let known = memberships(world, user)?;
    let known = &known.organizations;
    match known.len() >= MOST_MEMBERSHIPS && !known.contains_key(&joins) {
        true => Err(Fault::NotNow(format!(
            "you are a member of {MOST_MEMBERSHIPS} organizations, which is the most; have yourself removed from \
             one with removeMember first"
        ))),
        false => Ok(()),
    }
}

/// How many organizations a user made, without the personal one.
pub(super) fn made(world: &World, user: UserId) -> Result<u64, Fault> {
    let known = memberships(world, user)?;
    let made = known.organizations.values().filter(|one| one.owner && !one.personal);
    Ok(made.count() as u64)
}

/// The shares that count an invitation: its e-mail, the organization, and the caller, who may send as many as
/// a personal organization.
fn shares(cx: &Call, p: &InviteMember) -> Result<Vec<Share>, Fault> {
    let most = |organization| {
        let most = limit(&cx.world, organization, Quota::Mails)?;
        Ok::<_, Fault>(most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX)))
    };
    let mut shares = vec![
        (format!("to/{}", p.email.key()), MOST_TO_ONE),
        (p.organization_id.to_string(), most(p.organization_id)?),
    ];
    if let Some(user) = &cx.caller.user {
        shares.push((user.id.to_string(), most(user.account.state.personal)?));
    }
    Ok(shares)
}

fn used_up(not_counted: NotCounted) -> Fault {
    let (share, retry_after) = match not_counted {
        NotCounted::UsedUp { share, retry_after } => (share, retry_after),
        NotCounted::Fault(fault) => return fault,
    };
    let what = match share {
        0 => "too many invitations to this e-mail within an hour",
        1 => "too many invitations by this organization within an hour",
        _ => "too many invitations by you within an hour",
    };
    Fault::TooMany { what: what.into(), retry_after }
}

impl Serves<InviteMember> for Platform {
    async fn serve(&self, cx: &Call, p: InviteMember) -> Result<wire::Invitation, Fault> {
        let random = &self.world.ports.random;
        let token = random.secret("svc_inv_", 40).map_err(|_| Fault::Internal)?;
        let known = account_of(&self.world, &p.email)?.map(|(id, _)| id);
        let invitation = Invitation {
            id: random.id(cx.now),
            email: p.email.clone(),
            role: p.role,
            digest: digest(&token),
            created_at: cx.now,
            expires_at: cx.now + INVITATION_LIFETIME,
            accepted_by: None,
        };
        let mail_counted =
            self.invitations.count(&shares(cx, &p)?, cx.now).await.map_err(used_up)?;
        let reply = show(p.organization_id, &invitation, Some(token.clone()));
        let name = cx.ancestry.organization()?.1.name.clone();
        let command = Command::Invite { invitation, known };
        let reply = cx
            .to::<Organizations>(p.organization_id)
            .change(command, move |_| Ok(reply.clone()))
            .await?;
        mail_counted.was_sent();
        let inviter = cx.caller.user.as_ref().map(|user| &user.account.email);
        let text = invitation_mail(inviter, &name, &self.settings, &token);
        self.send_mail(&p.email, "Your invitation", text);
        Ok(reply)
    }
}

/// The inviter chose the organization's name. Quotes in the name are replaced, so that the name
/// cannot end its quotation.
fn invitation_mail(
    inviter: Option<&Email>,
    name: &Name,
    settings: &Settings,
    token: &str,
) -> String {
    let inviter = inviter.map_or("The operator", Email::as_str);
    let name = name.as_str().replace(['"', '“', '”'], "'");
    let api_url = &settings.api_url;
    let how = match settings.dashboard_link("/invitations", token) {
        Some(link) => format!(
            "Open this link within 7 days, and sign in or register there with this e-mail:\n\n{link}"
        ),
        None => format!(
            "Accept within 7 days: sign in or register with this e-mail, and give the token below under \
             Organizations of its dashboard, whose address its operator knows, or enter\n\n\
             svc call acceptInvitation --api-url {api_url} -p token=…\n\n{token}"
        ),
    };
    format!(
        "{inviter} invites you to the organization “{name}” at {api_url}.\n\n{how}\n\nIf you do not know who that is, do nothing."
    )
}

impl Serves<GetInvitations> for Platform {
    async fn serve(&self, cx: &Call, p: GetInvitations) -> Result<Page<wire::Invitation>, Fault> {
        let (id, organization) = cx.ancestry.organization()?;
        let all = organization.invitations.iter();
        let pending = all.filter(|i| i.is_pending(cx.now)).map(|i| show(id, i, None)).collect();
        Ok(pagination::slice(pending, |i| i.id.to_string(), (p.limit, p.cursor)))
    }
}

impl Serves<RevokeInvitation> for Platform {
    async fn serve(&self, cx: &Call, p: RevokeInvitation) -> Result<Empty, Fault> {
        let command = Command::Withdraw(p.invitation_id);
        cx.to::<Organizations>(p.organization_id).change(command, |_| Ok(Empty {})).await
    }
}

impl Serves<AcceptInvitation> for Platform {
    async fn serve(&self, cx: &Call, p: AcceptInvitation) -> Result<wire::Organization, Fault> {
        let user = cx.user()?;
        let none = || Fault::NotFound("invitation for this account");
        if p.token.len() > LONGEST_TOKEN {
            return Err(none());
        }
        let digest = digest(&p.token);
        let id = self.world.store.holder(&invitation_claim(&digest))?.ok_or_else(none)?;
        let _turn = self.world.creation(user.id).await?;
        check_memberships(&self.world, user.id, id)?;
        let command =
            Command::Accept { digest, user: user.id, email: user.account.state.email.clone() };
        change_organization(cx, id, command).await
    }
}

/// Whether this is the token of a pending invitation for this e-mail.
pub(crate) fn is_invited(
    store: &Store,
    token: &str,
    email: &Email,
    now: Timestamp,
) -> Result<bool, Fault> {
    if token.len() > LONGEST_TOKEN {
        return Ok(false);
    }
    let digest = digest(token);
    let held = store.held_by::<Organizations>(&invitation_claim(&digest))?;
    Ok(held.is_some_and(|(_, organization)| {
        let mut invitations = organization.invitations.iter();
        let is_it = |i: &&Invitation| i.digest == digest && i.is_pending(now);
        invitations.find(is_it).is_some_and(|i| i.email.key() == email.key())
    }))
}

impl Serves<UpdateMember> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateMember) -> Result<wire::Organization, Fault> {
        change_organization(cx, p.organization_id, Command::SetRole(p.user_id, p.role)).await
    }
}

impl Serves<RemoveMember> for Platform {
    async fn serve(&self, cx: &Call, p: RemoveMember) -> Result<Empty, Fault> {
        cx.to::<Organizations>(p.organization_id)
            .change(Command::Remove(p.user_id), |_| Ok(Empty {}))
            .await
    }
}
