//! Requests passed on to the server of an instance, by the service, nginx and Caddy.

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
    process::{Child, Command, Stdio},
};

pub const METHOD: &str = "`wrk` with 64 connections asks a bare actix-web server for so many bytes: \
    through the service, as the server of an instance; through nginx and through Caddy as \
    reverse proxies with connections that are kept, the same headers and as many workers; and directly; in \
    turns.";

const AIM: f64 = 0.9;
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
    let nginx = Proxy::nginx(home.path(), workers, &prefix, upstream.address)?;
    let caddy = Proxy::caddy(home.path(), workers, &prefix, upstream.address)?;

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
            load(upstream.address, ""),
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

/// Another program that passes on requests. Dropping the value ends it.
struct Proxy {
    address: SocketAddr,
    child: Child,
}

impl Proxy {
    /// An nginx that passes on the requests below a path.
    fn nginx(scratch: &Path, workers: usize, prefix: &str, to: SocketAddr) -> Outcome<Proxy> {
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
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&file).arg("-p").arg(scratch);
        Proxy::start(command, address, "nginx", "nginx-light")
    }

    /// A Caddy that passes on the requests below a path. It sets the headers of nginx above by itself, but
    /// the prefix.
    fn caddy(scratch: &Path, workers: usize, prefix: &str, to: SocketAddr) -> Outcome<Proxy> {
        let address = local(free_port()?);
        let configuration = format!(
            "{{\n admin off\n auto_https off\n}}\n\
             http://{address} {{\n handle_path {prefix}/* {{\n  reverse_proxy {to} {{\n\
             \x20  header_up X-Forwarded-Prefix {prefix}\n\
             \x20  transport http {{\n    keepalive_idle_conns_per_host 128\n   }}\n  }}\n }}\n}}\n"
        );
        let file = scratch.join("Caddyfile");
        std::fs::write(&file, configuration).or_say("the configuration of Caddy")?;
        let mut command = Command::new("caddy");
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file);
        command.env("GOMAXPROCS", workers.to_string()).env("HOME", scratch);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Proxy::start(command, address, "Caddy", "caddy")
    }

    fn start(
        mut command: Command,
        address: SocketAddr,
        name: &str,
        package: &str,
    ) -> Outcome<Proxy> {
        let missing = format!("{name} cannot be started (install it: apt install {package})");
        let proxy = Proxy { address, child: command.spawn().or_say(&missing)? };
        listening(address, name).map(|()| proxy)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The workers of nginx end only if nginx is asked to end.
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        if asked.is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
