//! TLS: a certificate for each host name that leads to this server, obtained when a client first opens it.

use super::budget::Budget;
use crate::adapters::acme::{PROOF_PROTOCOL, Proofs};
use actors::{
    call::rate_limit::RateKey,
    kinds::{
        hosting::certificates::{Certificates, New, State, certificate_name, id_of, is_known},
        world::World,
    },
    runtime::store::Store,
};
use contract::{CertificateId, Fault, Timestamp, certificates::HostName};
use quick_cache::sync::Cache;
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs::{Ticketer, default_provider, sign::any_supported_type},
    server::{Acceptor, ClientHello, NoServerSessionStorage, ResolvesServerCert},
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::{io, net::IpAddr, sync::Arc, time::Duration};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tokio_rustls::{LazyConfigAcceptor, server::TlsStream};

/// How long a client may take for its part of the handshake.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// How long a client waits for the first certificate of a name. Browsers give up after about 20 seconds.
const FIRST_WITHIN: Duration = Duration::from_secs(15);
/// How many clients may wait for one.
const MOST_WAITING: usize = 1_000;
/// How many names are kept ready. Others are read from the store again.
const MOST_READY: usize = 2_000;

/// What shakes hands with the clients of one listener.
pub struct Tls {
    world: Arc<World>,
    proofs: Arc<Proofs>,
    /// Without a certificate.
    bare: ServerConfig,
    ready: Cache<CertificateId, Ready>,
    waiting: Arc<Budget>,
}

/// A certificate that was read from the store.
#[derive(Clone)]
struct Ready {
    /// The version of the record, and when its certificate expires.
    of: (u64, Timestamp),
    config: Arc<ServerConfig>,
}

/// Presents one certificate, whatever the client asks for.
#[derive(Debug)]
struct Presents(Option<Arc<CertifiedKey>>);

impl ResolvesServerCert for Presents {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }
}

impl Tls {
    pub fn new(world: Arc<World>, proofs: Arc<Proofs>) -> Result<Self, String> {
        let wrong = |e: rustls::Error| format!("TLS: {e}");
        let mut bare = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Presents(None)));
        // Tickets need no memory. A client can use one only for the name that it was made for.
        bare.session_storage = Arc::new(NoServerSessionStorage {});
        bare.ticketer = Ticketer::new().map_err(wrong)?;
        bare.alpn_protocols = vec![b"http/1.1".to_vec()];
        let (ready, waiting) = (Cache::new(MOST_READY), Budget::new(MOST_WAITING));
        Ok(Tls { world, proofs, bare, ready, waiting })
    }

    /// Shakes hands. A client that asks for a name without a certificate gets an alert.
    pub async fn accept(&self, io: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let clock = &self.world.ports.clock;
        let too_late = || io::Error::from(io::ErrorKind::TimedOut);
        let peer = io.peer_addr()?.ip().to_canonical();
        let hello = LazyConfigAcceptor::new(Acceptor::default(), io);
        let start = clock.limit(HANDSHAKE_WITHIN, hello).await.ok_or_else(too_late)??;
        let hello = start.client_hello();
        let name = hello.server_name().unwrap_or_default().to_ascii_lowercase();
        let asks_for_proof =
            hello.alpn().is_some_and(|mut offered| offered.any(|it| it == PROOF_PROTOCOL));
        let config = match asks_for_proof {
            true => self.proof(&name),
            false => self.config(&name, peer).await,
        };
        // Without a certificate the handshake ends with an alert, which says more than a closed connection.
        let config = config.unwrap_or_else(|| Arc::new(self.bare.clone()));
        let rest = start.into_stream(config);
        let mut done = clock.limit(HANDSHAKE_WITHIN, rest).await.ok_or_else(too_late)??;
        if asks_for_proof {
            // The handshake was the proof, and nothing follows it (RFC 8737, section 3).
            clock.limit(HANDSHAKE_WITHIN, done.shutdown()).await.ok_or_else(too_late)??;
            return Err(io::Error::other("the proof was shown"));
        }
        Ok(done)
    }

    /// Shows the proof that an authority asks for.
    fn proof(&self, name: &str) -> Option<Arc<ServerConfig>> {
        let certified = self.proofs.certificate_of(name)?;
        let mut config = self.presenting(certified);
        config.alpn_protocols = vec![PROOF_PROTOCOL.to_vec()];
        Some(Arc::new(config))
    }

    fn presenting(&self, certified: Arc<CertifiedKey>) -> ServerConfig {
        let mut config = self.bare.clone();
        config.cert_resolver = Arc::new(Presents(Some(certified)));
        config
    }

    /// The certificate of a name. If there is none yet, obtains it.
    async fn config(&self, name: &str, peer: IpAddr) -> Option<Arc<ServerConfig>> {
        let host: HostName = name.parse().ok()?;
        let found = self.find(host, peer).await;
        found.inspect_err(|e| tracing::warn!(name, error = %e, "no certificate")).ok().flatten()
    }

    async fn find(&self, host: HostName, peer: IpAddr) -> Result<Option<Arc<ServerConfig>>, Fault> {
        let world = &self.world;
        let Some(authority) = &world.ports.certificates else { return Ok(None) };
        let name = certificate_name(&world.ports.site, &host, authority.issues_wildcards());
        let id = id_of(&name);
        if let Some(config) = self.stored(&world.store, id)? {
            return Ok(Some(config));
        }
        if !is_known(world, host.as_str())? {
            return Ok(None);
        }
        let Ok(_place) = self.waiting.share(Some(RateKey::address(peer)), 1) else {
            return Ok(None);
        };
        world.to::<Certificates>(id).create(New { name }).await?;
        let is_over = |state: &State| state.issued.is_some() || state.failures > 0;
        world.to::<Certificates>(id).wait_until(FIRST_WITHIN, is_over).await?;
        self.stored(&world.store, id)
    }

    /// A certificate from the store.
    fn stored(&self, store: &Store, id: CertificateId) -> Result<Option<Arc<ServerConfig>>, Fault> {
        let Some(found) = store.get::<Certificates>(&id)? else { return Ok(None) };
        let Some(issued) = &found.issued else { return Ok(None) };
        let of = (found.version(), issued.expires_at);
        let ready = self.ready.get(&id).filter(|ready| ready.of == of);
        if let Some(ready) = ready {
            return Ok(Some(ready.config));
        }
        let key = self.world.ports.sealer.open(&id.to_string(), &issued.key);
        let certified = key.map_err(|e| e.to_string()).and_then(|key| {
            certified(&issued.chain, &key).map_err(|e| format!("it cannot be used: {e}"))
        });
        let certified = match certified {
            Ok(certified) => certified,
            Err(e) => {
                tracing::error!(%id, error = e, "a certificate does not serve; renew it");
                return Ok(None);
            }
        };
        let config = Arc::new(self.presenting(Arc::new(certified)));
        self.ready.insert(id, Ready { of, config: config.clone() });
        Ok(Some(config))
    }
}

fn certified(chain: &str, key: &str) -> Result<CertifiedKey, Box<dyn std::error::Error>> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    Ok(CertifiedKey::new(chain?, any_supported_type(&key)?))
}
