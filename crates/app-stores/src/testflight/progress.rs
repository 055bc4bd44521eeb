//! How far a publication in TestFlight has come, and what follows from that. Pure.

use crate::{Action, Undo};
use serde::{Deserialize, Serialize};

/// How far a publication has come. The default is the beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {}

/// What withdrawing the publication will do.
pub fn withdrawal(_progress: &Progress) -> Undo {
    Undo { action: Action::Nothing, text: String::new() }
}

/// What restoring the publication will do, after a later one was withdrawn.
pub fn restoral(_progress: &Progress) -> Undo {
    Undo { action: Action::Nothing, text: String::new() }
}
