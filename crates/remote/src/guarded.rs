//! Connections to addresses that come from others and must not lead into the internal network.
//!
//! Each connection looks its host up, and goes only to the addresses of that look-up which are on the
//! public internet: a name whose answer changes gains nothing. Redirects and proxies are not used.

use crate::{
    look_up,
    network::{NoAddress, PrivateHosts, allowed, is_public},
};
use reqwest::{
    Client,
    dns::{Addrs, Name, Resolve, Resolving},
};
use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
};
use url::{Host, Url};

/// Opens addresses that come from others.
pub struct Guarded {
    /// Connects to public addresses only.
    public: Client,
    /// Connects to any address. Only for the hosts that an operator allows.
    private: Client,
    private_hosts: PrivateHosts,
    /// The setting that names the private hosts, in refusals.
    setting: &'static str,
}

impl NoAddress {
    /// The one among the causes of an error.
    pub fn among<'a>(e: &'a (dyn Error + 'static)) -> Option<&'a NoAddress> {
        let mut cause = Some(e);
        while let Some(e) = cause {
            if let Some(found) = e.downcast_ref() {
                return Some(found);
            }
            cause = e.source();
        }
        None
    }
}

type FoundAddresses = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;
/// Finds the addresses of a host.
type LookUp = Arc<dyn Fn(String) -> FoundAddresses + Send + Sync>;

/// Finds the public addresses of a host.
struct PublicOnly {
    look_up: LookUp,
    setting: &'static str,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let (host, setting) = (name.as_str().to_owned(), self.setting);
        let found = (self.look_up)(host.clone());
        Box::pin(async move {
            let public = allowed(&host, found.await.unwrap_or_default(), setting, is_public)?;
            // Port 0 stands for the port of the URL.
            let addresses = public.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

fn system_look_up(host: String) -> FoundAddresses {
    Box::pin(async move { look_up(&host).await })
}

impl Guarded {
    /// `setting` is the name of the operator's setting that holds the private hosts.
    pub fn new(setting: &'static str, private_hosts: PrivateHosts) -> Result<Guarded, String> {
        Guarded::with(Arc::new(system_look_up), setting, private_hosts)
    }

    fn with(
        look_up: LookUp,
        setting: &'static str,
        private_hosts: PrivateHosts,
    ) -> Result<Guarded, String> {
        let client = || {
            Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .user_agent(concat!("svc/", env!("CARGO_PKG_VERSION")))
        };
        let failed = |e: reqwest::Error| format!("the client for addresses of others: {e}");
        let resolver = Arc::new(PublicOnly { look_up, setting });
        Ok(Guarded {
            public: client().dns_resolver(resolver).build().map_err(failed)?,
            private: client().build().map_err(failed)?,
            private_hosts,
            setting,
        })
    }

    /// The address, and the client that may connect to it. The client has no time limit. The error
    /// ends a sentence whose subject is the address.
    pub fn open(&self, address: &str) -> Result<(Url, &Client), String> {
        let url = parse(address)?;
        let (Some(name), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err("must name a host".into());
        };
        if self.private_hosts.contains(name, port) {
            return Ok((url, &self.private));
        }
        if url.scheme() != "https" {
            return Err("must start with https://".into());
        }
        // The client looks only names up.
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) | None => None,
        };
        if literal.is_some_and(|address| !is_public(address)) {
            let (host, setting) = (name.to_owned(), self.setting);
            return Err(NoAddress::Internal { host, setting }.to_string());
        }
        Ok((url, &self.public))
    }

    /// The same for an address that the service itself has found: it may be any.
    pub fn open_own(&self, address: &str) -> Result<(Url, &Client), String> {
        Ok((parse(address)?, &self.private))
    }
}

fn parse(address: &str) -> Result<Url, String> {
    let url = Url::parse(address).map_err(|e| format!("is no address: {e}"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user or a password".into());
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use tokio::net::TcpListener;

    const SETTING: &str = "SVC_PRIVATE_HOSTS";

    /// Looks every name up to the next of these answers, and then to the last one.
    fn answers(answers: &[&[&str]]) -> LookUp {
        let parse = |text: &&str| text.parse().unwrap();
        let mut answers: Vec<Vec<IpAddr>> =
            answers.iter().rev().map(|answer| answer.iter().map(parse).collect()).collect();
        let answers = Mutex::new(move || match answers.len() {
            1 => answers.clone().remove(0),
            _ => answers.pop().unwrap(),
        });
        Arc::new(move |_| {
            let found = (answers.lock().unwrap())();
            Box::pin(async move { Ok(found) })
        })
    }

    #[test]
    fn addresses_that_no_request_can_go_to_are_refused() {
        let guarded = Guarded::new(SETTING, vec![("10.0.0.1".into(), 8443)].into()).unwrap();
        let check = |url: &str| guarded.open(url).map(|_| ());
        for url in [
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[fd00:ec2::254]/",
            "https://0/",
            "https://10.0.0.1/",
            "https://100.64.0.1:8443/",
        ] {
            assert!(check(url).unwrap_err().contains("public internet"), "{url}");
        }
        for url in ["http://example.com/", "https://me:secret@example.com/", "https://me@1.1.1.1/"]
        {
            assert!(check(url).is_err(), "{url}");
        }
        for url in ["https://example.com/x?y", "http://10.0.0.1:8443/", "https://10.0.0.1:8443/"] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
        assert!(guarded.open_own("http://127.0.0.1:3000/").is_ok());
        assert!(guarded.open_own("http://me:secret@127.0.0.1:3000/").is_err());
    }

    #[tokio::test]
    async fn a_name_is_judged_by_what_it_resolves_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://hooks.test:{}/", listener.local_addr().unwrap().port());
        let refused = async |found: &[&str]| {
            let guarded = Guarded::with(answers(&[found]), SETTING, PrivateHosts::default());
            let guarded = guarded.unwrap();
            let (url, client) = guarded.open(&url).unwrap();
            let e = client.get(url).send().await.unwrap_err();
            NoAddress::among(&e).unwrap().to_string()
        };
        for inside in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert!(refused(&[inside]).await.contains(SETTING), "{inside}");
        }
        assert_eq!(refused(&[]).await, "the host hooks.test is not known");
        // A connection would have been there before its failure.
        listener.into_std().unwrap().accept().unwrap_err();
    }

    #[tokio::test]
    async fn a_name_whose_answer_changes_gains_nothing() {
        let look_up = answers(&[&["1.1.1.1"], &["10.0.0.1", "1.1.1.1", "::1"], &["127.0.0.1"]]);
        let resolver = PublicOnly { look_up, setting: SETTING };
        let look_up = async || {
            let found = resolver.resolve("hooks.test".parse().unwrap()).await;
            found.map(|found| found.map(|address| address.ip().to_string()).collect::<Vec<_>>())
        };
        assert_eq!(look_up().await.unwrap(), ["1.1.1.1"]);
        assert_eq!(look_up().await.unwrap(), ["1.1.1.1"], "only the public ones");
        assert!(look_up().await.is_err());
    }
}
