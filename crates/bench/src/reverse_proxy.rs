//! Other programs that pass on requests, which are yardsticks of the service.

use crate::{
    outcome::{Explain, Outcome},
    server::{free_port, listening, local},
};
use std::{
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};

/// A running proxy. Dropping the value ends it.
pub struct ReverseProxy {
    pub address: SocketAddr,
    child: Child,
}

/// What an nginx passes on.
pub enum Serves<'a> {
    /// The requests below a path.
    Path(&'a str),
    /// The requests to a host name, over TLS.
    HostName {
        name: &'a str,
        /// The files with the certificate and its key (PEM).
        certificate: &'a Path,
        key: &'a Path,
    },
}

impl Serves<'_> {
    /// The lines of a server of nginx that differ. The headers are those that the service sets.
    fn lines(&self, address: SocketAddr) -> String {
        match self {
            Serves::Path(prefix) => format!(
                "  listen {address}; location {prefix}/ {{\n\
                 \x20   proxy_set_header X-Forwarded-Proto http;\n\
                 \x20   proxy_set_header X-Forwarded-Prefix {prefix};\n"
            ),
            Serves::HostName { name, certificate, key } => format!(
                "  listen {address} ssl; server_name {name};\n\
                 \x20 ssl_certificate {}; ssl_certificate_key {};\n\
                 \x20 ssl_protocols TLSv1.2 TLSv1.3;\n\
                 \x20 location / {{\n\
                 \x20   proxy_set_header X-Forwarded-Proto https;\n",
                certificate.display(),
                key.display()
            ),
        }
    }
}

impl ReverseProxy {
    pub fn nginx(
        scratch: &Path,
        workers: usize,
        serves: &Serves<'_>,
        to: SocketAddr,
    ) -> Outcome<ReverseProxy> {
        let (address, at) = (local(free_port()?), scratch.display());
        let own = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|what| format!("  {what}_temp_path {at}/nginx-{what};\n"))
            .concat();
        let lines = serves.lines(address);
        let configuration = format!(
            "daemon off; worker_processes {workers}; pid {at}/nginx.pid;\n\
             error_log {at}/nginx.log warn;\n\
             events {{ worker_connections 4096; }}\n\
             http {{\n  access_log off; keepalive_requests 1000000000; tcp_nodelay on;\n{own}\
             \x20 upstream instance {{ server {to}; keepalive 128; keepalive_requests 1000000000; }}\n\
             \x20 server {{\n{lines}\
             \x20   proxy_pass http://instance/; proxy_http_version 1.1;\n\
             \x20   proxy_set_header Connection \"\"; proxy_set_header Host $http_host;\n\
             \x20   proxy_set_header X-Forwarded-For $remote_addr;\n\
             \x20   proxy_set_header X-Forwarded-Host $http_host;\n  }} }}\n}}\n"
        );
        let file = scratch.join("nginx.conf");
        std::fs::write(&file, configuration).or_say("the configuration of nginx")?;
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&file).arg("-p").arg(scratch);
        ReverseProxy::start(command, address, "nginx", "nginx-light")
    }

    /// A Caddy that passes on the requests below a path. It sets the headers of nginx above by itself, but
    /// the prefix.
    pub fn caddy(
        scratch: &Path,
        workers: usize,
        prefix: &str,
        to: SocketAddr,
    ) -> Outcome<ReverseProxy> {
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
        ReverseProxy::start(command, address, "Caddy", "caddy")
    }

    fn start(
        mut command: Command,
        address: SocketAddr,
        name: &str,
        package: &str,
    ) -> Outcome<ReverseProxy> {
        let missing = format!("{name} cannot be started (install it: apt install {package})");
        let proxy = ReverseProxy { address, child: command.spawn().or_say(&missing)? };
        listening(address, name).map(|()| proxy)
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ReverseProxy {
    fn drop(&mut self) {
        // The workers of nginx end only if nginx is asked to end.
        let asked = Command::new("kill").arg(self.child.id().to_string()).status();
        if asked.is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
