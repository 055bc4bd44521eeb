//! Publications in Google Play.

mod progress;

pub use progress::{Progress, restoral, withdrawal};
