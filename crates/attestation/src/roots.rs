//! Whom to trust, as data, and the check of a bundle against it.

use std::fmt;

use serde_json::Deserializer;
use sigstore_verify::trust_root::{SigstoreInstance, TrustedRoot};
use sigstore_verify::types::bundle::VerificationMaterialContent;
use sigstore_verify::types::{
    Artifact, ArtifactDigest, Bundle, DerCertificate, HashAlgorithm, Sha256Hash,
};
use sigstore_verify::{VerificationPolicy, VerificationResult, Verifier};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::refusal::quote;
use crate::{Digest, Refusal};

/// The media types of trusted roots begin so.
const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.trustedroot";

/// The largest file of trusted roots, in bytes. Real ones have about 30 KiB.
const LARGEST_FILE: usize = 1 << 20;

/// The instances of Sigstore that are trusted, each with the keys of its authorities and logs.
///
/// An instance is as strict as its root: a transparency log or a log of certificates that the root
/// lists must prove every attestation. A root without a transparency log has timestamp authorities,
/// whose timestamps are then required.
pub struct Roots {
    instances: Vec<TrustedInstance>,
}

/// Why a file cannot be used as trusted roots.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file} cannot be used as trusted roots of Sigstore: {problem}; put the trusted_root.json of an \
     instance there, such as `gh attestation trusted-root` prints it"
)]
pub struct UnusableRoot {
    /// The name of the file.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

struct TrustedInstance {
    verifier: Verifier,
    policy: VerificationPolicy,
    /// The names of its authorities, in DER.
    authorities: Vec<Vec<u8>>,
}

impl Roots {
    /// The public-good instance of Sigstore, and that of GitHub for private repositories, as they
    /// were when this version of the program was made.
    ///
    /// # Errors
    ///
    /// [`UnusableRoot`] if an embedded root is unusable, which is a bug.
    pub fn built_in() -> Result<Self, UnusableRoot> {
        let embedded = [
            ("the embedded public-good root", SigstoreInstance::PublicGood),
            ("the embedded root of GitHub", SigstoreInstance::GitHub),
        ];
        Self::read(embedded.map(|(name, instance)| (name, instance.embedded_trusted_root_json())))
    }

    /// Reads the contents of files, each with the name for messages. A file contains one or more
    /// `trusted_root.json` documents, one after the other.
    ///
    /// The result trusts the instances in these files and no other. Without files, every attestation
    /// is refused.
    ///
    /// Source: `sigstore_trustroot.proto` of "Sigstore protobuf-specs".
    ///
    /// # Errors
    ///
    /// [`UnusableRoot`] for the first file that contains something else, or a root with which nothing
    /// can be verified.
    pub fn read<N: Into<String>, D: AsRef<[u8]>>(
        files: impl IntoIterator<Item = (N, D)>,
    ) -> Result<Self, UnusableRoot> {
        let mut instances = Vec::new();
        for (file, content) in files {
            let found = read_file(content.as_ref())
                .map_err(|problem| UnusableRoot { file: file.into(), problem })?;
            instances.extend(found);
        }
        Ok(Self { instances })
    }

    /// Verifies everything about the bundle but the type of its statement.
    pub(crate) fn check(
        &self,
        bundle: &Bundle,
        digest: &Digest,
    ) -> Result<VerificationResult, Refusal> {
        let chain = certificates(bundle)
            .into_iter()
            .map(|certificate| parse(certificate).map_err(|error| Refusal::certificate(&error)))
            .collect::<Result<Vec<_>, _>>()?;
        let Some(leaf) = chain.first() else {
            return Err(Refusal::Certificate { problem: "the bundle has none".into() });
        };
        let knows = |instance: &&TrustedInstance| {
            let known = |name: &[u8]| instance.authorities.iter().any(|known| known == name);
            chain.iter().any(|certificate| known(certificate.issuer().as_raw()))
        };
        let mut refusal = Refusal::UnknownInstance { issuer: quote(leaf.issuer()) };
        for instance in self.instances.iter().filter(knows) {
            let artifact = artifact(digest).map_err(Refusal::from)?;
            match instance.verifier.verify(artifact, bundle, &instance.policy) {
                // The policy asks for this. Without it, the claims in the certificate are worth
                // nothing.
                Ok(verified) if verified.certificate_verified() => return Ok(verified),
                Ok(_) => refusal = Refusal::Certificate { problem: "it was not verified".into() },
                Err(error) => refusal = error.into(),
            }
        }
        Err(refusal)
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roots").field("instances", &self.instances.len()).finish()
    }
}

/// The certificates of the bundle, that of the signer first.
pub(crate) fn certificates(bundle: &Bundle) -> Vec<&DerCertificate> {
    match &bundle.verification_material.content {
        VerificationMaterialContent::Certificate(content) => vec![&content.raw_bytes],
        VerificationMaterialContent::X509CertificateChain { certificates } => {
            certificates.iter().map(|certificate| &certificate.raw_bytes).collect()
        }
        _ => Vec::new(),
    }
}

fn parse(certificate: &DerCertificate) -> Result<X509Certificate<'_>, String> {
    let (_, certificate) =
        X509Certificate::from_der(certificate.as_bytes()).map_err(|error| error.to_string())?;
    Ok(certificate)
}

fn artifact(digest: &Digest) -> Result<Artifact<'static>, sigstore_verify::Error> {
    Ok(Artifact::from_digest(match digest {
        Digest::Sha256(bytes) => ArtifactDigest::sha256(Sha256Hash::new(*bytes)),
        Digest::Sha512(bytes) => ArtifactDigest::new(HashAlgorithm::Sha2512, bytes.to_vec())?,
    }))
}

fn read_file(content: &[u8]) -> Result<Vec<TrustedInstance>, String> {
    if content.len() > LARGEST_FILE {
        return Err(format!("it is larger than {} KiB", LARGEST_FILE >> 10));
    }
    let roots: Vec<TrustedRoot> = Deserializer::from_slice(content)
        .into_iter()
        .collect::<Result<_, _>>()
        .map_err(|error| quote(&error))?;
    if roots.is_empty() {
        return Err("it is empty".into());
    }
    roots.iter().map(TrustedInstance::new).collect()
}

impl TrustedInstance {
    fn new(root: &TrustedRoot) -> Result<Self, String> {
        if !root.media_type.starts_with(MEDIA_TYPE) {
            return Err(format!("its media type is {}", quote(&root.media_type)));
        }
        if root.certificate_authorities.is_empty() {
            return Err("it has no certificate authority".into());
        }
        if root.tlogs.is_empty() && root.timestamp_authorities.is_empty() {
            return Err("it has neither a transparency log nor a timestamp authority".into());
        }
        let mut policy = VerificationPolicy::any_identity();
        if root.tlogs.is_empty() {
            policy = policy.skip_tlog_unsafe();
        }
        if root.ctlogs.is_empty() {
            policy = policy.skip_sct();
        }
        let authorities = root
            .certificate_authorities
            .iter()
            .flat_map(|authority| &authority.cert_chain.certificates)
            .map(|entry| Ok(parse(&entry.raw_bytes)?.subject().as_raw().to_vec()))
            .collect::<Result<_, String>>()?;
        let verifier = Verifier::new(root).map_err(|error| quote(&error))?;
        Ok(Self { verifier, policy, authorities })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;

    /// An attestation by GitHub's instance, which has no log: no provenance, so only this module can
    /// verify it. Its source is in `tests/fixtures/README.md`.
    fn release() -> (Bundle, Digest) {
        let hex = b"76f1fe8593bf227cca2c089e3c16dc95014a8d3e89c5dd220530469ca043c428";
        let digest = HEXLOWER.decode(hex).unwrap().try_into().unwrap();
        let bundle = include_str!("../tests/fixtures/github-release.json");
        (Bundle::from_json(bundle).unwrap(), Digest::Sha256(digest))
    }

    #[test]
    fn an_instance_without_a_log_is_verified_by_its_timestamp() {
        let (mut bundle, digest) = release();
        let roots = Roots::built_in().unwrap();
        let verified = roots.check(&bundle, &digest).unwrap();
        assert_eq!(verified.verified_timestamps().len(), 1);
        assert!(!verified.tlog_verified());

        let data = &mut bundle.verification_material.timestamp_verification_data;
        let token = data.rfc3161_timestamps.pop().unwrap();
        let refusal = roots.check(&bundle, &digest).unwrap_err();
        assert!(matches!(refusal, Refusal::Bundle { .. }), "{refusal}");

        let bytes = token.signed_timestamp.as_bytes().to_vec();
        // In the signed content, in its digest, and in the signature.
        for at in [150, 430, bytes.len() - 1] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            let mut token = token.clone();
            token.signed_timestamp = bytes.into();
            let data = &mut bundle.verification_material.timestamp_verification_data;
            data.rfc3161_timestamps = vec![token];
            let refusal = roots.check(&bundle, &digest).unwrap_err();
            assert!(matches!(refusal, Refusal::Time { .. }), "{at}: {refusal}");
        }
    }

    #[test]
    fn roots_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Roots>();
    }
}
