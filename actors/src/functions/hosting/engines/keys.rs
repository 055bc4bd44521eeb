//! The keys by which an engine is reached: operators give them, and they are stored sealed.

use crate::kinds::{hosting::engines::EngineKeys, world::World};
use container_engine::{Certificates, Credentials};
use contract::{
    EngineId, Fault,
    runners::SshAccess,
    ssh::SshHostKey,
    text::{CertificatePem, EngineAddress, PrivateKeyPem},
};

/// What an operator gives.
pub(super) struct Given {
    pub authority: Option<CertificatePem>,
    pub certificate: Option<CertificatePem>,
    pub host_key: Option<SshHostKey>,
    pub key: Option<PrivateKeyPem>,
}

impl Given {
    pub fn is_nothing(&self) -> bool {
        let Given { authority, certificate, host_key, key } = self;
        authority.is_none() && certificate.is_none() && host_key.is_none() && key.is_none()
    }

    /// What reaches an engine at this address.
    pub fn for_engine_at(self, address: &EngineAddress) -> Result<Credentials, Fault> {
        let Given { authority, certificate, host_key, key } = self;
        let key = key.ok_or_else(|| Fault::invalid("key", "give the key of the client too"))?;
        match (address.ssh().is_some(), authority, certificate, host_key) {
            (false, Some(authority), Some(certificate), None) => {
                let [authority, certificate] = [authority, certificate].map(String::from);
                let key = key.into();
                Ok(Credentials::Tls(Certificates { authority, certificate, key }))
            }
            (true, None, None, Some(host_key)) => {
                // The last line of a pasted key often has no end.
                let key = format!("{}\n", String::from(key).replace("\r\n", "\n").trim_end());
                let problem =
                    |_| Fault::invalid("key", "must be a key of OpenSSH, which ssh-keygen makes");
                Ok(Credentials::Ssh(SshAccess {
                    private_key: key.parse().map_err(problem)?,
                    host_key,
                }))
            }
            (false, ..) => Err(Fault::invalid(
                "certificate",
                "is needed to reach an engine over TLS, with authority and key, and without hostKey",
            )),
            (true, ..) => Err(Fault::invalid(
                "hostKey",
                "is needed to reach an engine over ssh, with key, and without certificates. On the engine's machine, \
                 cut -d ' ' -f 1,2 /etc/ssh/ssh_host_ed25519_key.pub prints it",
            )),
        }
    }
}

/// Seals what reaches an engine.
pub(super) fn sealed(world: &World, id: EngineId, of: Credentials) -> Result<EngineKeys, Fault> {
    let seal = |key: &str| {
        world.ports.sealer.seal(&id.to_string(), key).map_err(|e| {
            tracing::error!(error = %e, "the key of an engine was not sealed");
            Fault::Internal
        })
    };
    match of {
        Credentials::Tls(Certificates { authority, certificate, key }) => {
            let expiry = world.ports.engines.expiry(&certificate);
            let pem = |text: String| text.parse().map_err(|_| Fault::Internal);
            Ok(EngineKeys::Tls {
                expires_at: expiry.map_err(|why| Fault::invalid("certificate", why))?,
                key: seal(&key)?,
                authority: pem(authority)?,
                certificate: pem(certificate)?,
            })
        }
        Credentials::Ssh(SshAccess { private_key, host_key }) => {
            Ok(EngineKeys::Ssh { host_key, key: seal(private_key.as_str())? })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_takes_the_keys_of_its_way() {
        let pem = "-----BEGIN CERTIFICATE-----";
        let ssh_key =
            "-----BEGIN OPENSSH PRIVATE KEY-----\r\nAAAA\r\n-----END OPENSSH PRIVATE KEY-----";
        let tls_key = "-----BEGIN PRIVATE KEY-----";
        let given = |certificates: bool, host_key: bool, key: &str| Given {
            authority: certificates.then(|| pem.parse().unwrap()),
            certificate: certificates.then(|| pem.parse().unwrap()),
            host_key: host_key.then(|| "ssh-ed25519 AAAA".parse().unwrap()),
            key: (!key.is_empty()).then(|| key.parse().unwrap()),
        };
        let (tls, ssh) = ("10.0.0.21:2376", "ssh://docker@10.0.0.21");
        let of = |address: &str, given: Given| given.for_engine_at(&address.parse().unwrap());
        assert!(matches!(of(tls, given(true, false, tls_key)), Ok(Credentials::Tls(_))));
        let Ok(Credentials::Ssh(access)) = of(ssh, given(false, true, ssh_key)) else {
            panic!("no key of ssh")
        };
        let written =
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n";
        assert_eq!(access.private_key.as_str(), written);
        for (address, given, field) in [
            (tls, given(true, true, tls_key), "certificate"),
            (tls, given(false, false, tls_key), "certificate"),
            (tls, given(true, false, ""), "key"),
            (ssh, given(false, false, ssh_key), "hostKey"),
            (ssh, given(true, true, ssh_key), "hostKey"),
            (ssh, given(false, true, tls_key), "key"),
        ] {
            let refused = of(address, given).unwrap_err().to_string();
            assert!(refused.contains(field), "{refused}");
        }
    }
}
