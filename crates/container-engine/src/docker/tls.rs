//! The way to a daemon over TLS. Both sides prove by certificates who they are.

use super::transport;
use crate::Certificates;
use bollard::{ClientVersion, errors::Error};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::{sync::Arc, time::Duration};

/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// After this silence it is asked whether the other side is still there, and then at each interval.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

/// The way to one daemon.
pub(super) struct Encrypted {
    /// `https://host:port`.
    address: String,
    config: ClientConfig,
}

impl Encrypted {
    /// `address` is `host:port`. The error says what is wrong with the certificates.
    pub fn new(address: &str, certificates: &Certificates) -> Result<Encrypted, String> {
        let config = config(certificates)?;
        Ok(Encrypted { address: format!("https://{address}"), config })
    }

    /// A client that keeps its connections. It makes the first one when it is asked.
    pub fn client(&self, longest: u64, version: &ClientVersion) -> Result<bollard::Docker, Error> {
        transport::client(connector(self.config.clone()), &self.address, longest, version)
    }
}

fn connector(config: ClientConfig) -> HttpsConnector<HttpConnector> {
    let mut connections = HttpConnector::new();
    connections.enforce_http(false);
    connections.set_nodelay(true);
    connections.set_connect_timeout(Some(CONNECT_WITHIN));
    connections.set_keepalive(Some(KEEPALIVE));
    connections.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connections.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    let builder = HttpsConnectorBuilder::new().with_tls_config(config).https_only();
    builder.enable_http1().wrap_connector(connections)
}

fn config(certificates: &Certificates) -> Result<ClientConfig, String> {
    let mut authorities = RootCertStore::empty();
    for authority in chain("the authority", &certificates.authority)? {
        authorities.add(authority).map_err(|e| format!("the authority is not valid: {e}"))?;
    }
    let chain = chain("the certificate", &certificates.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(certificates.key.as_bytes())
        .map_err(|e| format!("the key is no private key in PEM: {e}"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .with_root_certificates(authorities)
        .with_client_auth_cert(chain, key)
        .map_err(|e| format!("the certificate and the key do not fit: {e}"))
}

fn chain(what: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(format!("{what} is no certificate in PEM")),
        Err(e) => Err(format!("{what} is no certificate in PEM: {e}")),
    }
}
