//! The deploy key of a repository, and the key of its host.

use crate::ports::sealed::Sealed;
use contract::ssh::{SshFingerprint, SshHostKey, SshPublicKey};
use serde::{Deserialize, Serialize};

/// The key pair with which an ssh host lets the service read a repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeployKey {
    pub public: SshPublicKey,
    /// Sealed for the app.
    pub private: Sealed,
    pub host: HostTrust,
}

/// Which key the host may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HostTrust {
    /// The one that the first check meets.
    FirstUse,
    /// The one that the first check meets, if it has this fingerprint.
    Expected(SshFingerprint),
    Pinned(SshHostKey),
}

impl DeployKey {
    /// This key, after its address was connected again with a new one.
    pub fn connected_again(self, new: DeployKey) -> DeployKey {
        DeployKey { host: self.host.connected_again(new.host), ..self }
    }
}

impl HostTrust {
    /// Nobody loses a known key by connecting again: another one has to be named.
    pub fn connected_again(self, wanted: HostTrust) -> HostTrust {
        match (self, wanted) {
            (known, HostTrust::FirstUse) => known,
            (HostTrust::Pinned(known), wanted) if wanted.accepts(&known) => {
                HostTrust::Pinned(known)
            }
            (_, wanted) => wanted,
        }
    }

    /// Whether the host may have this key.
    pub fn accepts(&self, key: &SshHostKey) -> bool {
        match self {
            HostTrust::FirstUse => true,
            HostTrust::Expected(fingerprint) => key.fingerprint() == *fingerprint,
            HostTrust::Pinned(known) => key == known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connecting_again_keeps_a_known_host_key_unless_another_one_is_named() {
        let [one, two]: [SshHostKey; 2] =
            ["ssh-ed25519 AAA1", "ssh-ed25519 AAA2"].map(|key| key.parse().unwrap());
        let expected = |key: &SshHostKey| HostTrust::Expected(key.fingerprint());
        let pinned = HostTrust::Pinned(one.clone());
        for (before, wanted, after) in [
            (HostTrust::FirstUse, HostTrust::FirstUse, HostTrust::FirstUse),
            (HostTrust::FirstUse, expected(&one), expected(&one)),
            (expected(&one), HostTrust::FirstUse, expected(&one)),
            (expected(&one), expected(&two), expected(&two)),
            (pinned.clone(), HostTrust::FirstUse, pinned.clone()),
            (pinned.clone(), expected(&one), pinned.clone()),
            (pinned.clone(), expected(&two), expected(&two)),
        ] {
            assert_eq!(
                before.clone().connected_again(wanted.clone()),
                after,
                "{before:?} {wanted:?}"
            );
        }
        assert!(pinned.accepts(&one) && !pinned.accepts(&two) && !expected(&two).accepts(&one));
    }
}
