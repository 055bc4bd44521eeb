//! Invitations into an organization.

use contract::{Email, InvitationId, Timestamp, UserId, organizations::MemberRole};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most pending invitations of an organization. Its record holds all of them.
pub(super) const MOST_PENDING: usize = 200;

/// How long an invitation is valid.
pub const INVITATION_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// An invitation of a person, as the organization keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invitation {
    pub id: InvitationId,
    /// Only an account with this e-mail can accept.
    pub email: Email,
    pub role: MemberRole,
    /// The digest of the token.
    pub digest: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub accepted_by: Option<UserId>,
}

impl Invitation {
    /// Whether the invitation can be accepted.
    pub fn is_pending(&self, now: Timestamp) -> bool {
        self.accepted_by.is_none() && self.expires_at > now
    }
}
