//! The report on a binary, and the checks on its texts.

use std::fmt;

use crate::refusal::Refusal;

/// The format of a mobile binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An iOS app archive.
    Ipa,
    /// An Android package.
    Apk,
    /// An Android App Bundle.
    Aab,
}

impl Kind {
    /// The kind that a file's extension names, in any case: `App.IPA` is [`Kind::Ipa`].
    pub fn of_file_name(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        [Self::Ipa, Self::Apk, Self::Aab]
            .into_iter()
            .find(|kind| extension.eq_ignore_ascii_case(kind.extension()))
    }

    /// The extension of its files, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Ipa => "ipa",
            Self::Apk => "apk",
            Self::Aab => "aab",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ipa => "an iOS app archive (.ipa)",
            Self::Apk => "an Android package (.apk)",
            Self::Aab => "an Android App Bundle (.aab)",
        })
    }
}

/// The identity and the signer of a binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// `CFBundleIdentifier`, or the package name of an Android app.
    pub identifier: String,
    /// `CFBundleShortVersionString`, which every iOS app has, or `android:versionName`, which an
    /// Android app may leave out.
    pub version: Option<String>,
    /// `CFBundleVersion`, or the decimal long version code (`android:versionCodeMajor` in the
    /// high 32 bits, `android:versionCode` in the low).
    pub build_number: Option<String>,
    /// `CFBundleDisplayName`, else `CFBundleName`, or the label of the Android application in
    /// the default language.
    pub display_name: Option<String>,
    /// `MinimumOSVersion`, or `android:minSdkVersion`.
    pub minimum_os: Option<String>,
    /// `None` if the binary is not signed.
    pub signer: Option<Signer>,
    /// The provisioning profile in an iOS app, as its file has it. It is not judged.
    pub profile: Option<Vec<u8>>,
}

/// The certificate whose key signed a binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// SHA-256 of the DER certificate, 64 lower-case hex digits.
    pub sha256: String,
    /// The certificate's subject, as `C=DE, O=Example, CN=Example App`. Only for people to read:
    /// anybody can write any subject into a certificate.
    pub subject: String,
}

/// Most bytes of any text in a report.
const MAX_TEXT: usize = 255;

/// An identifier: ASCII letters, digits, `.`, `-` and `_`, as both platforms allow.
pub(crate) fn identifier(field: &'static str, value: Option<String>) -> Result<String, Refusal> {
    let value = text(field, value)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if value.chars().all(allowed) { Ok(value) } else { Err(Refusal::BadField { field }) }
}

/// One line of text, which is required.
pub(crate) fn text(field: &'static str, value: Option<String>) -> Result<String, Refusal> {
    let value = value.ok_or(Refusal::MissingField { field })?;
    optional_text(field, Some(value))?.ok_or(Refusal::MissingField { field })
}

/// One line of text, or `None` if it is empty.
pub(crate) fn optional_text(
    field: &'static str,
    value: Option<String>,
) -> Result<Option<String>, Refusal> {
    let Some(value) = value.filter(|value| !value.trim().is_empty()) else { return Ok(None) };
    if value.len() > MAX_TEXT || value.chars().any(char::is_control) {
        return Err(Refusal::BadField { field });
    }
    Ok(Some(value))
}

/// A label for people, on one line, or `None`. A long label is cut, unlike an identifier.
pub(crate) fn label(value: Option<String>) -> Option<String> {
    let line: String =
        value?.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_TEXT).collect();
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_owned())
}
