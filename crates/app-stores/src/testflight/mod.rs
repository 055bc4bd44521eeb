//! Publications in TestFlight.

mod progress;

pub use progress::{Progress, restoral, withdrawal};
