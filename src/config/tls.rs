//! TLS by the service itself, with certificates that it obtains.

use super::network::NetworkArgs;
use crate::adapters::acme::AcmeSettings;
use clap::Args;
use contract::certificates::HostName;
use data_encoding::BASE64URL_NOPAD;
use std::{fmt, net::SocketAddr, path::PathBuf};
use url::Url;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// The address on which the service, its dashboard and the host names of instances are served over
    /// TLS, such as 0.0.0.0:443. Without it, a proxy in front does that.
    #[arg(long, env = "SVC_HTTPS_LISTEN")]
    pub https_listen: Option<SocketAddr>,
    /// The directory of the authority that issues certificates (ACME). Whoever sets --https-listen agrees to
    /// its terms.
    #[arg(
        long,
        env = "SVC_ACME_DIRECTORY",
        default_value = "https://acme-v02.api.letsencrypt.org/directory"
    )]
    pub acme_directory: Url,
    /// The e-mail address to which the authority writes about the certificates.
    #[arg(long, env = "SVC_ACME_CONTACT")]
    pub acme_contact: Option<String>,
    /// A file with the certificate (PEM) by which the authority itself is known, for an authority of your
    /// own. The default is those of the machine.
    #[arg(long, env = "SVC_ACME_ROOT")]
    pub acme_root: Option<PathBuf>,
    /// The id of the key with which the authority knows a customer of its own, as the authority gave it
    /// (external account binding). The first account there is opened with it.
    #[arg(long, env = "SVC_ACME_EAB_KID", requires = "acme_eab_hmac")]
    pub acme_eab_kid: Option<String>,
    /// That key, in base64url.
    #[arg(
        long,
        env = "SVC_ACME_EAB_HMAC",
        hide_env_values = true,
        requires = "acme_eab_kid",
        value_parser = parse_hmac
    )]
    pub acme_eab_hmac: Option<Hmac>,
    /// A program that writes DNS records, which one certificate for all host names below the domain of
    /// instances needs. It is called with `present` or `cleanup`, the name of a TXT record, and its text.
    #[arg(long, env = "SVC_ACME_DNS_HOOK")]
    pub acme_dns_hook: Option<PathBuf>,
}

/// A key that is shared with the authority.
#[derive(Clone)]
pub struct Hmac(Vec<u8>);

impl fmt::Debug for Hmac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hmac")
    }
}

fn parse_hmac(text: &str) -> Result<Hmac, String> {
    let key = BASE64URL_NOPAD.decode(text.trim_end_matches('=').as_bytes());
    let key = key.ok().filter(|key| !key.is_empty());
    key.map(Hmac).ok_or_else(|| "must be the key in base64url, as the authority gave it".to_owned())
}

impl TlsArgs {
    /// Refuses settings with which no certificate could serve.
    pub fn check(&self, network: &NetworkArgs) -> Result<(), String> {
        if self.https_listen.is_none() {
            return Ok(());
        }
        let service = Url::parse(&network.api_url())
            .map_err(|e| format!("the address of the service: {e}"))?;
        let dashboard = network.dashboard_url()?;
        let has_name = |url: &Url| {
            let name = url.domain().map(str::parse::<HostName>);
            url.scheme() == "https" && matches!(name, Some(Ok(_)))
        };
        for (url, option) in [(&service, "--public-url"), (&dashboard, "--dashboard-url")] {
            if !has_name(url) {
                return Err(format!(
                    "--https-listen serves host names over TLS, and {option} is {url}; set it to an address such as https://svc.example.com"
                ));
            }
        }
        if service.host() == dashboard.host() {
            return Err(format!(
                "with --https-listen, the dashboard needs a host name of its own: --dashboard-url is {dashboard}, where the service is"
            ));
        }
        Ok(())
    }

    pub fn acme(&self) -> AcmeSettings {
        AcmeSettings {
            directory: self.acme_directory.to_string(),
            root: self.acme_root.clone(),
            contact: self.acme_contact.clone(),
            dns_hook: self.acme_dns_hook.clone(),
            customer: self
                .acme_eab_kid
                .clone()
                .zip(self.acme_eab_hmac.as_ref().map(|Hmac(key)| key.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        network: NetworkArgs,
        #[command(flatten)]
        tls: TlsArgs,
    }

    #[test]
    fn host_names_are_needed_for_certificates() {
        let check = |urls: &[&str]| {
            let flags = [&["svc", "--https-listen", "0.0.0.0:443"], urls].concat();
            let line = Line::parse_from(flags);
            line.tls.check(&line.network)
        };
        let of = |service, dashboard| ["--public-url", service, "--dashboard-url", dashboard];
        assert_eq!(check(&of("https://api.example.net", "https://dash.example.net")), Ok(()));
        for (wrong, named) in [
            (of("http://api.example.net", "https://dash.example.net"), "--public-url"),
            (of("https://intranet", "https://dash.example.net"), "--public-url"),
            (of("https://192.0.2.1", "https://dash.example.net"), "--public-url"),
            (of("https://api.example.net", "http://dash.example.net"), "--dashboard-url"),
            (of("https://api.example.net", "https://api.example.net:8443"), "of its own"),
        ] {
            let refused = check(&wrong).unwrap_err();
            assert!(refused.contains(named), "{wrong:?}: {refused}");
        }
        assert!(check(&[]).is_err());
    }
}
