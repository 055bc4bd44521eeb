//! Logs and metrics.

use crate::config::LogFormat;
use contract::Fault;
use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use std::{borrow::Cow, collections::HashMap, io, time::Duration};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{EnvFilter, fmt};

/// Lines that may wait for the thread that writes them. Further lines are dropped. The buffer is
/// allocated at the start.
const MOST_LINES: usize = 8192;

/// Starts logging to standard error. A thread of its own writes the lines until the guard is
/// dropped.
pub fn start_logging(filter: &str, format: LogFormat) -> Result<WorkerGuard, String> {
    // At its debug level, the engine's client logs whole requests, which contain the secrets of
    // containers.
    let filter = EnvFilter::try_new(format!("{filter},bollard=info"))
        .map_err(|e| format!("the log filter is not valid: {e}"))?;
    let (writer, guard) =
        NonBlockingBuilder::default().buffered_lines_limit(MOST_LINES).finish(std::io::stderr());
    let writer = move || OneLine(writer.clone());
    let lines = fmt().with_env_filter(filter).with_writer(writer).with_target(false);
    let started = match format {
        LogFormat::Pretty => lines.with_ansi(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|e| e.to_string())?;
    Ok(guard)
}

/// Writes each event as one line: text from a caller cannot imitate a log line of the service.
struct OneLine<W>(W);

impl<W: io::Write> io::Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write_all(&one_line(event))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Escapes the control characters of an event, except its final line feed.
fn one_line(event: &[u8]) -> Cow<'_, [u8]> {
    let text = event.strip_suffix(b"\n").unwrap_or(event);
    if !text.iter().any(u8::is_ascii_control) {
        return Cow::Borrowed(event);
    }
    let mut line = Vec::with_capacity(event.len() + 16);
    for byte in text {
        if byte.is_ascii_control() {
            line.extend(byte.escape_ascii());
        } else {
            line.push(*byte);
        }
    }
    line.push(b'\n');
    Cow::Owned(line)
}

/// The content type of [`Figures::text`].
pub const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the histogram buckets, in seconds.
const BOUNDS: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// The name and the value of one label.
type Label<V> = [(&'static str, V); 1];

/// The metrics of `GET /metrics`.
pub struct Figures {
    registry: Registry,
    functions: HashMap<&'static str, FunctionFigures>,
    refusals: Family<Label<u16>, Counter>,
    /// Bytes of artifacts that clients uploaded.
    pub uploaded: Counter,
    /// Bytes of artifacts and backups that clients downloaded.
    pub downloaded: Counter,
    gauges: Vec<(Gauge, Read)>,
}

struct FunctionFigures {
    calls: Counter,
    seconds: Histogram,
}

/// Values that are read when somebody requests the metrics.
pub struct Gauges {
    pub actors: i64,
    pub parked: i64,
    /// Changes that wait for the store's committer.
    pub waiting: i64,
    /// Records that were read since the start, from memory or from the disk.
    pub reads: i64,
    /// Size of the store on the disk, in bytes.
    pub store_bytes: i64,
    /// Seconds since the copy was what the database holds; 0 without a database.
    pub copy_age: i64,
    /// Callers that the rate limiter knows.
    pub buckets: i64,
    /// 1 while the container engine is reachable, else 0.
    pub engine_up: i64,
    /// Containers of this installation that belong to no instance.
    pub orphans: i64,
    /// How often an instance at rest differed from its record, since the start.
    pub drift: i64,
    /// 1 while deletions by time wait after a jump of the clock, else 0.
    pub clock_jumped: i64,
    /// Events in the outbox of webhooks.
    pub events: i64,
    /// Deliveries that were not made, because too many of their organization waited, since the start.
    pub dropped: i64,
    /// Checkouts whose money arrived, and which are not settled or do not match.
    pub unsettled: i64,
}

type Read = fn(&Gauges) -> i64;

/// The name, help text and source of each gauge. The library appends a full stop to the help text.
const GAUGES: [(&str, &str, Read); 14] = [
    ("svc_actors", "Actors in memory", |now| now.actors),
    ("svc_actors_parked", "Actors that gave up and wait for an operator", |now| now.parked),
    ("svc_store_changes_waiting", "Changes that wait for the disk", |now| now.waiting),
    ("svc_store_reads", "Records read since the start", |now| now.reads),
    ("svc_store_bytes", "Bytes of the store on the disk", |now| now.store_bytes),
    (
        "svc_store_copy_age_seconds",
        "Seconds since the copy was what the database holds, 0 without a database",
        |now| now.copy_age,
    ),
    ("svc_limiter_callers", "Callers that the limiter knows", |now| now.buckets),
    ("svc_engine_up", "Whether the container engine answers", |now| now.engine_up),
    ("svc_orphans", "Containers of this installation that no instance knows", |now| now.orphans),
    (
        "svc_drift",
        "Instances at rest found not to be as their record said, since the start",
        |now| now.drift,
    ),
    ("svc_clock_jumped", "Whether deletions by time wait after a jump of the clock", |now| {
        now.clock_jumped
    }),
    ("svc_events_waiting", "Events that wait for their deliveries to webhooks", |now| now.events),
    (
        "svc_deliveries_dropped",
        "Deliveries not made because too many of their organization waited, since the start",
        |now| now.dropped,
    ),
    (
        "svc_checkouts_unsettled",
        "Checkouts whose money arrived, and which are not settled or do not match",
        |now| now.unsettled,
    ),
];

impl Default for Figures {
    /// Registers every declared function and endpoint, so that each has a metric before its first
    /// call.
    fn default() -> Figures {
        let calls = Family::<Label<&'static str>, Counter>::default();
        let seconds: Family<Label<&'static str>, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(BOUNDS));
        let refusals = Family::default();
        let (uploaded, downloaded) = (Counter::default(), Counter::default());
        let endpoints = contract::endpoint::all().map(|endpoint| endpoint.name);
        let names = contract::all().map(|function| function.name).chain(endpoints);
        let functions = names.map(|name| {
            let label = [("function", name)];
            let (calls, seconds) =
                (calls.get_or_create_owned(&label), seconds.get_or_create_owned(&label));
            (name, FunctionFigures { calls, seconds })
        });
        let functions = functions.collect();

        let mut registry = Registry::default();
        registry.register("svc_function_calls", "Calls of each function", calls);
        registry.register(
            "svc_function_seconds",
            "How long the calls of each function took",
            seconds,
        );
        registry.register(
            "svc_refusals",
            "Answers that were not a success, by code",
            refusals.clone(),
        );
        registry.register(
            "svc_artifact_bytes_received",
            "Bytes of artifacts that came in",
            uploaded.clone(),
        );
        registry.register(
            "svc_artifact_bytes_sent",
            "Bytes of artifacts that went out",
            downloaded.clone(),
        );
        let gauges = GAUGES.map(|(name, help, read)| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            (gauge, read)
        });
        Figures { registry, functions, refusals, uploaded, downloaded, gauges: gauges.into() }
    }
}

impl Figures {
    /// Counts a finished call, and its refusal.
    pub fn called(&self, function: Option<&'static str>, took: Duration, fault: Option<&Fault>) {
        if let Some(figures) = function.and_then(|name| self.functions.get(name)) {
            figures.calls.inc();
            figures.seconds.observe(took.as_secs_f64());
        }
        if let Some(fault) = fault {
            self.refusals.get_or_create(&[("code", fault.code())]).inc();
        }
    }

    /// The metrics in the OpenMetrics text format.
    pub fn text(&self, now: &Gauges) -> Result<String, std::fmt::Error> {
        for (gauge, read) in &self.gauges {
            gauge.set(read(now));
        }
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let line = |event: &str| String::from_utf8_lossy(&one_line(event.as_bytes())).into_owned();
        assert_eq!(line("plain: \u{e9}\n"), "plain: \u{e9}\n");
        assert_eq!(line("a\nERROR b\r\u{1b}[2J\n"), "a\\nERROR b\\r\\x1b[2J\n");
    }

    /// Dashboards and alerts depend on these lines.
    #[test]
    fn the_figures_keep_their_names_and_buckets() {
        let figures = Figures::default();
        figures.called(Some("registerUser"), Duration::from_millis(3), None);
        let refused = Fault::Unauthenticated("sign in".into());
        figures.called(Some("registerUser"), Duration::from_secs(2), Some(&refused));
        figures.uploaded.inc_by(7);
        let gauges = Gauges {
            actors: 1,
            parked: 2,
            waiting: 3,
            reads: 8,
            store_bytes: 4,
            copy_age: 13,
            buckets: 5,
            engine_up: 6,
            orphans: 7,
            drift: 8,
            clock_jumped: 9,
            events: 10,
            dropped: 11,
            unsettled: 12,
        };
        let text = figures.text(&gauges).unwrap();
        let of_others = |line: &str| line.contains("function=") && !line.contains("registerUser");
        let lines: Vec<_> = text.lines().filter(|line| !of_others(line)).collect();
        let expected: Vec<_> = include_str!("telemetry/metrics.txt").lines().collect();
        assert_eq!(lines, expected, "\n{}", lines.join("\n"));
    }
}
