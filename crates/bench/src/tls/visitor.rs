//! A client that shakes hands anew for each request.

use crate::outcome::{Explain, Outcome};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::aws_lc_rs::{default_provider, kx_group::X25519},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
};

pub struct Visitor {
    address: SocketAddr,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl Visitor {
    /// A client of a host name at this address. It offers one kind of keys, so that all servers have the same
    /// work.
    pub fn new(address: SocketAddr, host_name: &str) -> Outcome<Visitor> {
        let name = ServerName::try_from(host_name.to_owned()).or_say(host_name)?;
        let mut provider = default_provider();
        provider.kx_groups = vec![X25519];
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .or_say("TLS")?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustsAnybody))
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        Ok(Visitor { address, name, config: Arc::new(config) })
    }

    /// Reads a path on a connection of its own. Fails if the status is not 200.
    pub fn get(&self, path: &str) -> Outcome<()> {
        let connection =
            ClientConnection::new(self.config.clone(), self.name.clone()).or_say("TLS")?;
        let socket = TcpStream::connect(self.address).or_say(self.address)?;
        socket.set_nodelay(true).or_say(self.address)?;
        let mut stream = StreamOwned::new(connection, socket);
        let (host, port) = (self.name.to_str(), self.address.port());
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).or_say(path)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).or_say(path)?;
        match answer.starts_with(b"HTTP/1.1 200") {
            true => Ok(()),
            false => Err(format!("{path} was answered {}", String::from_utf8_lossy(&answer))),
        }
    }
}

/// Verifies nothing, because the work of a client would hide that of a server.
#[derive(Debug)]
struct TrustsAnybody;

impl ServerCertVerifier for TrustsAnybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
