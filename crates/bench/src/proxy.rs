//! Requests passed on to the server of an instance, by the service, nginx and Caddy.

use crate::{
    Pace,
    fleet::OneInstance,
    machine,
    outcome::Outcome,
    reverse_proxy::{ReverseProxy, Serves},
    server::Server,
    table::Row,
    wrk::{self, Answers, Load},
};
use std::path::Path;

pub const METHOD: &str = "`wrk` with 64 connections asks a bare actix-web server for so many bytes: \
    through the service, as the server of an instance; through nginx and through Caddy as \
    reverse proxies with connections that are kept, the same headers and as many workers; and directly; in \
    turns.";

const AIM: f64 = 0.9;
const BINDS: &str = "processor time: two HTTP heads are parsed and written for each request.";

/// Measures short and longer answers.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let (home, workers) = (machine::scratch()?, pace.http_workers());
    let instance = OneInstance::seed(home.path(), workers)?;
    let (engine, upstream) = (instance.engine.host(), instance.upstream.address);
    let server = Server::start_with(home.path(), workers, &[("SVC_DOCKER_HOST", &engine)])?;
    let prefix = format!("/instances/{}", instance.app);
    let nginx = ReverseProxy::nginx(home.path(), workers, &Serves::Path(&prefix), upstream)?;
    let caddy = ReverseProxy::caddy(home.path(), workers, &prefix, upstream)?;

    let mut rows = Vec::new();
    for (size, bytes) in [("200 bytes", 200), ("16 KiB", 16 << 10)] {
        let load = |address, prefix: &str| Load {
            address,
            path: format!("{prefix}/bytes/{bytes}"),
            application_id: String::new(),
            requests: vec![(String::new(), String::new())],
        };
        let ways = [
            load(server.client.address, &prefix),
            load(nginx.address, &prefix),
            load(caddy.address, &prefix),
            load(upstream, ""),
        ];
        let [ours, nginx, caddy, direct] = measure_in_turns(&ways, home.path(), pace)?;
        let what = format!("requests passed on to an instance, {size}");
        let text = |answers: Answers, who: &str| (answers.rate, format!("{answers}{who}"));
        rows.push(Row::new(&what, text(ours, ""), text(nginx, ", nginx")).at_least(AIM, BINDS));
        rows.push(Row::new(&what, text(ours, ""), text(caddy, ", Caddy")).at_least(2.0, BINDS));
        rows.push(Row::new(&what, text(ours, ""), text(direct, ", directly")).at_least(0.3, BINDS));
    }
    Ok(rows)
}

fn measure_in_turns(ways: &[Load; 4], scratch: &Path, pace: Pace) -> Outcome<[Answers; 4]> {
    let mut all = [const { Vec::new() }; 4];
    for _ in 0..pace.rounds {
        machine::wait_until_quiet();
        for (way, answers) in ways.iter().zip(&mut all) {
            answers.push(way.run(scratch, pace.seconds)?);
        }
    }
    let [ours, nginx, caddy, direct] = all.map(wrk::median);
    Ok([ours?, nginx?, caddy?, direct?])
}
