//! Where the database is, as the operator says it.

use crate::StoreError;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::BuilderVerifierExt;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio_postgres::config::{Config, Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a host may take to be reached, before the next one is asked.
const CONNECTS: Duration = Duration::from_secs(2);
/// How long a server that no longer answers is waited for, before the connection is given up.
const SILENCE: Duration = Duration::from_secs(5);

/// A PostgreSQL database, and the schema in it that holds one store.
#[derive(Clone)]
pub struct Postgres {
    /// How each of its hosts is reached.
    hosts: Vec<Config>,
    /// Which of them took writes last.
    used: Arc<AtomicUsize>,
    pub(super) tls: MakeRustlsConnect,
    pub(super) schema: String,
}

impl Postgres {
    /// Reads an address like `postgres://user:password@host1,host2/database`, with the parameters of
    /// [`tokio_postgres::Config`]. What concerns time limits and which host is used is set here.
    ///
    /// `schema` is the name of the schema, which is `svc` unless it is said.
    /// `sslrootcert` is the file of the authority of the server's certificate; without it, those of the
    /// system are trusted. A server on another machine is asked over TLS, and its certificate is verified,
    /// unless `sslmode` is `disable`.
    pub fn parse(address: &str) -> Result<Postgres, StoreError> {
        let wrong = |why: &str| {
            StoreError::Unwritable(format!(
                "the address of the database is not valid: {why}; it looks like postgres://user:password@host/database"
            ))
        };
        let (start, query) = address.split_once('?').unwrap_or((address, ""));
        let (mut schema, mut authority, mut mode) = ("svc".to_owned(), None, None);
        let mut others = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("schema", name) => name.clone_into(&mut schema),
                ("sslrootcert", file) => authority = Some(file.to_owned()),
                ("sslmode", named) => mode = Some(named.to_owned()),
                _ => others.push(pair),
            }
        }
        if !is_a_name(&schema) {
            return Err(wrong("a schema has small letters, digits and underscores"));
        }
        let mut config: Config = format!("{start}?{}", others.join("&"))
            .parse()
            .map_err(|_| wrong("it cannot be read"))?;
        let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
        let is_local = hosts.iter().all(is_on_this_machine)
            && addresses.iter().all(std::net::IpAddr::is_loopback)
            && hosts.len() + addresses.len() > 0;
        let mode = match mode.as_deref() {
            Some("disable") => SslMode::Disable,
            None if is_local && authority.is_none() => SslMode::Disable,
            None | Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            Some(_) => return Err(wrong("sslmode is disable, require or verify-full")),
        };
        let tls = match (mode, authority) {
            (SslMode::Disable, _) => tls(Trust::Nobody)?,
            (_, Some(file)) => tls(Trust::Authority(Path::new(&file)))?,
            (_, None) => tls(Trust::System)?,
        };
        config.ssl_mode(mode).target_session_attrs(TargetSessionAttrs::ReadWrite);
        Ok(Postgres { hosts: each_host(&config), used: Arc::default(), tls, schema })
    }

    /// The hosts, beginning with the one that took writes last, and their numbers.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (usize, &Config)> {
        let numbered = self.hosts.iter().enumerate();
        numbered.cycle().skip(self.used.load(Relaxed)).take(self.hosts.len())
    }

    /// Says that the host of this number takes writes.
    pub(super) fn use_host(&self, number: usize) {
        self.used.store(number, Relaxed);
    }

    /// A text of SQL with the schema in its places.
    pub(super) fn sql(&self, text: &str) -> String {
        text.replace("{schema}", &self.schema)
    }
}

/// A configuration for each host of one. So each has its own time limit: one that takes a connection and says
/// nothing does not keep the others from being asked.
fn each_host(all: &Config) -> Vec<Config> {
    let (hosts, addresses, ports) = (all.get_hosts(), all.get_hostaddrs(), all.get_ports());
    let one = |n: usize| {
        let mut one = Config::new();
        one.ssl_mode(all.get_ssl_mode())
            .ssl_negotiation(all.get_ssl_negotiation())
            .channel_binding(all.get_channel_binding())
            .target_session_attrs(all.get_target_session_attrs())
            .tcp_user_timeout(SILENCE)
            .connect_timeout(CONNECTS)
            .keepalives_idle(SILENCE)
            .keepalives_interval(Duration::from_secs(1))
            .keepalives_retries(5)
            .application_name("svc");
        all.get_user().map(|user| one.user(user));
        all.get_password().map(|password| one.password(password));
        all.get_dbname().map(|name| one.dbname(name));
        all.get_options().map(|options| one.options(options));
        match hosts.get(n) {
            Some(Host::Tcp(name)) => drop(one.host(name)),
            Some(Host::Unix(path)) => drop(one.host_path(path)),
            None => {}
        }
        addresses.get(n).map(|address| one.hostaddr(*address));
        ports.get(n).or(ports.first()).map(|port| one.port(*port));
        one
    };
    (0..hosts.len().max(addresses.len()).max(1)).map(one).collect()
}

/// Whether it can stand in SQL without quotes. Reserved words are refused by the database.
fn is_a_name(name: &str) -> bool {
    let letter = |b: u8| b.is_ascii_lowercase() || b == b'_';
    let mut bytes = name.bytes();
    bytes.next().is_some_and(letter)
        && bytes.all(|b| letter(b) || b.is_ascii_digit())
        && name.len() <= 63
}

fn is_on_this_machine(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
        }
    }
}

/// Whose certificates are good.
enum Trust<'a> {
    /// No server is asked for one. The certificates of the system are not read.
    Nobody,
    /// Those of the authority in this file.
    Authority(&'a Path),
    /// Those that the system trusts.
    System,
}

fn tls(trust: Trust<'_>) -> Result<MakeRustlsConnect, StoreError> {
    let unusable = |why: String| StoreError::Unwritable(format!("TLS with the database: {why}"));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| unusable(e.to_string()))?;
    let builder = match trust {
        Trust::Nobody => builder.with_root_certificates(RootCertStore::empty()),
        Trust::Authority(file) => {
            let unreadable =
                |e: &dyn std::fmt::Display| unusable(format!("{}: {e}", file.display()));
            let pem = std::fs::read(file).map_err(|e| unreadable(&e))?;
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|e| unreadable(&e))?;
                roots.add(certificate).map_err(|e| unreadable(&e))?;
            }
            builder.with_root_certificates(roots)
        }
        Trust::System => builder.with_platform_verifier().map_err(|e| unusable(e.to_string()))?,
    };
    Ok(MakeRustlsConnect::new(builder.with_no_client_auth()))
}
