//! The audit log: who changed what. The transaction of a change also writes its entry.

use super::side_record::{End, SideRecord};
use contract::{OrganizationId, UserId, operators::AuditEvent};
use serde::{Deserialize, Serialize};
use store::Entries;

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Event(pub AuditEvent);

impl SideRecord for Event {
    fn end(&self) -> End {
        End::Archived
    }

    fn index(&self) -> Entries<Self> {
        let of_user = self.0.user_id.map(|user| EventIndex::User { user });
        let organization = self.0.organization_id;
        let of_organization =
            organization.map(|organization| EventIndex::Organization { organization });
        Entries::default().and_all(of_user).and_all(of_organization)
    }
}

store::entries! {
    /// The index entries of the audit log.
    pub enum EventIndex of Event {
        User { user: UserId } = "user",
        Organization { organization: OrganizationId } = "organization",
    }
}
