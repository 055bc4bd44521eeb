//! An event: a change of a resource that webhooks hear of.

use contract::{AppId, webhooks::EventType};
use serde::Serialize;
use serde_json::Value;

/// What a change of a resource tells webhooks.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub kind: EventType,
    pub app_id: AppId,
    /// The resource as its readers see it, without secrets.
    pub record: Value,
}

impl Event {
    pub fn new(kind: EventType, app_id: AppId, record: &impl Serialize) -> Self {
        // Records of the contract can be written as JSON: replies do it all the time.
        Event { kind, app_id, record: serde_json::to_value(record).unwrap_or_default() }
    }
}
