//! Words for figures and times.

use contract::Timestamp;
use std::{borrow::Borrow, fmt::Display, time::Duration};

/// A size, such as `1.4 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, larger);
    }
    format!("{size:.1} {unit}")
}

/// How long ago something was, such as `5 minutes ago`.
/// The times may be references, as templates pass them.
pub fn ago(then: impl Borrow<Timestamp>, now: impl Borrow<Timestamp>) -> String {
    let age = now.borrow().since(*then.borrow());
    match count(age) {
        None => "just now".into(),
        Some(words) => format!("{words} ago"),
    }
}

/// The day of a moment in UTC, such as `2026-01-31`.
pub fn day(at: impl Display) -> String {
    at.to_string().chars().take(10).collect()
}

/// The largest whole unit of a time. `None`: less than a minute.
fn count(time: Duration) -> Option<String> {
    let minutes = time.as_secs() / 60;
    let (n, unit) = match minutes {
        0 => return None,
        1..60 => (minutes, "minute"),
        60..1440 => (minutes / 60, "hour"),
        1440..86_400 => (minutes / 1440, "day"),
        _ => (minutes / 43_200, "month"),
    };
    let plural = if n == 1 { "" } else { "s" };
    Some(format!("{n} {unit}{plural}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_words() {
        for (bytes, words) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (5 << 20, "5.0 MiB"),
            (3 << 40, "3.0 TiB"),
        ] {
            assert_eq!(size(bytes), words);
        }
        let then = Timestamp::from_millis(1_800_000_000_000);
        for (seconds, words) in [
            (59, "just now"),
            (60, "1 minute ago"),
            (7199, "1 hour ago"),
            (90_000, "1 day ago"),
            (86_400 * 61, "2 months ago"),
        ] {
            assert_eq!(ago(then, then + Duration::from_secs(seconds)), words);
        }
    }
}
