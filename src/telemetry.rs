//! Logs and figures.

use crate::config::LogFormat;
use contract::Fault;
use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts,
    Registry, TextEncoder,
};
use std::{borrow::Cow, collections::HashMap, io, time::Duration};
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::{EnvFilter, fmt};

/// Starts logging to standard error. Lines are written by a thread of their own, until the guard
/// is dropped.
pub fn start_logging(filter: &str, format: LogFormat) -> Result<WorkerGuard, String> {
    // At its debug level the engine's client writes whole requests, and with them the secrets of
    // containers, into the log.
    let filter = EnvFilter::try_new(format!("{filter},bollard=info"))
        .map_err(|e| format!("the log filter is not valid: {e}"))?;
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    let writer = move || OneLine(writer.clone());
    let lines = fmt().with_env_filter(filter).with_writer(writer).with_target(false);
    let started = match format {
        LogFormat::Pretty => lines.with_ansi(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|e| e.to_string())?;
    Ok(guard)
}

/// Writes each event as one line, whatever callers put into it: nobody writes lines that look like
/// the service's own.
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

/// An event without control characters, but for the end of its line.
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

/// The figures of `/metrics`.
pub struct Figures {
    registry: Registry,
    functions: HashMap<&'static str, FunctionFigures>,
    refusals: IntCounterVec,
    /// Bytes of artifacts that came in.
    pub uploaded: IntCounter,
    /// Bytes of artifacts that went out.
    pub downloaded: IntCounter,
    gauges: Vec<(IntGauge, Read)>,
}

struct FunctionFigures {
    calls: IntCounter,
    seconds: Histogram,
}

/// What is looked at when somebody asks for the figures.
pub struct Gauges {
    /// Actors in memory.
    pub actors: i64,
    /// Actors that gave up.
    pub parked: i64,
    /// Changes that wait for the committer.
    pub waiting: i64,
    /// Bytes of the store on the disk.
    pub store_bytes: i64,
    /// Callers that the limiter knows.
    pub buckets: i64,
    /// 1 while the container engine answers.
    pub engine_up: i64,
    /// Containers of this installation that no instance knows.
    pub orphans: i64,
    /// How often an instance at rest was not as its record said.
    pub drift: i64,
}

/// Where a gauge is.
type Read = fn(&Gauges) -> i64;

/// The name of each gauge, what it says, and where it is.
const GAUGES: [(&str, &str, Read); 8] = [
    ("svc_actors", "Actors in memory.", |now| now.actors),
    ("svc_actors_parked", "Actors that gave up and wait for an operator.", |now| now.parked),
    ("svc_store_changes_waiting", "Changes that wait for the disk.", |now| now.waiting),
    ("svc_store_bytes", "Bytes of the store on the disk.", |now| now.store_bytes),
    ("svc_limiter_callers", "Callers that the limiter knows.", |now| now.buckets),
    ("svc_engine_up", "Whether the container engine answers.", |now| now.engine_up),
    ("svc_orphans", "Containers of this installation that no instance knows.", |now| now.orphans),
    (
        "svc_drift",
        "Instances at rest found not to be as their record said, since the start.",
        |now| now.drift,
    ),
];

impl Figures {
    /// Figures for every declared function.
    pub fn new() -> Result<Figures, prometheus::Error> {
        let registry = Registry::new();
        let calls = IntCounterVec::new(
            Opts::new("svc_function_calls_total", "Calls of each function."),
            &["function"],
        )?;
        let bounds = vec![
            0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
            30.0,
        ];
        let seconds = HistogramVec::new(
            HistogramOpts::new("svc_function_seconds", "How long the calls of each function took.")
                .buckets(bounds),
            &["function"],
        )?;
        let refusals = IntCounterVec::new(
            Opts::new("svc_refusals_total", "Answers that were not a success, by code."),
            &["code"],
        )?;
        let counter = |name: &str, help: &str| IntCounter::new(name, help);
        let figures = Figures {
            functions: contract::all()
                .map(|f| {
                    (
                        f.name,
                        FunctionFigures {
                            calls: calls.with_label_values(&[f.name]),
                            seconds: seconds.with_label_values(&[f.name]),
                        },
                    )
                })
                .collect(),
            uploaded: counter(
                "svc_artifact_bytes_received_total",
                "Bytes of artifacts that came in.",
            )?,
            downloaded: counter(
                "svc_artifact_bytes_sent_total",
                "Bytes of artifacts that went out.",
            )?,
            gauges: GAUGES
                .iter()
                .map(|(name, help, read)| Ok((IntGauge::new(*name, *help)?, *read)))
                .collect::<Result<_, prometheus::Error>>()?,
            refusals: refusals.clone(),
            registry,
        };
        let registry = &figures.registry;
        registry.register(Box::new(calls))?;
        registry.register(Box::new(seconds))?;
        registry.register(Box::new(refusals))?;
        registry.register(Box::new(figures.uploaded.clone()))?;
        registry.register(Box::new(figures.downloaded.clone()))?;
        for (gauge, _) in &figures.gauges {
            registry.register(Box::new(gauge.clone()))?;
        }
        Ok(figures)
    }

    /// A call of a function came to an end.
    pub fn called(&self, function: Option<&'static str>, took: Duration, fault: Option<&Fault>) {
        if let Some(figures) = function.and_then(|name| self.functions.get(name)) {
            figures.calls.inc();
            figures.seconds.observe(took.as_secs_f64());
        }
        if let Some(fault) = fault {
            self.refusals.with_label_values(&[&fault.code().to_string()]).inc();
        }
    }

    /// The figures in Prometheus' text format.
    pub fn text(&self, now: &Gauges) -> Result<Vec<u8>, prometheus::Error> {
        for (gauge, read) in &self.gauges {
            gauge.set(read(now));
        }
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
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
}
