//! What this server shows an authority while it proves that a name leads here.

use contract::certificates::HostName;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::{crypto::aws_lc_rs::sign::any_supported_type, sign::CertifiedKey};
use rustls_pki_types::PrivateKeyDer;
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

/// The protocol of TLS in which an authority asks for a proof (RFC 8737).
pub const PROOF_PROTOCOL: &[u8] = b"acme-tls/1";

/// The proofs that are shown now.
#[derive(Debug, Default)]
pub struct Proofs {
    /// By their tokens, for `/.well-known/acme-challenge/` (RFC 8555, section 8.3).
    answers: RwLock<HashMap<String, String>>,
    /// By their names (RFC 8737).
    certificates: RwLock<HashMap<String, Arc<CertifiedKey>>>,
}

impl Proofs {
    /// What is answered over HTTP for a token.
    pub fn answer_of(&self, token: &str) -> Option<String> {
        self.answers.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// The certificate with which a proof for a name is shown over TLS.
    pub fn certificate_of(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.certificates.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Answers over HTTP.
    pub(super) fn answer(self: &Arc<Self>, token: &str, answer: &str) -> Shown {
        let (proofs, token) = (self.clone(), token.to_owned());
        let mut answers = self.answers.write().unwrap_or_else(PoisonError::into_inner);
        answers.insert(token.clone(), answer.to_owned());
        drop(answers);
        Shown::until_dropped(move || {
            proofs.answers.write().unwrap_or_else(PoisonError::into_inner).remove(&token);
        })
    }

    /// Presents a certificate that has the digest over TLS.
    pub(super) fn present(
        self: &Arc<Self>,
        name: &HostName,
        digest: &[u8],
    ) -> Result<Shown, String> {
        let wrong = |e: &dyn std::fmt::Display| e.to_string();
        let mut params =
            CertificateParams::new(vec![name.as_str().to_owned()]).map_err(|e| wrong(&e))?;
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate().map_err(|e| wrong(&e))?;
        let certificate = params.self_signed(&key).map_err(|e| wrong(&e))?;
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|e| wrong(&e))?;
        let key = any_supported_type(&key).map_err(|e| wrong(&e))?;
        let certified = Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key));
        let (proofs, name) = (self.clone(), name.as_str().to_owned());
        let mut certificates = self.certificates.write().unwrap_or_else(PoisonError::into_inner);
        certificates.insert(name.clone(), certified);
        drop(certificates);
        Ok(Shown::until_dropped(move || {
            proofs.certificates.write().unwrap_or_else(PoisonError::into_inner).remove(&name);
        }))
    }
}

/// A proof that is shown until this is dropped.
pub(super) struct Shown(Option<Box<dyn FnOnce() + Send>>);

impl Shown {
    pub(super) fn until_dropped(end: impl FnOnce() + Send + 'static) -> Self {
        Shown(Some(Box::new(end)))
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}
