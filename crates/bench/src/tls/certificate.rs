//! A certificate that the service and nginx present both.

use crate::{
    outcome::{Explain, Outcome},
    seed,
    server::secret,
};
use actors::{
    kinds::hosting::certificates::{Certificates, Issued, State, id_of},
    ports::sealed::Sealer,
};
use contract::{Timestamp, certificates::HostName};
use sha2::{Digest, Sha256};
use std::{
    fs::read_to_string,
    path::{Path, PathBuf},
    process::Command,
};

/// When the service would renew the certificate. Nobody looks at the dates in it.
const LATER: Timestamp = Timestamp::from_millis(4_000_000_000_000);

/// The files of a certificate and its key (PEM). The key is of the kind that the service makes.
pub struct Certificate {
    pub chain: PathBuf,
    pub key: PathBuf,
    name: HostName,
}

impl Certificate {
    /// Makes a certificate that signs itself.
    pub fn make(scratch: &Path, name: &str) -> Outcome<Certificate> {
        let (chain, key) = (scratch.join("certificate.pem"), scratch.join("key.pem"));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-nodes", "-newkey", "ec", "-subj", "/CN=bench"]);
        openssl.args(["-pkeyopt", "ec_paramgen_curve:P-256"]);
        openssl.args(["-addext", &format!("subjectAltName=DNS:{name}")]);
        openssl.arg("-out").arg(&chain).arg("-keyout").arg(&key);
        let missing = "openssl cannot be started (install it: apt install openssl)";
        let made = openssl.output().or_say(missing)?;
        let said = String::from_utf8_lossy(&made.stderr);
        let name = seed::text(name)?;
        match made.status.success() {
            true => Ok(Certificate { chain, key, name }),
            false => Err(format!("openssl made no certificate: {said}")),
        }
    }

    /// Writes the certificate to the store of a stopped service, as if an authority had issued it.
    pub fn put_into_store(&self, home: &Path) -> Outcome<()> {
        let id = id_of(&self.name);
        let secret = secret(home, "keys", "encryptionKey")?;
        let key = read_to_string(&self.key).or_say("the key of the certificate")?;
        // The service seals with the digest of its secret.
        let sealer = Sealer::new(Sha256::digest(secret).into());
        let issued = Issued {
            chain: read_to_string(&self.chain).or_say("the certificate")?,
            key: sealer.seal(&id.to_string(), &key).or_say("the key of the certificate")?,
            valid_from: seed::MADE,
            expires_at: LATER,
        };
        let state = State {
            name: self.name.clone(),
            created_at: seed::MADE,
            order: None,
            issued: Some(issued),
            failures: 0,
            error: None,
            failed_at: None,
            next_attempt_at: Some(LATER),
        };
        seed::fill(home, 1, |change, _| Ok(seed::put::<Certificates>(change, id, state.clone())))
    }
}
