//! Moments in the index: what is due is found there in the order of time.

use contract::Timestamp;

/// A moment as index entries spell it; texts sort as the moments do.
pub fn moment(at: Timestamp) -> String {
    format!("{:013}", at.as_millis().max(0))
}

/// The index entry of what ends at a moment.
pub fn due(at: Timestamp) -> String {
    format!("due/{}", moment(at))
}
