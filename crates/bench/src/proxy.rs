//! Requests passed on to the server of an instance, by the service and by nginx.

use crate::{
    Pace, echo,
    engine::ListingEngine,
    fleet::{self, Servers},
    machine,
    outcome::{Explain, Outcome},
    seed,
    server::{Server, free_port, listening, local},
    table::Row,
    wrk::{self, Answers, Load},
};
use std::{
    net::SocketAddr,
    path::Path,
    process::{Child, Command},
};

pub const METHOD: &str = "`wrk` with 64 connections asks a bare actix-web server for so many bytes: \
    through the service, as the server of an instance; through nginx as a reverse proxy with \
    connections that are kept, the same headers and as many workers; and directly; in turns.";

const AIM: f64 = 0.8;
const BINDS: &str = "processor time: two HTTP heads are parsed and written for each request.";
const HEALTH: &str = "/bytes/20";

/// Measures short and longer answers.
pub fn measure(pace: Pace) -> Outcome<Vec<Row>> {
    let (home, workers) = (machine::scratch()?, pace.http_workers());
    let upstream = echo::start(workers)?;
    let servers = Servers { port: upstream.address.port(), health: HEALTH };
    let store = seed::open(home.path())?;
    let nobodys = actors::ports::random::Random::default().id(seed::MADE);
    let fleet = actix_rt::System::new().block_on(fleet::seed(&store, nobodys, 1, &servers))?;
    store.close();
    drop(store);
    let engine = ListingEngine::start(home.path(), &fleet.containers)?;
    let host = engine.host();
    let server = Server::start_with(home.path(), workers, &[("SVC_DOCKER_HOST", &host)])?;
    let (_, app) = fleet.instances.first().or_say("an instance")?;
    let prefix = format!("/instances/{app}");
    let nginx = Nginx::start(home.path(), workers, &prefix, upstream.address)?;

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
            load(upstream.address, ""),
        ];
        let [ours, theirs, direct] = measure_in_turns(&ways, home.path(), pace)?;
        let what = format!("requests passed on to an instance, {size}");
        let text = |answers: Answers, who: &str| (answers.rate, format!("{answers}{who}"));
        rows.push(Row::new(&what, text(ours, ""), text(theirs, ", nginx")).at_least(AIM, BINDS));
        rows.push(Row::new(&what, text(ours, ""), text(direct, ", directly")));
    }
    Ok(rows)
}

fn measure_in_turns(ways: &[Load; 3], scratch: &Path, pace: Pace) -> Outcome<[Answers; 3]> {
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..pace.rounds {
        machine::wait_until_quiet();
        for (way, answers) in ways.iter().zip(&mut all) {
            answers.push(way.run(scratch, pace.seconds)?);
        }
    }
    let [ours, theirs, direct] = all.map(wrk::median);
    Ok([ours?, theirs?, direct?])
}

/// A running nginx. Dropping the value ends it.
struct Nginx {
    address: SocketAddr,
    child: Child,
}

impl Nginx {
    /// Starts an nginx that passes on the requests below a path.
    fn start(scratch: &Path, workers: usize, prefix: &str, to: SocketAddr) -> Outcome<Nginx> {
        let (address, at) = (local(free_port()?), scratch.display());
        let own = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|what| format!("  {what}_temp_path {at}/nginx-{what};\n"))
            .concat();
        let configuration = format!(
            "daemon off; worker_processes {workers}; pid {at}/nginx.pid;\n\
             error_log {at}/nginx.log warn;\n\
             events {{ worker_connections 4096; }}\n\
             http {{\n  access_log off; keepalive_requests 1000000000; tcp_nodelay on;\n{own}\
             \x20 upstream instance {{ server {to}; keepalive 128; keepalive_requests 1000000000; }}\n\
             \x20 server {{ listen {address}; location {prefix}/ {{\n\
             \x20   proxy_pass http://instance/; proxy_http_version 1.1;\n\
             \x20   proxy_set_header Connection \"\"; proxy_set_header Host $http_host;\n\
             \x20   proxy_set_header X-Forwarded-For $remote_addr;\n\
             \x20   proxy_set_header X-Forwarded-Proto http;\n\
             \x20   proxy_set_header X-Forwarded-Host $http_host;\n\
             \x20   proxy_set_header X-Forwarded-Prefix {prefix};\n  }} }}\n}}\n"
        );
        let file = scratch.join("nginx.conf");
        std::fs::write(&file, configuration).or_say("the configuration of nginx")?;
        let child = Command::new("nginx").arg("-c").arg(&file).arg("-p").arg(scratch).spawn();
        let child =
            child.or_say("nginx cannot be started (install it: apt install nginx-light)")?;
        let nginx = Nginx { address, child };
        listening(address, "nginx").map(|()| nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The workers of nginx end only if nginx is asked to end.
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        if asked.is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
