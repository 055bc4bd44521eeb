//! Logs and figures.

use crate::config::LogFormat;
use contract::Fault;
use prometheus_client::{
    encoding::text,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use std::{collections::HashMap, time::Duration};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{EnvFilter, fmt};

/// Lines that may wait for the thread that writes them; further ones are dropped. Room for all of
/// them is taken at the start.
const MOST_LINES: usize = 8192;

/// Starts logging to standard error. Lines are written by a thread of their own, until the guard
/// is dropped.
pub fn start_logging(filter: &str, format: LogFormat) -> Result<WorkerGuard, String> {
    // At its debug level the engine's client writes whole requests, and with them the secrets of
    // containers, into the log.
    let filter = EnvFilter::try_new(format!("{filter},bollard=info"))
        .map_err(|e| format!("the log filter is not valid: {e}"))?;
    let (writer, guard) =
        NonBlockingBuilder::default().buffered_lines_limit(MOST_LINES).finish(std::io::stderr());
    let lines = fmt().with_env_filter(filter).with_writer(writer).with_target(false);
    let started = match format {
        LogFormat::Pretty => lines.with_ansi(false).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    started.map_err(|e| e.to_string())?;
    Ok(guard)
}

/// The content type of what [`Figures::text`] writes.
pub const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the buckets of durations, in seconds.
const BOUNDS: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// One label: its name and its value.
type Label<V> = [(&'static str, V); 1];

/// The figures of `/metrics`.
pub struct Figures {
    registry: Registry,
    functions: HashMap<&'static str, FunctionFigures>,
    refusals: Family<Label<u16>, Counter>,
    /// Bytes of artifacts that came in.
    pub uploaded: Counter,
    /// Bytes of artifacts that went out.
    pub downloaded: Counter,
    gauges: Vec<(Gauge, Read)>,
}

struct FunctionFigures {
    calls: Counter,
    seconds: Histogram,
}

/// What is looked at when somebody asks for the figures.
pub struct Gauges {
    pub actors: i64,
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

type Read = fn(&Gauges) -> i64;

/// The name of each gauge, what it says, and where it is. The library ends each sentence.
const GAUGES: [(&str, &str, Read); 8] = [
    ("svc_actors", "Actors in memory", |now| now.actors),
    ("svc_actors_parked", "Actors that gave up and wait for an operator", |now| now.parked),
    ("svc_store_changes_waiting", "Changes that wait for the disk", |now| now.waiting),
    ("svc_store_bytes", "Bytes of the store on the disk", |now| now.store_bytes),
    ("svc_limiter_callers", "Callers that the limiter knows", |now| now.buckets),
    ("svc_engine_up", "Whether the container engine answers", |now| now.engine_up),
    ("svc_orphans", "Containers of this installation that no instance knows", |now| now.orphans),
    (
        "svc_drift",
        "Instances at rest found not to be as their record said, since the start",
        |now| now.drift,
    ),
];

impl Default for Figures {
    /// Figures for every declared function and endpoint.
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
    /// A call of a function came to an end.
    pub fn called(&self, function: Option<&'static str>, took: Duration, fault: Option<&Fault>) {
        if let Some(figures) = function.and_then(|name| self.functions.get(name)) {
            figures.calls.inc();
            figures.seconds.observe(took.as_secs_f64());
        }
        if let Some(fault) = fault {
            self.refusals.get_or_create(&[("code", fault.code())]).inc();
        }
    }

    /// The figures in the OpenMetrics text format.
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

    /// Dashboards and alerts are written against these lines.
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
            store_bytes: 4,
            buckets: 5,
            engine_up: 6,
            orphans: 7,
            drift: 8,
        };
        let text = figures.text(&gauges).unwrap();
        let of_others = |line: &str| line.contains("function=") && !line.contains("registerUser");
        let lines: Vec<_> = text.lines().filter(|line| !of_others(line)).collect();
        let expected: Vec<_> = include_str!("telemetry/metrics.txt").lines().collect();
        assert_eq!(lines, expected, "\n{}", lines.join("\n"));
    }
}
