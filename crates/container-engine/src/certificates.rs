//! What a client and an engine of another machine prove themselves by.

use std::fmt;

/// Certificates and a key in PEM: `ca.pem`, `cert.pem` and `key.pem` of a Docker client.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificates {
    /// The authority that signed the certificate of the engine. No other one is trusted.
    pub authority: String,
    /// The certificate of the client, and those between it and its authority.
    pub certificate: String,
    /// The private key of the client. Whoever has it has all rights on the engine's machine.
    pub key: String,
}

impl fmt::Debug for Certificates {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}
