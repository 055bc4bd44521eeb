//! Publications in Firebase App Distribution.

mod progress;

pub use progress::{Progress, restoral, withdrawal};
