//! Settings, in sections. A flag wins over its environment variable; the variable wins over the default.

pub mod access;
pub mod app_stores;
pub mod builds;
pub mod commerce;
pub mod hosting;
pub mod limits;
pub mod messages;
pub mod network;
pub mod storage;
pub mod tls;

use clap::Args;
use contract::authentication::Tier;

/// How the server runs. Every setting is a flag and an environment variable.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// The log filter, such as `info` or `svc=debug,warn`.
    #[arg(long, env = "SVC_LOG", help_heading = "Logs", default_value = "info")]
    pub log: String,
    /// The format of log lines.
    #[arg(
        long,
        env = "SVC_LOG_FORMAT",
        help_heading = "Logs",
        value_enum,
        default_value = "pretty"
    )]
    pub log_format: LogFormat,
    #[command(flatten)]
    pub storage: storage::StorageArgs,
    #[command(flatten)]
    pub network: network::NetworkArgs,
    #[command(flatten)]
    pub tls: tls::TlsArgs,
    #[command(flatten)]
    pub access: access::AccessArgs,
    #[command(flatten)]
    pub limits: limits::LimitArgs,
    #[command(flatten)]
    pub builds: builds::BuildArgs,
    #[command(flatten)]
    pub app_stores: app_stores::AppStoreArgs,
    #[command(flatten)]
    pub hosting: hosting::HostingArgs,
    #[command(flatten)]
    pub commerce: commerce::CommerceArgs,
    #[command(flatten)]
    pub messages: messages::MessageArgs,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Text for people.
    Pretty,
    /// JSON for programs.
    Json,
}

/// Splits a host from its port. An IPv6 address stands in brackets, as in a URL.
fn parse_host_and_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("{text} must be a host, or a host and a port such as localhost:8443");
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| wrong())?),
        _ => (text, 443),
    };
    let is_bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    if host.is_empty() || is_bare_v6 || host.contains('/') {
        return Err(wrong());
    }
    Ok((host.to_ascii_lowercase(), port))
}

fn parse_tier(text: &str) -> Result<Tier, String> {
    serde_json::from_value(text.into())
        .map_err(|_| "must be free, developer, professional or enterprise".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_host_is_one_port_of_it() {
        let read = |text| parse_host_and_port(text).unwrap();
        assert_eq!(read("Git.example.com"), ("git.example.com".into(), 443));
        assert_eq!(read("localhost:80"), ("localhost".into(), 80));
        assert_eq!(read("[::1]:80"), ("[::1]".into(), 80));
        assert_eq!(read("[::1]"), ("[::1]".into(), 443));
        for wrong in ["", ":80", "::1", "a:b", "a:70000", "https://a", "a/b"] {
            assert!(parse_host_and_port(wrong).is_err(), "{wrong}");
        }
    }
}
