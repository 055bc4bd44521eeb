//! Requests over TLS to an instance by its host name, by the service and by nginx.

mod certificate;
mod visitor;

use crate::{
    Pace,
    builds::rate,
    fleet::OneInstance,
    machine,
    outcome::{Explain, Outcome},
    reverse_proxy::{ReverseProxy, Serves},
    server::{Server, free_port, local},
    table::Row,
    wrk::Load,
};
use certificate::Certificate;
use std::{net::SocketAddr, path::Path};
use visitor::Visitor;

pub const METHOD: &str = "`wrk` with 64 connections that are kept asks the host name of an instance for 200 \
    bytes over TLS 1.3: through the service, and through an nginx with the same certificate (ECDSA, P-256), \
    the same server behind it, connections that are kept there, the same headers and as many workers; in \
    turns. Then sixteen clients do so, each request over a new connection with a full handshake: no session \
    is resumed, the keys are exchanged with X25519, and the clients verify nothing, so that they cost \
    little. The certificate was put into the store. Processor time is that of the service, or of nginx \
    with its workers, for each answer.";

const AIM: f64 = 0.8;
const BINDS: &str = "processor time: two HTTP heads are parsed and written for each request, and its \
    bytes are encrypted.";
const BINDS_ANEW: &str =
    "processor time: keys are exchanged and a signature is made for each handshake.";
/// What clients open. The domain leads nowhere.
const DOMAIN: &str = "apps.example.test";
const PATH: &str = "/bytes/200";
/// Clients that shake hands at a time.
const VISITORS: usize = 16;

/// Measures requests on connections that are kept, and on new ones.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let (home, workers) = (machine::scratch()?, pace.http_workers());
    let instance = OneInstance::seed(home.path(), workers)?;
    let label = instance.app.to_string().replace('_', "-").to_lowercase();
    let host_name = format!("{label}.{DOMAIN}");
    let certificate = Certificate::make(home.path(), &host_name)?;
    certificate.put_into_store(home.path())?;
    let address = local(free_port()?);
    let server = start(home.path(), workers, &instance, address)?;
    let (chain, key) = (&certificate.chain, &certificate.key);
    let serves = Serves::HostName { name: &host_name, certificate: chain, key };
    let nginx = ReverseProxy::nginx(home.path(), workers, &serves, instance.upstream.address)?;

    let host_name = host_name.as_str();
    let ours = Way { address, process: server.process(), host_name };
    let theirs = Way { address: nginx.address, process: nginx.process(), host_name };
    let ways = [&ours, &theirs];
    let kept = measure_in_turns(ways, pace, |way| way.requests(home.path(), pace))?;
    let anew = measure_in_turns(ways, pace, |way| way.visits(pace))?;
    let kept = rows("over TLS by host name", &kept, BINDS)?;
    let anew = rows("over new TLS connections by host name", &anew, BINDS_ANEW)?;
    Ok([kept, anew].concat())
}

/// Starts the service with the names of instances over TLS at this address. It has all certificates that it
/// needs, so it asks no authority.
fn start(
    home: &Path,
    workers: usize,
    instance: &OneInstance,
    address: SocketAddr,
) -> Outcome<Server> {
    let (engine, https, port) = (instance.engine.host(), address.to_string(), address.port());
    let [service, dashboard] =
        ["api", "dashboard"].map(|name| format!("https://{name}.example.test:{port}"));
    let settings = [
        ("SVC_DOCKER_HOST", engine.as_str()),
        ("SVC_HTTPS_LISTEN", &https),
        ("SVC_ACME_DIRECTORY", "https://localhost:1"),
        ("SVC_PUBLIC_URL", &service),
        ("SVC_DASHBOARD_URL", &dashboard),
        ("SVC_INSTANCE_DOMAIN", DOMAIN),
    ];
    Server::start_with(home, workers, &settings)
}

/// A way to the instance.
struct Way<'a> {
    address: SocketAddr,
    process: u32,
    host_name: &'a str,
}

/// What a way did in one round.
struct Round {
    /// Answers per second.
    rate: f64,
    text: String,
    /// Microseconds of processor time for each answer.
    micros: f64,
}

impl Way<'_> {
    /// Requests on connections that are kept.
    fn requests(&self, scratch: &Path, pace: Pace) -> Outcome<Round> {
        let load = Load {
            address: self.address,
            path: PATH.into(),
            application_id: String::new(),
            requests: vec![(String::new(), String::new())],
        };
        self.timed(pace, || {
            let answers = load.run_over_tls(self.host_name, scratch, pace.seconds)?;
            Ok((answers.rate, answers.to_string()))
        })
    }

    /// Requests on connections of their own.
    fn visits(&self, pace: Pace) -> Outcome<Round> {
        let visitor = Visitor::new(self.address, self.host_name)?;
        self.timed(pace, || {
            let rate = rate(VISITORS, pace.seconds, |_, _| visitor.get(PATH))?;
            Ok((rate, format!("{rate:.0}/s")))
        })
    }

    fn timed(&self, pace: Pace, run: impl FnOnce() -> Outcome<(f64, String)>) -> Outcome<Round> {
        let before = machine::processor_time_with_children(self.process)?;
        let (rate, text) = run()?;
        let taken = machine::processor_time_with_children(self.process)? - before;
        Ok(Round { rate, text, micros: taken * 1e6 / (rate * pace.seconds as f64) })
    }
}

/// The rounds of the service, and those of nginx.
fn measure_in_turns(
    ways: [&Way<'_>; 2],
    pace: Pace,
    measure: impl Fn(&Way<'_>) -> Outcome<Round>,
) -> Outcome<[Vec<Round>; 2]> {
    let mut all = [const { Vec::new() }; 2];
    for _ in 0..pace.rounds {
        machine::wait_until_quiet();
        for (way, rounds) in ways.iter().zip(&mut all) {
            rounds.push(measure(way)?);
        }
    }
    Ok(all)
}

fn rows(how: &str, [ours, theirs]: &[Vec<Round>; 2], binds: &str) -> Outcome<[Row; 2]> {
    let rate = |rounds: &[Round], who: &str| {
        let round = median(rounds, |round| round.rate)?;
        Outcome::Ok((round.rate, format!("{}{who}", round.text)))
    };
    let micros = |rounds: &[Round], who: &str| {
        let micros = median(rounds, |round| round.micros)?.micros;
        Outcome::Ok((micros, format!("{micros:.1} µs{who}")))
    };
    let what = format!("requests {how}");
    let each = format!("processor time of each request {how}");
    Ok([
        Row::new(&what, rate(ours, "")?, rate(theirs, ", nginx")?).at_least(AIM, binds),
        Row::new(&each, micros(ours, "")?, micros(theirs, ", nginx")?).at_most(1.0 / AIM, binds),
    ])
}

/// The round with the median of this figure.
fn median(rounds: &[Round], figure: fn(&Round) -> f64) -> Outcome<&Round> {
    let mut all: Vec<_> = rounds.iter().collect();
    all.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    all.get(all.len() / 2).copied().or_say("a measurement")
}
