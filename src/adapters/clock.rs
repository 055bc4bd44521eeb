//! The time, from the system. Test builds may run ahead of it: `SVC_CLOCK_AHEAD` says by how many
//! seconds.

use actors::ports::Clock;
use contract::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// The system's clock.
pub fn system() -> Clock {
    #[allow(clippy::disallowed_methods, reason = "this is the port of time")]
    Clock(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        #[cfg(feature = "sabotage")]
        let since = since + *AHEAD;
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    })
}

#[cfg(feature = "sabotage")]
static AHEAD: std::sync::LazyLock<std::time::Duration> = std::sync::LazyLock::new(|| {
    let seconds = std::env::var("SVC_CLOCK_AHEAD").ok().and_then(|seconds| seconds.parse().ok());
    std::time::Duration::from_secs(seconds.unwrap_or(0))
});
