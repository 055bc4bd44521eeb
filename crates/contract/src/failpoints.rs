//! Functions that fail on purpose. Only test builds have them.

use crate::{Name, ProjectId, authentication::Empty};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Failpoints";

    /// Panic where a test needs it.
    "svc_test_panic": Failpoint { project_id: ProjectId, place: PanicPoint, message: Name } -> Empty
    { who: Member of (project_id), effect: Change }
}

/// Where to panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PanicPoint {
    /// In the handler of the call.
    Serve,
    /// In the project's owner, while it decides.
    Owner,
}
