//! Words for figures and times.

use contract::Timestamp;
use messages::{HOLE, Messages};
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

/// How long ago something was, such as `5 minutes ago`, or how far it is, such as `in 5 minutes`.
/// The times may be references, as templates pass them.
pub fn ago(say: &Messages, then: impl Borrow<Timestamp>, now: impl Borrow<Timestamp>) -> String {
    let (then, now) = (*then.borrow(), *now.borrow());
    match (count(now.since(then)), count(then.since(now))) {
        (Some((n, Unit::Minute)), _) => say.minutes_ago(n),
        (Some((n, Unit::Hour)), _) => say.hours_ago(n),
        (Some((n, Unit::Day)), _) => say.days_ago(n),
        (Some((n, Unit::Month)), _) => say.months_ago(n),
        (None, Some((n, Unit::Minute))) => say.in_minutes(n),
        (None, Some((n, Unit::Hour))) => say.in_hours(n),
        (None, Some((n, Unit::Day))) => say.in_days(n),
        (None, Some((n, Unit::Month))) => say.in_months(n),
        (None, None) if then > now => say.in_a_moment(),
        (None, None) => say.just_now(),
    }
}

/// The words before and after the hole of a sentence.
pub fn at_hole(sentence: impl AsRef<str>) -> (String, String) {
    let sentence = sentence.as_ref();
    let (before, after) = sentence.split_once(HOLE).unwrap_or((sentence, ""));
    (before.to_owned(), after.to_owned())
}

/// The day of a moment in UTC, such as `2026-01-31`.
pub fn day(at: impl Display) -> String {
    at.to_string().chars().take(10).collect()
}

/// Words as the begin of a sentence.
pub fn sentence(words: impl AsRef<str>) -> String {
    let mut letters = words.as_ref().chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    first + letters.as_str()
}

/// The program that a header `User-Agent` names, such as `Firefox, Linux`. Browsers say that they are other
/// browsers too: the name that only one of them says counts.
pub fn program(agent: &str) -> String {
    const BROWSERS: [(&str, &str); 6] = [
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("FxiOS/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    const SYSTEMS: [(&str, &str); 7] = [
        ("Android", "Android"),
        ("iPhone", "iOS"),
        ("iPad", "iPadOS"),
        ("Windows", "Windows"),
        ("Macintosh", "macOS"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ];
    let named = |names: &[(&str, &'static str)]| {
        names.iter().find(|(part, _)| agent.contains(part)).map(|(_, name)| *name)
    };
    match (named(&BROWSERS), named(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser}, {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, _) => agent.split([' ', '/']).next().unwrap_or(agent).to_owned(),
    }
}

/// The first letter of a name, to stand for it in a small place.
pub fn initial(name: &str) -> String {
    name.chars()
        .find(|c| c.is_alphanumeric())
        .map(|c| c.to_uppercase().collect())
        .unwrap_or_default()
}

enum Unit {
    Minute,
    Hour,
    Day,
    Month,
}

/// A time in its largest whole unit. `None`: less than a minute.
fn count(time: Duration) -> Option<(usize, Unit)> {
    let minutes = (time.as_secs() / 60) as usize;
    match minutes {
        0 => None,
        1..60 => Some((minutes, Unit::Minute)),
        60..1440 => Some((minutes / 60, Unit::Hour)),
        1440..86_400 => Some((minutes / 1440, Unit::Day)),
        _ => Some((minutes / 43_200, Unit::Month)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_names() {
        for (agent, name) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
                "Firefox, Linux",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0",
                "Edge, Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 \
                 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
                "Safari, iOS",
            ),
            (
                "Mozilla/5.0 (Linux; Android 15) Chrome/130.0.0.0 Mobile Safari/537.36",
                "Chrome, Android",
            ),
            ("svc/0.1.0 (linux)", "svc"),
            ("curl/8.5.0", "curl"),
            ("", ""),
        ] {
            assert_eq!(program(agent), name);
        }
    }

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
        let (say, then) = (Messages::default(), Timestamp::from_millis(1_800_000_000_000));
        for (seconds, words) in [
            (59, "just now"),
            (60, "1 minute ago"),
            (7199, "1 hour ago"),
            (90_000, "1 day ago"),
            (86_400 * 61, "2 months ago"),
        ] {
            assert_eq!(ago(&say, then, then + Duration::from_secs(seconds)), words);
        }
        assert_eq!(ago(&say, then + Duration::from_secs(59), then), "in a moment");
        assert_eq!(ago(&say, then + Duration::from_secs(7199), then), "in 1 hour");
    }
}
