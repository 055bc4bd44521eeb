//! Detached signatures in the Cryptographic Message Syntax, as JAR files and iOS apps carry them.
//!
//! Source: RFC 5652, section 5. Only the forms of JAR files and iOS apps are read: definite
//! lengths, and signers named by issuer and serial number. The parser is written by hand because
//! decoders that insist on sorted sets refuse signatures that Java and Apple wrote.

use crate::certificate::{Certificate, Hash, Padding, Verdict};
use crate::cursor::Cursor;
use crate::refusal::Refusal;
use crate::report::Signer;

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const CONTEXT_0: u8 = 0xa0;

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
pub(crate) enum CmsError {
    Malformed,
    Unsupported,
    /// The signature is for another message.
    OtherMessage,
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
    let data = SignedData::parse(signature).ok_or(CmsError::Malformed)?;
    let hash = data.hash.ok_or(CmsError::Unsupported)?;
    let mut certificates = Der(Cursor::new(data.certificates));
    let certificate = std::iter::from_fn(|| certificates.next())
        .filter_map(|element| Certificate::parse(element.whole))
        .find(|certificate| certificate.is_named(data.issuer, data.serial))
        .ok_or(CmsError::Malformed)?;

    let attributes_as_set;
    let signed = match data.signed_attributes {
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
    match certificate.verify(hash, data.padding, signed, data.signature) {
        Verdict::Valid => Ok(certificate.signer()),
        Verdict::Unsupported => Err(CmsError::Unsupported),
        // Without attributes, a changed message looks like a forged signature. It is likelier.
        Verdict::Invalid if data.signed_attributes.is_none() => Err(CmsError::OtherMessage),
        Verdict::Invalid => Err(CmsError::Forged),
    }
}

/// A `SignedData` with its first `SignerInfo`.
struct SignedData<'a> {
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
        let mut content_info = Der(Cursor::new(content_info)).enter(SEQUENCE)?;
        (content_info.expect(OID)?.content == OID_SIGNED_DATA).then_some(())?;
        let mut data = content_info.enter(CONTEXT_0)?.enter(SEQUENCE)?;
        data.expect(INTEGER)?; // version
        data.expect(SET)?; // digest algorithms
        data.expect(SEQUENCE)?; // encapsulated content: none, it is detached
        let certificates = data.expect(CONTEXT_0)?.content;
        let mut element = data.next()?;
        if element.tag != SET {
            element = data.next()?; // after revocation lists
        }
        (element.tag == SET).then_some(())?;

        let mut signer = Der(Cursor::new(element.content)).enter(SEQUENCE)?;
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
        let algorithm = Der(Cursor::new(element.content)).expect(OID)?.content;
        let padding = if algorithm == OID_RSA_PSS { Padding::Pss } else { Padding::Pkcs1 };
        let signature = signer.expect(OCTET_STRING)?.content;
        Some(Self { certificates, issuer, serial, hash, padding, signed_attributes, signature })
    }
}

/// The value of the message-digest attribute.
fn message_digest(attributes: &[u8]) -> Option<&[u8]> {
    let mut attributes = Der(Cursor::new(attributes));
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

/// One value in DER.
#[derive(Debug, Clone, Copy)]
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    /// The value with its tag and length.
    whole: &'a [u8],
}

/// A run of values in DER.
struct Der<'a>(Cursor<'a>);

impl<'a> Der<'a> {
    fn next(&mut self) -> Option<Element<'a>> {
        let all = self.0.rest();
        let mut input = self.0;
        let tag = input.u8().filter(|tag| tag & 0x1f != 0x1f)?;
        let len = match input.u8()? {
            short @ 0..=0x7f => usize::from(short),
            long @ 0x81..=0x84 => {
                let digits = input.take(usize::from(long & 0x0f))?;
                digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit))
            }
            _ => return None,
        };
        let content = input.take(len)?;
        let whole = all.get(..all.len().checked_sub(input.rest().len())?)?;
        self.0 = input;
        Some(Element { tag, content, whole })
    }

    fn expect(&mut self, tag: u8) -> Option<Element<'a>> {
        self.next().filter(|element| element.tag == tag)
    }

    fn enter(&mut self, tag: u8) -> Option<Self> {
        self.expect(tag).map(|element| Self(Cursor::new(element.content)))
    }
}
