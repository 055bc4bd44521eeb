//! Reads PKCS#12 files: keystores of Java and Android, and identities out of a keychain.
//!
//! Source: RFC 7292. The structure is read by hand, and for three reasons: the work for all
//! passwords of a file has one limit, because the file itself states how much each of its parts
//! costs; an entry may have a password of its own, as Java permits; and files in BER are read, as
//! Windows and Firefox write them. Parts that are signed or encrypted with public keys are not read.

mod encryption;
mod mac;
mod password;

use std::num::NonZeroU32;

use app_inspect::der::{CONTEXT_0, Der, Element, INTEGER, OCTET_STRING, OID, SEQUENCE, SET};
use x509_parser::der_parser::oid::Oid;
use zeroize::Zeroizing;

use crate::ber;
use encryption::Encryption;
use mac::Mac;
use password::Password;

/// Most rounds of hashing for one file. Keytool takes 10,000 for each entry; two million take some
/// tenths of a second.
pub(crate) const MOST_ROUNDS: u64 = 2_000_000;
/// Most keys and certificates of one file.
const MOST_ENTRIES: usize = 1_000;

/// Tag of an implicit octet string that the surrounding type numbers 0.
const CONTEXT_0_OCTETS: u8 = 0x80;

const OID_DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";
const OID_ENCRYPTED_DATA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x06";
const OID_FRIENDLY_NAME: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x14";
const OID_LOCAL_KEY_ID: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x15";
const OID_X509_CERTIFICATE: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01";
const OID_KEY_BAG: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x01";
const OID_SHROUDED_KEY_BAG: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x02";
const OID_CERTIFICATE_BAG: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03";

/// Why a file, or a key in it, cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The bytes are something else.
    NotPkcs12,
    Damaged,
    /// The object identifier of the first algorithm that is not supported.
    Unsupported(String),
    TooMuchWork,
    WrongPassword,
}

impl Problem {
    fn unsupported(oid: &[u8]) -> Self {
        Self::Unsupported(Oid::new(oid.into()).to_id_string().chars().take(60).collect())
    }
}

/// The rounds of hashing that are left for a file.
struct Budget(u64);

impl Budget {
    /// Takes `runs` times `rounds`, before they are done.
    fn spend(&mut self, rounds: NonZeroU32, runs: usize) -> Result<(), Problem> {
        let work = u64::from(rounds.get()).saturating_mul(runs as u64);
        self.0 = self.0.checked_sub(work).ok_or(Problem::TooMuchWork)?;
        Ok(())
    }
}

/// What a file holds: its certificates, and its keys still encrypted.
pub(crate) struct Archive {
    pub(crate) keys: Vec<KeyBag>,
    pub(crate) certificates: Vec<CertificateBag>,
    /// Whether a code told that the password is right. Without one, only decryption tells.
    pub(crate) has_mac: bool,
    budget: Budget,
}

pub(crate) struct KeyBag {
    /// The alias.
    pub(crate) name: Option<String>,
    /// Equals that of the certificate of this key.
    pub(crate) id: Option<Vec<u8>>,
    /// `None` if `data` is the key itself.
    encryption: Option<Encryption>,
    data: Zeroizing<Vec<u8>>,
}

pub(crate) struct CertificateBag {
    pub(crate) id: Option<Vec<u8>>,
    pub(crate) der: Vec<u8>,
}

impl KeyBag {
    pub(crate) fn is_encrypted(&self) -> bool {
        self.encryption.is_some()
    }
}

impl Archive {
    /// Opens a file, and decrypts its certificates.
    pub(crate) fn open(bytes: &[u8], password: &str) -> Result<Self, Problem> {
        let der = ber::to_der(bytes).ok_or(Problem::NotPkcs12)?;
        let (content, mac) = split(&der).ok_or(Problem::NotPkcs12)?;
        let (kind, content) = content_info(content).ok_or(Problem::Damaged)?;
        if kind != OID_DATA {
            return Err(Problem::unsupported(kind));
        }
        let content = Der::new(content).expect(OCTET_STRING).ok_or(Problem::Damaged)?.content;

        let mut budget = Budget(MOST_ROUNDS);
        let has_mac = mac.is_some();
        let password = match mac {
            Some(mac) => Mac::read(mac)?.check(password, content, &mut budget)?,
            None => Password::new(password),
        };
        let mut archive = Self { keys: Vec::new(), certificates: Vec::new(), has_mac, budget };
        let safes = ber::to_der(content).ok_or(Problem::Damaged)?;
        for safe in Der::new(&safes).enter(SEQUENCE).ok_or(Problem::Damaged)? {
            archive.read_safe(Der::new(safe.content), &password)?;
        }
        Ok(archive)
    }

    /// The PKCS#8 form of a key of this archive.
    pub(crate) fn key(
        &mut self,
        index: usize,
        password: &str,
    ) -> Result<Zeroizing<Vec<u8>>, Problem> {
        let bag = self.keys.get(index).ok_or(Problem::Damaged)?;
        let Some(encryption) = &bag.encryption else { return Ok(bag.data.clone()) };
        let mut attempt = |password| {
            let key = encryption.decrypt(&bag.data, password, &mut self.budget)?;
            // A wrong password leaves a valid padding once in 256 times, but no structure.
            let whole = Der::new(&key).expect(SEQUENCE).map(|key| key.whole.len());
            if whole == Some(key.len()) { Ok(key) } else { Err(Problem::WrongPassword) }
        };
        match attempt(&Password::new(password)) {
            Err(Problem::WrongPassword) if password.is_empty() => attempt(&Password::none()),
            decrypted => decrypted,
        }
    }

    /// Reads the fields of a `ContentInfo` with a `SafeContents`.
    fn read_safe(&mut self, safe: Der, password: &Password) -> Result<(), Problem> {
        let (kind, content) = content_info(safe).ok_or(Problem::Damaged)?;
        // Without a code, this is where a wrong password shows.
        let unreadable = if self.has_mac { Problem::Damaged } else { Problem::WrongPassword };
        let bags = match kind {
            OID_DATA => {
                let bags = Der::new(content).expect(OCTET_STRING).ok_or(Problem::Damaged)?;
                Zeroizing::new(bags.content.to_vec())
            }
            OID_ENCRYPTED_DATA => {
                let (algorithm, data) = encrypted_data(content).ok_or(Problem::Damaged)?;
                let bags = Encryption::read(algorithm)?.decrypt(&data, password, &mut self.budget);
                bags.map_err(|problem| match problem {
                    Problem::WrongPassword => unreadable.clone(),
                    problem => problem,
                })?
            }
            _ => return Err(Problem::unsupported(kind)),
        };
        let bags = ber::to_der(&bags).map(Zeroizing::new).ok_or(unreadable.clone())?;
        for bag in Der::new(&bags).enter(SEQUENCE).ok_or(unreadable)? {
            self.read_bag(Der::new(bag.content))?;
        }
        Ok(())
    }

    /// Reads the fields of a `SafeBag`. Bags of other kinds, such as passwords, are passed over.
    fn read_bag(&mut self, mut bag: Der) -> Result<(), Problem> {
        if self.keys.len() + self.certificates.len() >= MOST_ENTRIES {
            return Err(Problem::TooMuchWork);
        }
        let kind = bag.expect(OID).ok_or(Problem::Damaged)?.content;
        let value = bag.enter(CONTEXT_0).ok_or(Problem::Damaged)?;
        let (name, id) = bag.enter(SET).map(attributes).unwrap_or_default();
        match kind {
            OID_KEY_BAG => {
                let key = { value }.expect(SEQUENCE).ok_or(Problem::Damaged)?.whole.to_vec();
                self.keys.push(KeyBag { name, id, encryption: None, data: key.into() });
            }
            OID_SHROUDED_KEY_BAG => {
                let mut key = { value }.enter(SEQUENCE).ok_or(Problem::Damaged)?;
                let algorithm = key.enter(SEQUENCE).ok_or(Problem::Damaged)?;
                let data = key.expect(OCTET_STRING).ok_or(Problem::Damaged)?.content.to_vec();
                let encryption = Some(Encryption::read(algorithm)?);
                self.keys.push(KeyBag { name, id, encryption, data: data.into() });
            }
            OID_CERTIFICATE_BAG => {
                if let Some(der) = certificate(value).ok_or(Problem::Damaged)? {
                    self.certificates.push(CertificateBag { id, der });
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The `ContentInfo` and the `MacData` of a `PFX` of version 3.
fn split(pfx: &[u8]) -> Option<(Der<'_>, Option<Der<'_>>)> {
    let mut pfx = Der::new(pfx).enter(SEQUENCE)?;
    (pfx.expect(INTEGER)?.content == [3]).then_some(())?;
    let content = pfx.enter(SEQUENCE)?;
    Some((content, pfx.enter(SEQUENCE)))
}

/// Whether the bytes begin as a PKCS#12 file does.
pub(crate) fn is_pkcs12(bytes: &[u8]) -> bool {
    ber::to_der(bytes).is_some_and(|der| split(&der).is_some())
}

/// The type and the content of a `ContentInfo`.
fn content_info(mut info: Der<'_>) -> Option<(&[u8], &[u8])> {
    let kind = info.expect(OID)?.content;
    Some((kind, info.expect(CONTEXT_0)?.content))
}

/// The algorithm and the encrypted bytes of an `EncryptedData`.
fn encrypted_data(content: &[u8]) -> Option<(Der<'_>, Vec<u8>)> {
    let mut data = Der::new(content).enter(SEQUENCE)?;
    data.expect(INTEGER)?; // version
    let mut info = data.enter(SEQUENCE)?;
    info.expect(OID)?; // type of the content
    let algorithm = info.enter(SEQUENCE)?;
    let encrypted = info.next()?;
    let encrypted = match encrypted.tag {
        CONTEXT_0_OCTETS => encrypted.content.to_vec(),
        CONTEXT_0 => ber::join(encrypted.content)?,
        _ => return None,
    };
    Some((algorithm, encrypted))
}

/// The X.509 certificate in a `CertBag`. `Some(None)` if it holds a certificate of another kind.
fn certificate(mut bag: Der) -> Option<Option<Vec<u8>>> {
    let mut bag = bag.enter(SEQUENCE)?;
    if bag.expect(OID)?.content != OID_X509_CERTIFICATE {
        return Some(None);
    }
    Some(Some(bag.enter(CONTEXT_0)?.expect(OCTET_STRING)?.content.to_vec()))
}

/// The friendly name and the local key id among the attributes of a bag.
fn attributes(attributes: Der) -> (Option<String>, Option<Vec<u8>>) {
    let (mut name, mut id) = (None, None);
    for attribute in attributes {
        let mut attribute = Der::new(attribute.content);
        let kind = attribute.expect(OID).map(|kind| kind.content);
        let value: Option<Element> = attribute.enter(SET).and_then(|mut values| values.next());
        match (kind, value) {
            (Some(OID_FRIENDLY_NAME), Some(value)) => name = Some(utf16(value.content)),
            (Some(OID_LOCAL_KEY_ID), Some(value)) => id = Some(value.content.to_vec()),
            _ => {}
        }
    }
    (name, id)
}

/// A `BMPString`. Some programs end it with a zero.
fn utf16(bytes: &[u8]) -> String {
    let (units, _) = bytes.as_chunks::<2>();
    let units: Vec<u16> = units.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
    String::from_utf16_lossy(&units).trim_end_matches('\0').to_owned()
}

/// A positive `INTEGER`, which counts rounds.
fn unsigned(content: &[u8]) -> Option<NonZeroU32> {
    content.first().filter(|first| **first < 0x80)?;
    let digits = content.iter().skip_while(|digit| **digit == 0);
    // More rounds than fit into the type are more than the limit.
    let number = digits.fold(0_u32, |number, digit| {
        number
            .checked_mul(256)
            .and_then(|high| high.checked_add(u32::from(*digit)))
            .unwrap_or(u32::MAX)
    });
    NonZeroU32::new(number)
}
