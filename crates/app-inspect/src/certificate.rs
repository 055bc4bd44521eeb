//! X.509 certificates, and signatures made with their keys.

use aws_lc_rs::digest::{self, digest};
use aws_lc_rs::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use data_encoding::HEXLOWER;
use x509_parser::der_parser::oid;
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521,
    OID_PKCS1_RSAENCRYPTION, Oid,
};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::report::Signer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hash {
    /// Collisions can be made, but old JAR signatures still use this hash.
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    pub(crate) fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        }
    }

    pub(crate) fn of(self, bytes: &[u8]) -> digest::Digest {
        digest(self.algorithm(), bytes)
    }
}

/// The padding of an RSA signature. ECDSA has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Padding {
    Pkcs1,
    Pss,
}

/// The result of checking a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Valid,
    Invalid,
    /// This crate cannot check the key or the algorithm.
    Unsupported,
}

/// A certificate in DER.
pub struct Certificate<'a> {
    der: &'a [u8],
    parsed: X509Certificate<'a>,
}

impl<'a> Certificate<'a> {
    /// `None` if the bytes are no certificate, or more than one.
    pub fn parse(der: &'a [u8]) -> Option<Self> {
        let (rest, parsed) = X509Certificate::from_der(der).ok()?;
        rest.is_empty().then_some(Self { der, parsed })
    }

    /// The fields.
    pub fn x509(&self) -> &X509Certificate<'a> {
        &self.parsed
    }

    /// The fingerprint and the subject.
    pub fn signer(&self) -> Signer {
        // Reports are stored and listed, and genuine subjects are shorter.
        let subject: String = self.parsed.subject().to_string().chars().take(500).collect();
        Signer { sha256: HEXLOWER.encode(Hash::Sha256.of(self.der).as_ref()), subject }
    }

    /// The `SubjectPublicKeyInfo`, DER.
    pub(crate) fn public_key_info(&self) -> &[u8] {
        self.parsed.public_key().raw
    }

    /// Whether a CMS `IssuerAndSerialNumber` with these fields names this certificate.
    pub(crate) fn is_named(&self, issuer: &[u8], serial: &[u8]) -> bool {
        self.parsed.issuer().as_raw() == issuer && self.parsed.raw_serial() == serial
    }

    /// Checks a signature over `message`. Validity dates do not count: an app stays installable
    /// after its certificate has expired.
    pub(crate) fn verify(
        &self,
        hash: Hash,
        padding: Padding,
        message: &[u8],
        signature: &[u8],
    ) -> Verdict {
        let key = &self.parsed.public_key();
        let curve = key.algorithm.parameters.as_ref().and_then(|curve| curve.as_oid().ok());
        let Some(algorithm) = algorithm(&key.algorithm.algorithm, curve.as_ref(), hash, padding)
        else {
            return Verdict::Unsupported;
        };
        self.check(algorithm, message, signature)
    }

    /// Checks a pure ML-DSA signature (FIPS 204), without context, over `message`.
    pub(crate) fn verify_ml_dsa(&self, message: &[u8], signature: &[u8]) -> Verdict {
        match self.ml_dsa() {
            Some(algorithm) => self.check(algorithm, message, signature),
            None => Verdict::Unsupported,
        }
    }

    /// Android accepts these two strengths.
    fn ml_dsa(&self) -> Option<&'static dyn VerificationAlgorithm> {
        let key = &self.parsed.public_key().algorithm.algorithm;
        if *key == oid!(2.16.840.1.101.3.4.3.18) {
            Some(&signature::ML_DSA_65)
        } else if *key == oid!(2.16.840.1.101.3.4.3.19) {
            Some(&signature::ML_DSA_87)
        } else {
            None
        }
    }

    fn check(
        &self,
        algorithm: &'static dyn VerificationAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Verdict {
        let key = &self.parsed.public_key().subject_public_key.data;
        match UnparsedPublicKey::new(algorithm, key).verify(message, signature) {
            Ok(()) => Verdict::Valid,
            Err(_) => Verdict::Invalid,
        }
    }
}

fn algorithm(
    key: &Oid,
    curve: Option<&Oid>,
    hash: Hash,
    padding: Padding,
) -> Option<&'static dyn VerificationAlgorithm> {
    if *key == OID_PKCS1_RSAENCRYPTION {
        // Android debug keys had 1024 bits until 2014, and phones still accept them.
        return Some(match (padding, hash) {
            (Padding::Pkcs1, Hash::Sha1) => {
                &signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY
            }
            (Padding::Pkcs1, Hash::Sha256) => {
                &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY
            }
            (Padding::Pkcs1, Hash::Sha384) => &signature::RSA_PKCS1_2048_8192_SHA384,
            (Padding::Pkcs1, Hash::Sha512) => {
                &signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY
            }
            (Padding::Pss, Hash::Sha256) => &signature::RSA_PSS_2048_8192_SHA256,
            (Padding::Pss, Hash::Sha384) => &signature::RSA_PSS_2048_8192_SHA384,
            (Padding::Pss, Hash::Sha512) => &signature::RSA_PSS_2048_8192_SHA512,
            (Padding::Pss, Hash::Sha1) => return None,
        });
    }
    if *key != OID_KEY_TYPE_EC_PUBLIC_KEY {
        return None;
    }
    let curve = curve?;
    let by_hash: [&'static dyn VerificationAlgorithm; 3] = if *curve == OID_EC_P256 {
        [
            &signature::ECDSA_P256_SHA256_ASN1,
            &signature::ECDSA_P256_SHA384_ASN1,
            &signature::ECDSA_P256_SHA512_ASN1,
        ]
    } else if *curve == OID_NIST_EC_P384 {
        [
            &signature::ECDSA_P384_SHA256_ASN1,
            &signature::ECDSA_P384_SHA384_ASN1,
            &signature::ECDSA_P384_SHA512_ASN1,
        ]
    } else if *curve == OID_NIST_EC_P521 {
        [
            &signature::ECDSA_P521_SHA256_ASN1,
            &signature::ECDSA_P521_SHA384_ASN1,
            &signature::ECDSA_P521_SHA512_ASN1,
        ]
    } else {
        return None;
    };
    let [sha256, sha384, sha512] = by_hash;
    match hash {
        Hash::Sha1 => None,
        Hash::Sha256 => Some(sha256),
        Hash::Sha384 => Some(sha384),
        Hash::Sha512 => Some(sha512),
    }
}
