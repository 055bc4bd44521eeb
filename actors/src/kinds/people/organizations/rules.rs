//! The rules of an organization.

use super::{
    invitations::{Invitation, MOST_PENDING},
    memberships::{Membership, Memberships, MembershipsDelta},
};
use crate::{
    kinds::world::World,
    runtime::{
        resource::{Kept, Moment, Resource, Retry, Step, Unique, Work},
        uses::Uses,
    },
};
use contract::{
    Email, Fault, InvitationId, Name, OrganizationId, Timestamp, UserId, authentication::Role,
    organizations::MemberRole, quotas::Quota,
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use store::{Change, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Organizations;

/// The stored state of an organization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Organization {
    pub name: Name,
    /// The user who created the organization.
    pub owner: UserId,
    /// Created with an account. Such an organization has no other members and cannot be deleted.
    pub personal: bool,
    /// The owner is one of them.
    pub members: Vec<Member>,
    /// Removed members that member lists of projects may still name.
    pub leaving: Vec<UserId>,
    /// Pending and accepted invitations. A new invitation drops the expired ones.
    pub invitations: Vec<Invitation>,
    /// Whether it is deleted if it has no projects. Until that is known, it is not found.
    #[serde(default, alias = "deleting", skip_serializing_if = "std::ops::Not::not")]
    pub closing: bool,
    pub created_at: Timestamp,
    /// When a command last changed the organization. Effects do not count.
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    pub user: UserId,
    /// The owner has the role `admin`.
    pub role: Role,
    pub joined_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct New {
    pub name: Name,
    pub owner: UserId,
}

#[derive(Debug, Clone)]
pub enum Command {
    Rename(Option<Name>),
    /// Invite a person. A new invitation replaces the one for the same e-mail.
    Invite {
        invitation: Invitation,
        /// The user with that e-mail, if there is one.
        known: Option<UserId>,
    },
    /// Withdraw a pending invitation.
    Withdraw(InvitationId),
    Accept {
        /// The digest of the invitation's token.
        digest: String,
        user: UserId,
        /// The user's e-mail. It must be the invited one.
        email: Email,
    },
    SetRole(UserId, MemberRole),
    /// Remove a member.
    Remove(UserId),
    /// Delete the organization; without `cascade`, only if it has no projects.
    Delete {
        /// Whether to delete the projects too.
        cascade: bool,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Look whether there are projects.
    FindProjects,
    /// Remove the leaving members from the member lists of the projects.
    Unlist,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Whether there are projects.
    HasProjects(bool),
    /// No project lists these users any more.
    Unlisted(Vec<UserId>),
}

impl Resource for Organizations {
    const INDEX: u16 = 2;
    type New = New;
    type State = Organization;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(at: &Moment<Self>, New { name, owner }: New) -> Result<Step<Self>, Fault> {
        Ok(create(at, name, owner))
    }

    fn on_command(
        organization: Organization,
        at: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        organization.on_command(at, command)
    }

    fn on_outcome(organization: Organization, _: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        organization.on_outcome(&outcome)
    }

    fn end(organization: &Organization, at: &Moment<Self>) -> Change {
        let gone = organization.members.iter().map(|member| leave(member.user, at.id));
        gone.fold(Change::new(), Change::and)
    }

    fn next(organization: &Organization) -> Option<Work<Effect>> {
        match organization.closing {
            true => Some(Work::now(Effect::FindProjects)),
            false => (!organization.leaving.is_empty()).then(|| Work::now(Effect::Unlist)),
        }
    }

    fn adopt(kept: &mut Kept<Self>, intent: &Value) {
        kept.deleting = intent.pointer("/Empty/cascade") == Some(&Value::Bool(true));
        kept.state.closing &= !kept.deleting;
    }

    fn is_deleted(organization: &Organization) -> bool {
        organization.closing
    }

    fn uses(organization: &Organization) -> Uses {
        Uses::default().and(Quota::Members, organization.members.len() as u64)
    }

    fn claims(organization: &Organization) -> Vec<Unique<Self>> {
        let claims = organization.invitations.iter().map(|i| invitation_claim(&i.digest));
        claims.map(|claim| Unique::new(claim, || Fault::Stale)).collect()
    }

    fn perform(
        effect: Effect,
        id: OrganizationId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, kept, world))
    }
}

pub fn invitation_claim(digest: &str) -> OrganizationClaim {
    OrganizationClaim::Invitation { digest: digest.to_owned() }
}

store::claims! {
    /// The unique values of organizations.
    pub enum OrganizationClaim of Organizations {
        /// The token of an invitation.
        Invitation { digest: String } = "invitation",
    }
}

fn create(at: &Moment<Organizations>, name: Name, owner: UserId) -> Step<Organizations> {
    let organization = Organization {
        name,
        owner,
        personal: false,
        members: vec![Member { user: owner, role: Role::Admin, joined_at: at.now }],
        leaving: Vec::new(),
        invitations: Vec::new(),
        closing: false,
        created_at: at.now,
        updated_at: at.now,
    };
    let membership = Membership { role: Role::Admin, owner: true, personal: false, since: at.now };
    Step::put(organization).also(join(owner, at.id, membership))
}

fn join(user: UserId, organization: OrganizationId, membership: Membership) -> Change {
    Change::new().merge::<Memberships>(&user, MembershipsDelta::Join(organization, membership))
}

fn leave(user: UserId, organization: OrganizationId) -> Change {
    Change::new().merge::<Memberships>(&user, MembershipsDelta::Leave(organization))
}

impl Organization {
    fn on_command(
        mut self,
        at: &Moment<Organizations>,
        command: Command,
    ) -> Result<Step<Organizations>, Fault> {
        let mut also = Change::new();
        match command {
            Command::Rename(name) => self.name = name.unwrap_or(self.name),
            Command::Invite { invitation, known } => self.invite(at.now, invitation, known)?,
            Command::Withdraw(id) => self.withdraw(at.now, id)?,
            Command::Accept { digest, user, email } => {
                match self.accept(at, &digest, user, &email)? {
                    Some(joined) => also = joined,
                    None => return Ok(Step::keep()),
                }
            }
            Command::SetRole(user, role) => {
                self.may_change(user, "the owner's role cannot be changed; other members' can")?;
                let role = Role::from(role);
                let member = self.member_mut(user)?;
                member.role = role;
                let since = member.joined_at;
                also = join(user, at.id, Membership { role, owner: false, personal: false, since });
            }
            Command::Remove(user) => {
                let owner = "the owner cannot be removed; delete the organization instead";
                self.may_change(user, owner)?;
                self.member_mut(user)?;
                self.members.retain(|m| m.user != user);
                self.leaving.push(user);
                also = leave(user, at.id);
            }
            Command::Delete { cascade } => return self.delete(cascade),
        }
        self.updated_at = at.now;
        Ok(Step::put(self).also(also))
    }

    /// The membership of the account that accepts an invitation. `None`: it has done so before.
    fn accept(
        &mut self,
        at: &Moment<Organizations>,
        digest: &str,
        user: UserId,
        email: &Email,
    ) -> Result<Option<Change>, Fault> {
        let no = || Fault::NotFound("invitation for this account");
        let invitation = self.invitations.iter_mut().find(|i| i.digest == digest).ok_or_else(no)?;
        let is_member = self.members.iter().any(|m| m.user == user);
        if invitation.accepted_by == Some(user) && is_member {
            return Ok(None);
        }
        if !invitation.is_pending(at.now) || invitation.email.key() != email.key() {
            return Err(no());
        }
        invitation.accepted_by = Some(user);
        if is_member {
            return Ok(Some(Change::new()));
        }
        if self.leaving.contains(&user) {
            return Err(Fault::Busy);
        }
        let role = Role::from(invitation.role);
        self.members.push(Member { user, role, joined_at: at.now });
        let membership = Membership { role, owner: false, personal: false, since: at.now };
        Ok(Some(join(user, at.id, membership)))
    }

    fn withdraw(&mut self, now: Timestamp, id: InvitationId) -> Result<(), Fault> {
        let is_it = |i: &Invitation| i.id == id && i.is_pending(now);
        if !self.invitations.iter().any(is_it) {
            return Err(Fault::NotFound("pending invitation"));
        }
        self.invitations.retain(|i| i.id != id);
        Ok(())
    }

    /// Refuses a change of the owner's membership.
    fn may_change(&self, user: UserId, why_not: &str) -> Result<(), Fault> {
        if user == self.owner { Err(Fault::NotNow(why_not.into())) } else { Ok(()) }
    }

    fn delete(mut self, cascade: bool) -> Result<Step<Organizations>, Fault> {
        if self.personal {
            return Err(Fault::NotNow(
                "a personal organization cannot be deleted; delete its projects instead".into(),
            ));
        }
        if cascade {
            return Ok(Step::delete(self));
        }
        self.closing = true;
        Ok(Step::put(self))
    }

    fn invite(
        &mut self,
        now: Timestamp,
        invitation: Invitation,
        known: Option<UserId>,
    ) -> Result<(), Fault> {
        if self.personal {
            return Err(Fault::NotNow(
                "a personal organization has no other members; create an organization first".into(),
            ));
        }
        if known.is_some_and(|user| self.members.iter().any(|m| m.user == user)) {
            return Err(Fault::Exists(
                "this person is a member already; change the role with updateMember".into(),
            ));
        }
        let same = |i: &Invitation| i.email.key() == invitation.email.key();
        self.invitations.retain(|i| i.expires_at > now && !same(i));
        if self.invitations.iter().filter(|i| i.is_pending(now)).count() >= MOST_PENDING {
            return Err(Fault::NotNow(format!(
                "{MOST_PENDING} invitations are pending; withdraw some with svc_revokeInvitation"
            )));
        }
        // Those that were accepted stay, so that a repeated acceptance succeeds: the latest of them.
        if self.invitations.len() >= 2 * MOST_PENDING
            && let Some(oldest) = self.invitations.iter().position(|i| i.accepted_by.is_some())
        {
            self.invitations.remove(oldest);
        }
        self.invitations.push(invitation);
        Ok(())
    }

    fn member_mut(&mut self, user: UserId) -> Result<&mut Member, Fault> {
        self.members.iter_mut().find(|m| m.user == user).ok_or(Fault::NotFound("member"))
    }

    fn on_outcome(mut self, outcome: &Outcome) -> Step<Organizations> {
        match outcome {
            Outcome::HasProjects(true) => {
                self.closing = false;
                Step::put(self)
            }
            Outcome::HasProjects(false) => Step::delete(self),
            Outcome::Unlisted(users) => {
                self.leaving.retain(|user| !users.contains(user));
                Step::put(self)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::invitations::INVITATION_LIFETIME, *};
    use contract::{Id, UserId};
    use ulid::Ulid;

    #[test]
    fn an_organization_has_at_most_200_pending_invitations() {
        let day = |n: i64| Timestamp::from_millis(n * 24 * 3600 * 1000);
        let at = Moment { id: OrganizationId::of(Ulid(1)), now: day(0) };
        let Step { next, .. } = create(&at, "Acme".parse().unwrap(), UserId::of(Ulid(2)));
        let crate::runtime::resource::Next::Put(mut acme) = next else { unreachable!() };
        let mut invite = |n: u128, now: Timestamp| {
            let invitation = Invitation {
                id: InvitationId::of(Ulid(n)),
                email: format!("person{n}@example.com").parse().unwrap(),
                role: MemberRole::Client,
                digest: n.to_string(),
                created_at: now,
                expires_at: now + INVITATION_LIFETIME,
                accepted_by: None,
            };
            acme.invite(now, invitation, None)
        };
        for n in 0..200 {
            assert_eq!(invite(n, day(i64::from(n >= 100))), Ok(()), "{n}");
        }
        assert!(matches!(invite(200, day(1)), Err(Fault::NotNow(_))));
        assert_eq!(invite(199, day(1)), Ok(()), "one that is renewed takes no more room");
        assert_eq!(invite(200, day(7)), Ok(()), "those that expired take none");
    }
}
