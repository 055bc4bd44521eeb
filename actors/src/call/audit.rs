//! The audit log: who changed what. An entry is written in the transaction of the change itself.

use contract::{EventId, operators::AuditEvent};
use serde::{Deserialize, Serialize};
use store::Record;

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Event(pub AuditEvent);

impl Event {
    /// The key of the entry. Keys sort by time.
    pub fn key(id: EventId) -> String {
        id.to_string()
    }
}

impl Record for Event {
    const TREE: &'static str = "audit";
    const SCHEMA: u16 = 1;

    fn index(&self) -> Vec<String> {
        self.0.user_id.iter().map(|user| format!("user/{user}")).collect()
    }
}
