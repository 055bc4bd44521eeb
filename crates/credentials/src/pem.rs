//! Text armour of keys and certificates. Source: RFC 7468.

use data_encoding::BASE64;
use zeroize::Zeroizing;

/// The first block of a text.
pub(crate) struct Pem {
    /// What it says it is, such as `PRIVATE KEY`.
    pub(crate) label: String,
    pub(crate) der: Zeroizing<Vec<u8>>,
}

impl Pem {
    /// `None` if there is no whole block.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let label = label(text)?;
        let (_, after) = text.split_once(&format!("-----BEGIN {label}-----"))?;
        let (body, _) = after.split_once(&format!("-----END {label}-----"))?;
        body.starts_with(['\r', '\n']).then_some(())?;
        let digits: Zeroizing<Vec<u8>> =
            Zeroizing::new(body.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect());
        let der = Zeroizing::new(BASE64.decode(&digits).ok()?);
        Some(Self { label: label.to_owned(), der })
    }
}

/// The label of the first block, even if the block is not whole.
pub(crate) fn label(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("-----BEGIN ")?;
    let (label, _) = after.split_once("-----")?;
    let allowed = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == ' ';
    (label.len() <= 40 && label.chars().all(allowed)).then_some(label)
}
