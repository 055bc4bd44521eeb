//! Organizations, their members and invitations.

use crate::{
    Email, InvitationId, Name, NewName, OrganizationId, Page, Timestamp, UserId,
    authentication::{Empty, Role},
    page::*,
    text::Query,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Organizations";

    /// Create an organization. The caller becomes its owner.
    "createOrganization": CreateOrganization {
        /// What people call the organization. It need not be unique.
        name: NewName,
    } -> Organization
    { who: User, effect: Change, person: true }

    /// Read an organization with its members.
    "getOrganization": GetOrganization { organization_id: OrganizationId } -> Organization
    { who: Member of (organization_id), effect: Read }

    /// Change an organization.
    "updateOrganization": UpdateOrganization {
        organization_id: OrganizationId,
        /// The new name. Without it, the name stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<NewName>,
    } -> Organization { who: OwnerOrAdmin of (organization_id), effect: Change }

    /// Delete an organization.
    ///
    /// The call fails while the organization has projects, unless `cascade` is true. Then its
    /// projects are deleted, too, and the volumes of their instances at once.
    "deleteOrganization": DeleteOrganization {
        organization_id: OrganizationId,
        /// Delete its projects, too. By default, an organization with projects is not deleted.
        #[serde(default)]
        cascade: bool,
    } -> DeletedOrganization { who: Owner of (organization_id), effect: Change,
        errors: [NotNow "it still has projects, or a payment is not settled, or it is the personal organization"] }

    /// List the caller's organizations. The master key lists all organizations.
    "listOrganizations": ListOrganizations {
        /// Return only organizations that have this in their name, in any case, or the organization
        /// with this id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Organization> { who: User, effect: Read }

    /// Invite a person into an organization.
    ///
    /// The accept token is only in this reply and in the mail to the invited person. It is valid
    /// for 7 days, for an account with this e-mail. A new invitation of the same e-mail invalidates
    /// the previous token. Within an hour, one e-mail gets at most three invitations, and an
    /// organization and a caller each send at most fifty.
    "inviteMember": InviteMember {
        organization_id: OrganizationId,
        email: Email,
        /// The role that the invited person gets by accepting.
        role: MemberRole,
    } -> Invitation
    { who: OwnerOrAdmin of (organization_id), effect: Change, secret: true,
        errors: [Exists "already a member",
            NotNow "a personal organization has no other members, or 200 invitations are pending",
            RateLimited "too many invitations to this e-mail, or by this organization"] }

    /// List the pending invitations of an organization.
    "svc_getInvitations": GetInvitations {
        organization_id: OrganizationId,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Invitation> { who: OwnerOrAdmin of (organization_id), effect: Read }

    /// Withdraw a pending invitation. Its token becomes invalid at once.
    "svc_revokeInvitation": RevokeInvitation {
        organization_id: OrganizationId,
        /// The id of the invitation, from `svc_getInvitations`.
        invitation_id: InvitationId,
    } -> Empty
    { who: OwnerOrAdmin of (organization_id), effect: Change,
        errors: [NotFound "no such invitation is pending"] }

    /// Accept an invitation. A second acceptance changes nothing.
    "acceptInvitation": AcceptInvitation {
        /// The token from the mail, or `acceptToken` from the reply of `inviteMember`.
        token: String,
    } -> Organization
    { who: User, effect: Change, person: true, errors: [NotFound "the token is wrong or expired, or meant for another e-mail"] }

    /// Change the role of a member.
    "updateMember": UpdateMember {
        organization_id: OrganizationId,
        user_id: UserId,
        /// The new role. It counts from the member's next call.
        role: MemberRole,
    } -> Organization
    { who: OwnerOrAdmin of (organization_id), effect: Change,
        errors: [NotFound "not a member", NotNow "the owner's role cannot be changed"] }

    /// Remove a member. Every member except the owner may leave.
    "removeMember": RemoveMember { organization_id: OrganizationId, user_id: UserId } -> Empty
    { who: OwnerOrAdmin of (organization_id, user_id), effect: Change,
        errors: [NotFound "not a member", NotNow "the owner cannot be removed"] }
}

records! {
    /// An organization, whose members share its projects.
    pub struct Organization {
        id: OrganizationId,
        /// What people call the organization. It need not be unique.
        name: Name,
        /// The id of the owner, who has the role `admin` and cannot be removed.
        owner_id: UserId,
        /// Whether the organization was created with its owner's account. A personal organization
        /// has no other members and cannot be deleted.
        personal: bool,
        /// The members in the order in which they joined, the owner first.
        members: Vec<Member>,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// A member of an organization.
    pub struct Member {
        user_id: UserId,
        email: Email,
        /// The display name of the user.
        name: Name,
        /// What the member may do in the organization.
        role: Role,
        /// When the user accepted the invitation, or created the organization.
        joined_at: Timestamp,
    }

    /// A pending invitation.
    pub struct Invitation {
        id: InvitationId,
        organization_id: OrganizationId,
        email: Email,
        /// The role that the invited person gets by accepting.
        role: MemberRole,
        /// The token for `acceptInvitation`. Only the reply of `inviteMember` contains it.
        accept_token: Option<String>,
        created_at: Timestamp,
        expires_at: Timestamp,
    }

    /// What was deleted with an organization.
    pub struct DeletedOrganization {
        /// How many objects are deleted.
        deleted: OrganizationContents,
    }

    /// The numbers of objects that belonged to an organization.
    pub struct OrganizationContents {
        /// The number of projects, which are deleted with all that is in them.
        projects: u64,
    }
}

/// The roles that a member can get. The owner has the role `admin`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum MemberRole {
    /// Works on own projects, and on projects that list the user as a member.
    Client,
    /// Works on all projects of the organization.
    Supervisor,
    /// Full access to the organization.
    Admin,
}

impl From<MemberRole> for Role {
    fn from(role: MemberRole) -> Role {
        match role {
            MemberRole::Client => Role::Client,
            MemberRole::Supervisor => Role::Supervisor,
            MemberRole::Admin => Role::Admin,
        }
    }
}
