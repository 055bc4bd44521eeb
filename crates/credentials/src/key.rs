//! Private keys in PKCS#8, and the public keys that belong to them.

use app_inspect::der::{Der, INTEGER, OCTET_STRING, OID, SEQUENCE};
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair,
};
use x509_parser::der_parser::oid::Oid;
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521,
    OID_PKCS1_RSAENCRYPTION,
};
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::ber;
use crate::facts::KeyKind;

/// Bits of the shortest RSA key that the library reads.
const SHORTEST_READ_RSA: u32 = 2048;

/// Compared with that of a certificate, to see whether both belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    pub(crate) kind: KeyKind,
    /// An `RSAPublicKey` in DER, or a point of the curve, uncompressed.
    bytes: Vec<u8>,
}

/// Why a key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyError {
    /// The bytes are no key in PKCS#8, or its parts contradict each other.
    Malformed,
    /// The key is neither of RSA nor of a curve of NIST.
    Unsupported,
}

impl PublicKey {
    /// The public key that belongs to a private key, which is computed from it.
    pub(crate) fn of_private(pkcs8: &[u8]) -> Result<Self, KeyError> {
        let (algorithm, curve, key) = fields(pkcs8).ok_or(KeyError::Malformed)?;
        match kind_of(&algorithm, curve.as_ref()).ok_or(KeyError::Unsupported)? {
            KeyKind::Rsa { .. } => Self::of_rsa(pkcs8, key),
            KeyKind::Ec { bits } => {
                let pair = EcdsaKeyPair::from_pkcs8(signing(bits), pkcs8);
                let pair = pair.map_err(|_| KeyError::Malformed)?;
                Ok(Self { kind: KeyKind::Ec { bits }, bytes: pair.public_key().as_ref().to_vec() })
            }
        }
    }

    fn of_rsa(pkcs8: &[u8], key: &[u8]) -> Result<Self, KeyError> {
        let stated = stated_rsa(key).ok_or(KeyError::Malformed)?;
        let bits = rsa_bits(&stated).ok_or(KeyError::Malformed)?;
        let bytes = if bits < SHORTEST_READ_RSA {
            // Android apps of before 2014 have such keys. What the key states of itself is taken.
            stated
        } else {
            let pair = rsa::KeyPair::from_pkcs8(pkcs8).map_err(|_| KeyError::Malformed)?;
            pair.public_key().as_ref().to_vec()
        };
        Ok(Self { kind: KeyKind::Rsa { bits }, bytes })
    }

    pub(crate) fn of_certificate(info: &SubjectPublicKeyInfo) -> Result<Self, KeyError> {
        let curve = info.algorithm.parameters.as_ref().and_then(|curve| curve.as_oid().ok());
        let bytes = info.subject_public_key.data.to_vec();
        let kind = match kind_of(&info.algorithm.algorithm, curve.as_ref()) {
            None => return Err(KeyError::Unsupported),
            Some(KeyKind::Rsa { .. }) => {
                KeyKind::Rsa { bits: rsa_bits(&bytes).ok_or(KeyError::Malformed)? }
            }
            Some(kind) => kind,
        };
        Ok(Self { kind, bytes })
    }
}

/// The algorithm, the curve and the key itself of a `PrivateKeyInfo` (RFC 5208).
fn fields(pkcs8: &[u8]) -> Option<(Oid<'_>, Option<Oid<'_>>, &[u8])> {
    let mut info = Der::new(pkcs8).enter(SEQUENCE)?;
    info.expect(INTEGER)?; // version
    let mut algorithm = info.enter(SEQUENCE)?;
    let id = Oid::new(algorithm.expect(OID)?.content.into());
    let curve = algorithm.expect(OID).map(|curve| Oid::new(curve.content.into()));
    Some((id, curve, info.expect(OCTET_STRING)?.content))
}

/// The kind of key. The bits of an RSA key are not known here.
fn kind_of(algorithm: &Oid, curve: Option<&Oid>) -> Option<KeyKind> {
    if *algorithm == OID_PKCS1_RSAENCRYPTION {
        return Some(KeyKind::Rsa { bits: 0 });
    }
    let curve = curve.filter(|_| *algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY)?;
    [(OID_EC_P256, 256), (OID_NIST_EC_P384, 384), (OID_NIST_EC_P521, 521)]
        .into_iter()
        .find_map(|(known, bits)| (known == *curve).then_some(KeyKind::Ec { bits }))
}

fn signing(bits: u32) -> &'static EcdsaSigningAlgorithm {
    match bits {
        256 => &ECDSA_P256_SHA256_ASN1_SIGNING,
        384 => &ECDSA_P384_SHA384_ASN1_SIGNING,
        _ => &ECDSA_P521_SHA512_ASN1_SIGNING,
    }
}

/// The `RSAPublicKey` in an `RSAPrivateKey` (RFC 8017, appendix A.1).
fn stated_rsa(key: &[u8]) -> Option<Vec<u8>> {
    let mut key = Der::new(key).enter(SEQUENCE)?;
    key.expect(INTEGER)?; // version
    let modulus = key.expect(INTEGER)?.whole;
    let exponent = key.expect(INTEGER)?.whole;
    let mut public = Vec::new();
    ber::append(&mut public, SEQUENCE, &[modulus, exponent].concat());
    Some(public)
}

/// Bits of the modulus of an `RSAPublicKey`.
fn rsa_bits(key: &[u8]) -> Option<u32> {
    let modulus = Der::new(key).enter(SEQUENCE)?.expect(INTEGER)?.content;
    let zeros = modulus.iter().take_while(|digit| **digit == 0).count();
    let first = modulus.get(zeros)?;
    let bytes = u32::try_from(modulus.len() - zeros).ok()?;
    bytes.checked_mul(8)?.checked_sub(first.leading_zeros())
}
