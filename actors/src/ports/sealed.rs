//! Encrypted secrets. Without the key of the installation, nobody can read them from the store.

use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// An encrypted secret, bound to its owner.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sealed(String);

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(contract::text::MASK)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The secret was sealed with another key, for another owner, or is damaged.
    #[error(
        "a secret cannot be opened: the encryption key of this installation is not the one that it was sealed with"
    )]
    Foreign,
    #[error("the operating system gives no random bytes")]
    NoRandomness,
}

/// Seals and opens with the key of the installation (XChaCha20-Poly1305).
#[derive(Clone)]
pub struct Sealer(Arc<XChaCha20Poly1305>);

const NONCE: usize = 24;

impl Sealer {
    pub fn new(key: [u8; 32]) -> Self {
        Sealer(Arc::new(XChaCha20Poly1305::new(&key.into())))
    }

    /// Seals a secret of `owner`, such as an instance's id.
    pub fn seal(&self, owner: &str, secret: &str) -> Result<Sealed, SealError> {
        let mut nonce = [0_u8; NONCE];
        getrandom::fill(&mut nonce).map_err(|_| SealError::NoRandomness)?;
        let payload = Payload { msg: secret.as_bytes(), aad: owner.as_bytes() };
        let bytes =
            self.0.encrypt(&XNonce::from(nonce), payload).map_err(|_| SealError::Foreign)?;
        Ok(Sealed(BASE64.encode(&[&nonce[..], &bytes].concat())))
    }

    /// Opens a secret. Fails if `owner` is not the one that it was sealed for.
    pub fn open(&self, owner: &str, sealed: &Sealed) -> Result<String, SealError> {
        let bytes = BASE64.decode(sealed.0.as_bytes()).map_err(|_| SealError::Foreign)?;
        let (nonce, bytes) = bytes.split_first_chunk::<NONCE>().ok_or(SealError::Foreign)?;
        let payload = Payload { msg: bytes, aad: owner.as_bytes() };
        let secret =
            self.0.decrypt(&XNonce::from(*nonce), payload).map_err(|_| SealError::Foreign)?;
        String::from_utf8(secret).map_err(|_| SealError::Foreign)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_opened_by_its_owner_and_key_only() {
        let sealer = Sealer::new([7; 32]);
        let sealed = sealer.seal("ins_1", "hunter2").unwrap();
        assert_eq!(sealer.open("ins_1", &sealed).unwrap(), "hunter2");
        assert_eq!(sealer.open("ins_2", &sealed), Err(SealError::Foreign));
        assert_eq!(Sealer::new([8; 32]).open("ins_1", &sealed), Err(SealError::Foreign));
        assert_ne!(sealed, sealer.seal("ins_1", "hunter2").unwrap(), "each time another nonce");
        assert!(!format!("{sealed:?}").contains(&sealed.0));
    }
}
