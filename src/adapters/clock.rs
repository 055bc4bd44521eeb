//! The system clock. In test builds, `SVC_CLOCK_AHEAD` sets it ahead by a number of seconds.

use actors::runtime::clock::{Clock, Time, Uptime};
use contract::Timestamp;
use futures_util::future::BoxFuture;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub fn system() -> Clock {
    Clock::new(System)
}

struct System;

#[allow(clippy::disallowed_methods, reason = "this is the port of time")]
impl Time for System {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        #[cfg(feature = "failpoints")]
        let since = since + *AHEAD;
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// From the files of Linux: the id of the start, and the seconds since then (proc_uptime(5)).
    fn uptime(&self) -> Option<Uptime> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let since = std::fs::read_to_string("/proc/uptime").ok()?;
        let seconds: f64 = since.split_whitespace().next()?.parse().ok()?;
        Some(Uptime { boot: boot.trim().to_owned(), ms: (seconds * 1000.0) as i64 })
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

#[cfg(feature = "failpoints")]
static AHEAD: std::sync::LazyLock<Duration> = std::sync::LazyLock::new(|| {
    let seconds = std::env::var("SVC_CLOCK_AHEAD").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
});
