//! What can be undone. No store takes a version back from the devices that have it.

use serde::{Deserialize, Serialize};

pub use contract::publishing::RollbackAction as Action;

/// What a store will do when a publication is withdrawn, or an earlier one restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// What happens, for programs.
    pub action: Action,
    /// What it does for users and what it cannot do, as one or two plain sentences.
    pub text: String,
}
