//! The time, from the system.

use actors::ports::Clock;
use contract::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// The system's clock.
pub fn system() -> Clock {
    #[allow(clippy::disallowed_methods, reason = "this is the port of time")]
    Clock(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    })
}
