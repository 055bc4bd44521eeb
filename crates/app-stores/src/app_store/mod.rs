//! Publications in the App Store.

mod progress;

pub use progress::{Progress, restoral, withdrawal};
