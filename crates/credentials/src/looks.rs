//! What bytes are that are not what was asked for.

use std::fmt;

use app_inspect::certificate::Certificate;
use app_inspect::der::{CONTEXT_0, Der, INTEGER, OCTET_STRING, OID, SEQUENCE};
use data_encoding::BASE64;

use crate::{ber, pem, pkcs12};

/// A guess at the format of a file, as the end of a sentence that begins with "it is".
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Looks {
    /// No bytes.
    Empty,
    /// A text of PEM blocks, with the label of the first one.
    Pem(String),
    /// A keystore of Java, as it made them by default before version 9.
    Jks,
    /// A keystore of Java's cryptography extension.
    Jceks,
    /// A PKCS#12 file.
    Pkcs12,
    /// An X.509 certificate in DER.
    Certificate,
    /// A signed message, such as a provisioning profile.
    SignedMessage,
    /// A private key in DER.
    Pkcs8,
    /// A web page.
    Html,
    /// A property list in XML.
    PropertyList,
    /// A JSON object.
    Json,
    /// A zip archive, or an app, which is one.
    Zip,
    /// A binary file as Base64 text.
    Base64,
    /// The beginning of a file in DER.
    CutOff,
    /// Nothing that is known here.
    Unknown,
}

impl Looks {
    /// The format of `bytes`, as far as their beginning tells.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).unwrap_or_default().trim_start_matches('\u{feff}');
        let text = text.trim();
        let starts = |with: &str| {
            text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
        };
        match bytes {
            [] => Self::Empty,
            [0xfe, 0xed, 0xfe, 0xed, ..] => Self::Jks,
            [0xce, 0xce, 0xce, 0xce, ..] => Self::Jceks,
            [b'P', b'K', 3, 4, ..] => Self::Zip,
            _ if bytes.trim_ascii().is_empty() => Self::Empty,
            _ if starts("<!doctype html") || starts("<html") => Self::Html,
            _ if text.starts_with('<') && text.contains("<plist") => Self::PropertyList,
            _ if text.starts_with('{') => Self::Json,
            _ if text.contains("-----BEGIN ") => {
                Self::Pem(pem::label(text).unwrap_or_default().to_owned())
            }
            [SEQUENCE, ..] => Self::of_der(bytes),
            _ if is_base64(text) => Self::Base64,
            _ => Self::Unknown,
        }
    }

    fn of_der(bytes: &[u8]) -> Self {
        let Some(der) = ber::to_der(bytes) else { return Self::CutOff };
        if pkcs12::is_pkcs12(&der) {
            Self::Pkcs12
        } else if is_message(&der).is_some() {
            Self::SignedMessage
        } else if is_pkcs8(&der).is_some() {
            Self::Pkcs8
        } else if Certificate::parse(&der).is_some() {
            Self::Certificate
        } else {
            Self::Unknown
        }
    }
}

fn is_message(der: &[u8]) -> Option<()> {
    let mut info = Der::new(der).enter(SEQUENCE)?;
    info.expect(OID)?;
    info.expect(CONTEXT_0).map(drop)
}

fn is_pkcs8(der: &[u8]) -> Option<()> {
    let mut key = Der::new(der).enter(SEQUENCE)?;
    key.expect(INTEGER)?;
    key.enter(SEQUENCE)?.expect(OID)?;
    key.expect(OCTET_STRING).map(drop)
}

fn is_base64(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.len() >= 64 && BASE64.decode(&digits).is_ok()
}

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pem(label) if !label.is_empty() => {
                return write!(f, "a text in PEM format that begins with a {label}");
            }
            Self::Empty => "empty",
            Self::Pem(_) => "a text in PEM format",
            Self::Jks => "a Java keystore (JKS)",
            Self::Jceks => "a Java keystore (JCEKS)",
            Self::Pkcs12 => "a PKCS#12 file (.p12)",
            Self::Certificate => "a certificate (.cer) without a private key",
            Self::SignedMessage => "a signed message such as a .mobileprovision",
            Self::Pkcs8 => "a private key without a certificate",
            Self::Html => "a web page",
            Self::PropertyList => "a property list",
            Self::Json => "JSON",
            Self::Zip => "a zip archive",
            Self::Base64 => "Base64 text; decode it first",
            Self::CutOff => "a file that is cut off or damaged",
            Self::Unknown => "of an unknown format",
        })
    }
}
