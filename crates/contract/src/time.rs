//! Timestamps: RFC 3339, in UTC, with milliseconds.

use jiff::fmt::temporal::DateTimePrinter;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

/// A point in time, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// The text is not a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a moment such as 2026-01-31T12:00:00.000Z")]
pub struct NotATimestamp;

static PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// A duration in words, rounded up.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..=1 => "a second".into(),
        2..=90 => format!("{seconds} seconds"),
        _ => format!("{} minutes", seconds.div_ceil(60)),
    }
}

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Timestamp(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The date in UTC, such as `2026-01-31`.
    pub fn day(self) -> String {
        self.to_string().chars().take_while(|c| *c != 'T').collect()
    }

    /// The first moment of the next month in UTC. A moment beyond the calendar is its own.
    pub fn end_of_month(self) -> Timestamp {
        let end = || {
            let now = jiff::Timestamp::from_millisecond(self.0)?.to_zoned(jiff::tz::TimeZone::UTC);
            let next = now.date().first_of_month().checked_add(jiff::Span::new().months(1))?;
            Ok::<_, jiff::Error>(next.to_zoned(jiff::tz::TimeZone::UTC)?.timestamp())
        };
        end().map_or(self, |end| Timestamp(end.as_millisecond()))
    }

    /// The time from `earlier` to this timestamp. Zero if `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Timestamp;
    fn add(self, time: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl std::ops::Sub<Duration> for Timestamp {
    type Output = Timestamp;
    fn sub(self, time: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = jiff::Timestamp::from_millisecond(self.0).map_err(|_| fmt::Error)?;
        PRINTER.print_timestamp(&moment, jiff::fmt::StdFmtWrite(f)).map_err(|_| fmt::Error)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = NotATimestamp;
    fn from_str(text: &str) -> Result<Self, NotATimestamp> {
        let moment: jiff::Timestamp = text.parse().map_err(|_| NotATimestamp)?;
        Ok(Timestamp(moment.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// Reads text, or the date format of Parse client libraries: `{"__type": "Date", "iso": "…"}`.
impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "must be a moment such as 2026-01-31T12:00:00.000Z")]
        enum Spelling {
            Text(String),
            Date {
                #[serde(rename = "__type")]
                kind: String,
                iso: String,
            },
        }
        let text = match Spelling::deserialize(d)? {
            Spelling::Text(text) => text,
            Spelling::Date { kind, iso } if kind == "Date" => iso,
            Spelling::Date { .. } => return Err(serde::de::Error::custom(NotATimestamp)),
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}
