//! What a client and an engine of another machine prove themselves by.

use contract::runners::SshAccess;
use std::fmt;

/// What a client and an engine of another machine prove themselves by. Whoever has the key of the client has all
/// rights on the engine's machine.
#[derive(Clone, PartialEq)]
pub enum Credentials {
    /// The engine speaks TLS.
    Tls(Certificates),
    /// The engine is reached over ssh.
    Ssh(SshAccess),
}

/// Certificates and a key in PEM: `ca.pem`, `cert.pem` and `key.pem` of a Docker client.
#[derive(Clone, PartialEq)]
pub struct Certificates {
    /// The authority that signed the certificate of the engine. No other one is trusted.
    pub authority: String,
    /// The certificate of the client, and those between it and its authority.
    pub certificate: String,
    /// The private key of the client.
    pub key: String,
}

impl fmt::Debug for Credentials {
    /// Omits the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credentials::Tls(_) => "Tls",
            Credentials::Ssh(_) => "Ssh",
        })
    }
}
