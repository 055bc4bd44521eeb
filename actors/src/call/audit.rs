//! The audit log: who changed what. The transaction of a change also writes its entry.

use contract::{EventId, UserId, operators::AuditEvent};
use serde::{Deserialize, Serialize};
use store::{Entries, Record};

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Event(pub AuditEvent);

impl Record for Event {
    const TREE: &'static str = "audit";
    const SCHEMA: u16 = 1;
    const CACHED: bool = false;
    type Key = EventId;
    type Content = Self;

    fn index(event: &Self) -> Entries<Self> {
        Entries::default().and_all(event.0.user_id.map(|user| EventIndex::User { user }))
    }
}

store::entries! {
    /// The index entries of the audit log.
    pub enum EventIndex of Event {
        User { user: UserId } = "user",
    }
}
