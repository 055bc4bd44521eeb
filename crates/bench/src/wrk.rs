//! Load from `wrk`.

use crate::outcome::{Explain, Outcome};
use std::{
    fmt::{self, Display, Formatter},
    net::SocketAddr,
    path::Path,
    process::Command,
};

/// Connections that send one request after another.
pub const CONNECTIONS: usize = 64;

const SCRIPT: &str = include_str!("requests.lua");

#[derive(Debug, Clone)]
pub struct Load {
    pub address: SocketAddr,
    pub path: String,
    pub application_id: String,
    /// The session (or nothing) and the JSON body of each request. They are sent in turn. A request
    /// without a body is a GET.
    pub requests: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy)]
pub struct Answers {
    /// Answers per second.
    pub rate: f64,
    pub median_ms: f64,
    pub p99_ms: f64,
}

impl Load {
    /// Sends the load for `seconds`. Fails if an answer is not a success.
    pub fn run(&self, scratch: &Path, seconds: u64) -> Outcome<Answers> {
        self.send(&format!("http://{}", self.address), scratch, seconds)
    }

    /// Sends the load over TLS to a host name at the address.
    pub fn run_over_tls(&self, host_name: &str, scratch: &Path, seconds: u64) -> Outcome<Answers> {
        self.send(&format!("https://{host_name}:{}", self.address.port()), scratch, seconds)
    }

    fn send(&self, url: &str, scratch: &Path, seconds: u64) -> Outcome<Answers> {
        let (script, requests) = (scratch.join("requests.lua"), scratch.join("requests"));
        std::fs::write(&script, SCRIPT).or_say("the script")?;
        let lines = self.requests.iter().map(|(session, body)| format!("{session}\t{body}\n"));
        std::fs::write(&requests, lines.collect::<String>()).or_say("the requests")?;
        let mut wrk = Command::new("wrk");
        wrk.args([
            "-t1",
            &format!("-c{CONNECTIONS}"),
            &format!("-d{seconds}s"),
            "--timeout",
            "30s",
        ]);
        wrk.arg("-s").arg(script).arg(url);
        wrk.env("BENCH_REQUESTS", requests).env("BENCH_PATH", &self.path);
        wrk.env("BENCH_APPLICATION", &self.application_id);
        wrk.env("BENCH_ADDRESS", self.address.ip().to_string());
        let output = wrk.output().or_say("wrk cannot be started (install it: apt install wrk)")?;
        let text = String::from_utf8_lossy(&output.stdout);
        read(&text).ok_or_else(|| format!("wrk failed on {}: {text}", self.path))
    }
}

/// Reads the result line of the script. `None` if an answer was not a success.
fn read(text: &str) -> Option<Answers> {
    let line = text.lines().find_map(|line| line.strip_prefix("RESULT "))?;
    let numbers: Vec<f64> = line.split(' ').filter_map(|n| n.parse().ok()).collect();
    let [answers, micros, median, p99, errors] = numbers.try_into().ok()?;
    let (rate, median_ms, p99_ms) = (answers / micros * 1e6, median / 1e3, p99 / 1e3);
    (errors == 0.0).then_some(Answers { rate, median_ms, p99_ms })
}

impl Display for Answers {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Answers { rate, median_ms, p99_ms } = self;
        write!(f, "{rate:.0}/s (median {median_ms:.2} ms, p99 {p99_ms:.2} ms)")
    }
}

/// The answers with the median rate.
pub fn median(mut all: Vec<Answers>) -> Outcome<Answers> {
    all.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    all.get(all.len() / 2).copied().or_say("a measurement")
}
