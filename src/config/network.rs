//! The addresses of the service and of the dashboard, the proxies and origins that it trusts, and its threads.

use actors::ports::instance_domain::InstanceDomain;
use clap::Args;
use std::net::{IpAddr, SocketAddr};
use url::Url;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Addresses")]
pub struct NetworkArgs {
    /// The address to listen on.
    #[arg(long, env = "SVC_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// The address at which clients reach the service. The default is `http://` and the listening
    /// address.
    #[arg(long, env = "SVC_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// The address on which the dashboard listens. It is never that of the service, which forwards
    /// requests to instances: their pages must not reach the sessions of the dashboard.
    #[arg(long, env = "SVC_DASHBOARD_LISTEN", default_value = "127.0.0.1:8090")]
    pub dashboard_listen: SocketAddr,
    /// The address at which people reach the dashboard. The default is `http://localhost` with the
    /// port, or `http://` and the listening address. From other machines, browsers keep a session only
    /// over https.
    #[arg(long, env = "SVC_DASHBOARD_URL")]
    pub dashboard_url: Option<Url>,
    /// A domain, such as apps.example.net, below which each service of an instance has a host name of its own.
    /// All names below it must lead to this service. Without it, instances are reached by paths, and share one
    /// origin; where others reach the service and may register, their pages have none.
    #[arg(long, env = "SVC_INSTANCE_DOMAIN", value_parser = parse_domain)]
    pub instance_domain: Option<String>,
    /// The address of the name server that is asked for the records of domains. The default is the name server of
    /// the machine.
    #[arg(long, env = "SVC_NAME_SERVER")]
    pub name_server: Option<SocketAddr>,
    /// Addresses of proxies whose X-Forwarded headers the service trusts, separated by commas.
    #[arg(long, env = "SVC_TRUSTED_PROXIES", value_delimiter = ',')]
    pub trusted_proxies: Vec<IpAddr>,
    /// Origins whose pages may call the service, separated by commas. The default allows every
    /// origin.
    #[arg(long, env = "SVC_CORS_ORIGINS", value_delimiter = ',')]
    pub cors_origins: Vec<String>,
    /// The number of HTTP worker threads. The default is the number of processors.
    #[arg(long, env = "SVC_WORKERS")]
    pub workers: Option<usize>,
}

/// Reads a domain name. Names of other alphabets are written as DNS has them.
fn parse_domain(text: &str) -> Result<String, String> {
    match url::Host::parse(text) {
        Ok(url::Host::Domain(name)) if name.len() <= 200 && !name.ends_with('.') => Ok(name),
        _ => Err("must be a domain without a port, such as apps.example.net".into()),
    }
}

/// Whether an address leads to this machine, wherever it is opened.
pub fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

impl NetworkArgs {
    /// The address at which clients reach the service, without a trailing slash.
    pub fn api_url(&self) -> String {
        match &self.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{}", self.listen),
        }
    }

    /// The address at which people reach the dashboard. On this machine it is `localhost`, so that
    /// browsers keep its session apart from the pages of instances at `127.0.0.1`: ports share cookies.
    pub fn dashboard_url(&self) -> Result<Url, String> {
        let listen = self.dashboard_listen;
        let default = if listen.ip().is_loopback() {
            format!("http://localhost:{}", listen.port())
        } else {
            format!("http://{listen}")
        };
        let wrong = |e| format!("the address of the dashboard or of the service: {e}");
        let url = self.dashboard_url.clone().map_or_else(|| Url::parse(&default), Ok);
        let (url, service) = (url.map_err(wrong)?, Url::parse(&self.api_url()).map_err(wrong)?);
        if url.origin() == service.origin() {
            return Err(format!(
                "the dashboard cannot be at {url}: there is the service, which forwards to instances, and their pages must not reach the sessions of the dashboard; choose another --dashboard-url"
            ));
        }
        Ok(url)
    }

    /// The address of the dashboard for people who are elsewhere, without a slash at the end. `None` if
    /// others reach the service, but the operator has not said where they reach the dashboard.
    pub fn known_dashboard_url(&self) -> Option<String> {
        let (url, service) = (self.dashboard_url().ok()?, Url::parse(&self.api_url()).ok()?);
        let is_known = self.dashboard_url.is_some() || is_local(&service);
        is_known.then(|| url.as_str().trim_end_matches('/').to_owned())
    }

    /// Whether others may reach the service, and all instances have the one origin of its address. Others come from
    /// behind a proxy, too, and where people elsewhere have a dashboard.
    pub fn shares_origin(&self) -> bool {
        let is_elsewhere = |url: &Url| !is_local(url);
        let is_open = !self.trusted_proxies.is_empty()
            || Url::parse(&self.api_url()).is_ok_and(|url| is_elsewhere(&url))
            || self.dashboard_url.as_ref().is_some_and(is_elsewhere);
        self.instance_domain.is_none() && is_open
    }

    /// The domain of instances. Its names have the scheme and the port of the service.
    pub fn instance_domain(&self) -> Result<Option<InstanceDomain>, String> {
        let Some(name) = &self.instance_domain else { return Ok(None) };
        let wrong = |e| format!("the address of the service: {e}");
        let service = Url::parse(&self.api_url()).map_err(wrong)?;
        let domain = InstanceDomain {
            name: name.clone(),
            scheme: service.scheme().to_owned(),
            port: service.port(),
        };
        for url in [&service, &self.dashboard_url()?] {
            if url.host_str().is_some_and(|host| domain.target(host).is_some()) {
                return Err(format!(
                    "--instance-domain {name} contains {url}, so its requests would go to an instance; choose a domain of its own, such as apps.{name}"
                ));
            }
        }
        Ok(Some(domain))
    }

    /// The host names in the addresses of the service and of its dashboard.
    pub fn own_hosts(&self) -> Result<Vec<String>, String> {
        let service = Url::parse(&self.api_url()).map_err(|e| e.to_string())?;
        let urls = [service, self.dashboard_url()?];
        Ok(urls.iter().filter_map(Url::domain).map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: NetworkArgs,
    }

    fn args(flags: &[&str]) -> NetworkArgs {
        Line::parse_from([&["svc"], flags].concat()).args
    }

    #[test]
    fn the_domain_of_instances_has_the_scheme_and_the_port_of_the_service() {
        let of = |url: &str, domain: &str| {
            let flags = ["--public-url", url, "--instance-domain", domain];
            let dashboard = ["--dashboard-url", "https://dash.example.com"];
            args(&[&flags[..], &dashboard].concat()).instance_domain()
        };
        let url = |url, domain| of(url, domain).unwrap().unwrap().url("app_1");
        let secure = url("https://api.example.com", "Apps.Example.com");
        assert_eq!(secure, "https://app-1.apps.example.com");
        assert_eq!(url("http://localhost:8080", "a.localhost"), "http://app-1.a.localhost:8080");
        for domain in ["example.com", "api.example.com", "dash.example.com"] {
            assert!(of("https://api.example.com", domain).is_err(), "{domain}");
        }
        for wrong in ["apps.example.com:80", "127.0.0.1", "https://a.example.com", "a b", "a."] {
            assert!(Line::try_parse_from(["svc", "--instance-domain", wrong]).is_err(), "{wrong}");
        }
    }
}
