//! Signatures in the Cryptographic Message Syntax, as JAR files, iOS apps and provisioning profiles
//! carry them.
//!
//! Source: RFC 5652, section 5. Only the forms of these files are read: definite lengths, and
//! signers named by issuer and serial number. The parser is written by hand because decoders that
//! insist on sorted sets refuse signatures that Java and Apple wrote.

use crate::certificate::{Certificate, Hash, Padding, Verdict};
use crate::der::{CONTEXT_0, Der, Element, INTEGER, OCTET_STRING, OID, SEQUENCE, SET};
use crate::refusal::Refusal;
use crate::report::Signer;

/// Object identifiers, as the bytes inside their DER.
const OID_SIGNED_DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02";
const OID_MESSAGE_DIGEST: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04";
const OID_RSA_PSS: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a";
const OID_SHA1: &[u8] = b"\x2b\x0e\x03\x02\x1a";
const OID_SHA256: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x01";
const OID_SHA384: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x02";
const OID_SHA512: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x03";

/// Why a signature is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmsError {
    /// The bytes are no `ContentInfo` with signed data, or the signer's certificate is not in it.
    Malformed,
    /// The key or the algorithm is one that this crate cannot check.
    Unsupported,
    /// The signature is for another message.
    OtherMessage,
    /// The signature was not made with the key of the certificate.
    Forged,
}

impl CmsError {
    pub(crate) fn refusal(self, scheme: &'static str) -> Refusal {
        match self {
            Self::Malformed => {
                Refusal::InvalidSignature { scheme, reason: "its certificate block is malformed" }
            }
            Self::Forged => Refusal::InvalidSignature {
                scheme,
                reason: "it was not made with the key of its certificate",
            },
            Self::Unsupported => Refusal::UnsupportedSignature { scheme },
            Self::OtherMessage => Refusal::ChangedAfterSigning { scheme },
        }
    }
}

/// Checks that `signature`, a DER `ContentInfo`, signs `message`. Returns the first signer.
pub(crate) fn verify_detached(signature: &[u8], message: &[u8]) -> Result<Signer, CmsError> {
    SignedData::parse(signature).ok_or(CmsError::Malformed)?.verify(message)
}

/// Checks that `signed`, a DER `ContentInfo`, signs the content that it encloses, and returns this
/// content. Anybody can make such a signature: the certificate of its signer is not judged.
///
/// # Errors
///
/// A [`CmsError`] if the signature does not cover the content, or cannot be checked.
pub fn open_enclosed(signed: &[u8]) -> Result<&[u8], CmsError> {
    let data = SignedData::parse(signed).ok_or(CmsError::Malformed)?;
    let content = data.content.ok_or(CmsError::Malformed)?;
    data.verify(content)?;
    Ok(content)
}

/// A `SignedData` with its first `SignerInfo`.
struct SignedData<'a> {
    /// What is signed. `None` if the signature is detached.
    content: Option<&'a [u8]>,
    certificates: &'a [u8],
    issuer: &'a [u8],
    serial: &'a [u8],
    hash: Option<Hash>,
    padding: Padding,
    signed_attributes: Option<Element<'a>>,
    signature: &'a [u8],
}

impl<'a> SignedData<'a> {
    fn parse(content_info: &'a [u8]) -> Option<Self> {
        let mut content_info = Der::new(content_info).enter(SEQUENCE)?;
        (content_info.expect(OID)?.content == OID_SIGNED_DATA).then_some(())?;
        let mut data = content_info.enter(CONTEXT_0)?.enter(SEQUENCE)?;
        data.expect(INTEGER)?; // version
        data.expect(SET)?; // digest algorithms
        let mut enclosed = data.enter(SEQUENCE)?;
        enclosed.expect(OID)?; // type of the content
        let content =
            enclosed.enter(CONTEXT_0).and_then(|mut content| content.expect(OCTET_STRING));
        let content = content.map(|content| content.content);
        let certificates = data.expect(CONTEXT_0)?.content;
        let mut element = data.next()?;
        if element.tag != SET {
            element = data.next()?; // after revocation lists
        }
        (element.tag == SET).then_some(())?;

        let mut signer = Der::new(element.content).enter(SEQUENCE)?;
        signer.expect(INTEGER)?; // version
        let mut id = signer.enter(SEQUENCE)?;
        let issuer = id.expect(SEQUENCE)?.whole;
        let serial = id.expect(INTEGER)?.content;
        let hash = hash(signer.enter(SEQUENCE)?.expect(OID)?.content);
        let mut element = signer.next()?;
        let signed_attributes = (element.tag == CONTEXT_0).then_some(element);
        if signed_attributes.is_some() {
            element = signer.next()?;
        }
        (element.tag == SEQUENCE).then_some(())?;
        let algorithm = Der::new(element.content).expect(OID)?.content;
        let padding = if algorithm == OID_RSA_PSS { Padding::Pss } else { Padding::Pkcs1 };
        let signature = signer.expect(OCTET_STRING)?.content;
        Some(Self {
            content,
            certificates,
            issuer,
            serial,
            hash,
            padding,
            signed_attributes,
            signature,
        })
    }

    /// Checks that this is the signature of `message`. Returns its signer.
    fn verify(&self, message: &[u8]) -> Result<Signer, CmsError> {
        let hash = self.hash.ok_or(CmsError::Unsupported)?;
        let certificate = Der::new(self.certificates)
            .filter_map(|element| Certificate::parse(element.whole))
            .find(|certificate| certificate.is_named(self.issuer, self.serial))
            .ok_or(CmsError::Malformed)?;

        let attributes_as_set;
        let signed = match self.signed_attributes {
            None => message,
            Some(attributes) => {
                let stated = message_digest(attributes.content).ok_or(CmsError::Malformed)?;
                if stated != hash.of(message).as_ref() {
                    return Err(CmsError::OtherMessage);
                }
                // RFC 5652, 5.4: the signed bytes have the tag of a set, unlike the transmitted ones.
                let rest = attributes.whole.get(1..).unwrap_or_default();
                attributes_as_set = [&[SET], rest].concat();
                &attributes_as_set
            }
        };
        match certificate.verify(hash, self.padding, signed, self.signature) {
            Verdict::Valid => Ok(certificate.signer()),
            Verdict::Unsupported => Err(CmsError::Unsupported),
            // Without attributes, a changed message looks like a forged signature. It is likelier.
            Verdict::Invalid if self.signed_attributes.is_none() => Err(CmsError::OtherMessage),
            Verdict::Invalid => Err(CmsError::Forged),
        }
    }
}

/// The value of the message-digest attribute.
fn message_digest(attributes: &[u8]) -> Option<&[u8]> {
    let mut attributes = Der::new(attributes);
    loop {
        let mut attribute = attributes.enter(SEQUENCE)?;
        if attribute.expect(OID)?.content == OID_MESSAGE_DIGEST {
            return Some(attribute.enter(SET)?.expect(OCTET_STRING)?.content);
        }
    }
}

fn hash(oid: &[u8]) -> Option<Hash> {
    [
        (OID_SHA1, Hash::Sha1),
        (OID_SHA256, Hash::Sha256),
        (OID_SHA384, Hash::Sha384),
        (OID_SHA512, Hash::Sha512),
    ]
    .into_iter()
    .find_map(|(known, hash)| (known == oid).then_some(hash))
}
