//! The reasons why an upload is refused.

use std::fmt;

use contract::Timestamp;

use crate::facts::{AppleCertificate, ProfileKind};
use crate::looks::Looks;

/// The longest text that is quoted from a file, in characters.
const LONGEST_QUOTE: usize = 200;
/// Most aliases that a sentence lists.
const MOST_ALIASES: usize = 20;

/// A file of an upload, as sentences call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum File {
    /// The certificate and the private key for iOS.
    P12,
    /// The provisioning profile.
    Profile,
    /// The key of App Store Connect.
    P8,
    /// The keystore for Android.
    Keystore,
    /// The key of a Google service account.
    ServiceAccount,
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P12 => ".p12 file",
            Self::Profile => "provisioning profile",
            Self::P8 => ".p8 file",
            Self::Keystore => "keystore",
            Self::ServiceAccount => "service account key",
        })
    }
}

/// What is wrong with an upload and what to do about it, as one sentence for its sender.
///
/// No sentence contains a password, or a byte of a private key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each sentence says what its fields are")]
pub enum Refusal {
    #[error(
        "the {file} has {size} bytes, more than the limit of {limit}; upload the file with the key alone"
    )]
    TooLarge { file: File, size: usize, limit: usize },
    #[error("the {file} cannot be read; make it again with the tool that wrote it")]
    Unreadable { file: File },

    #[error("the {file} is not a PKCS#12 file: it is {looks}; {}", what_to_export(*.file))]
    NotPkcs12 { file: File, looks: Looks },
    #[error(
        "the {file} is a Java keystore ({}); convert it with `keytool -importkeystore -srckeystore old.jks \
         -srcstoretype {} -destkeystore new.p12 -deststoretype pkcs12` and upload new.p12",
        .store_type.to_uppercase(), .store_type
    )]
    JavaKeystore { file: File, store_type: &'static str },
    #[error("the {file} is damaged; upload it again, or export it again")]
    Damaged { file: File },
    #[error(
        "the {file} is encrypted or protected with an algorithm that is not supported ({oid}); export it \
         again with AES-256 and SHA-256"
    )]
    UnsupportedEncryption { file: File, oid: String },
    #[error(
        "the {file} asks for more work than {limit} rounds of hashing; export it again with fewer \
         iterations, or with fewer entries"
    )]
    TooMuchWork { file: File, limit: u64 },
    #[error(
        "the password does not open the {file}; give the password that was set when it was made"
    )]
    WrongPassword { file: File },
    #[error(
        "the key password does not open the key {alias}; give the password of this key, or none if it is \
         that of the keystore"
    )]
    WrongKeyPassword { alias: String },
    #[error("the key {alias} has another password than the keystore; give it as the key password")]
    KeyPasswordNeeded { alias: String },
    #[error(
        "the private key in the keystore is not encrypted, and Java's tools pass over such keys; export it \
         again with a password"
    )]
    KeyNotEncrypted,
    #[error("the {file} contains no private key; {}", what_to_export(*.file))]
    NoPrivateKey { file: File },
    #[error("the {file} contains no certificate; {}", what_to_export(*.file))]
    NoCertificate { file: File },
    #[error("the {file} contains several private keys ({}); {}", list(.aliases), match .file {
        File::Keystore => "name the alias of the one that signs the app",
        _ => "export the one that signs the app, alone",
    })]
    SeveralKeys { file: File, aliases: Vec<String> },
    #[error("the keystore has no key with the alias {alias}; it has {}", list(.aliases))]
    UnknownAlias { alias: String, aliases: Vec<String> },
    #[error(
        "the private key in the {file} does not belong to its certificate; export both together again"
    )]
    KeyMismatch { file: File },
    #[error(
        "the {file} has a key of an algorithm that is not supported; use RSA of 2048 bits or more, or EC of \
         the curve P-256"
    )]
    UnsupportedKey { file: File },
    #[error("the private key in the {file} is damaged; export it again")]
    DamagedKey { file: File },
    #[error("the certificate in the {file} cannot be read; export it again")]
    DamagedCertificate { file: File },
    #[error(
        "the certificate {subject} expired on {}; make a new one and upload it with its key",
        .not_after.day()
    )]
    CertificateExpired { subject: String, not_after: Timestamp },
    #[error(
        "the certificate {subject} is not valid before {}; upload it then, or make another one",
        .not_before.day()
    )]
    CertificateNotYetValid { subject: String, not_before: Timestamp },
    #[error(
        "the certificate is a debug certificate of Android ({subject}), which no store accepts; upload the \
         keystore with the key for releases"
    )]
    DebugCertificate { subject: String },
    #[error(
        "the certificate {subject} is {what}, which cannot sign apps for iOS; export an Apple Distribution or \
         Apple Development certificate"
    )]
    NotForIosApps { subject: String, what: &'static str },
    #[error(
        "the certificate {subject} names no team (OU); export the certificate that Apple issued"
    )]
    NoTeam { subject: String },

    #[error(
        "this is not a provisioning profile: it is {looks}; download the .mobileprovision file from Apple's \
         developer site"
    )]
    NotAProfile { looks: Looks },
    #[error(
        "the signature of the provisioning profile does not cover its content; download it again from Apple's \
         developer site"
    )]
    ProfileAltered,
    #[error(
        "the provisioning profile is signed with an algorithm that is not supported; download it again from \
         Apple's developer site"
    )]
    UnsupportedSignature,
    #[error(
        "the provisioning profile does not state its {field}; download it again from Apple's developer site"
    )]
    IncompleteProfile { field: &'static str },
    #[error(
        "the provisioning profile {name} expired on {}; renew it on Apple's developer site and upload it again",
        .expired_at.day()
    )]
    ProfileExpired { name: String, expired_at: Timestamp },
    #[error("the provisioning profile {name} is for {platforms}; upload one for iOS")]
    OtherPlatform { name: String, platforms: String },
    #[error(
        "the certificate is of the team {certificate} and the provisioning profile is of the team {profile}; \
         upload both of one team"
    )]
    TeamMismatch { certificate: String, profile: String },
    #[error(
        "the provisioning profile {name} is for {} and the certificate is an {} certificate; upload an {} \
         certificate, or another profile",
        .profile.noun(), certificate_noun(*.certificate), certificate_noun(other_certificate(*.certificate))
    )]
    KindMismatch { name: String, profile: ProfileKind, certificate: AppleCertificate },
    #[error(
        "the provisioning profile {name} does not contain the certificate {subject}; add the certificate to \
         the profile on Apple's developer site, and upload the new profile"
    )]
    CertificateNotInProfile { name: String, subject: String },

    #[error(
        "this is not a key of App Store Connect: it is {looks}; upload the AuthKey_….p8 file as it was \
         downloaded"
    )]
    NotAP8 { looks: Looks },
    #[error(
        "the .p8 file does not contain an EC key of the curve P-256, as every key of App Store Connect is; \
         upload the AuthKey_….p8 file as it was downloaded"
    )]
    NotP256,
    #[error(
        "the key id is missing; give the ten characters that App Store Connect shows beside the key"
    )]
    NoKeyId,
    #[error(
        "the key id is not ten characters out of A–Z and 0–9; give the one that App Store Connect shows \
         beside the key"
    )]
    BadKeyId,
    #[error(
        "the key id is {given} and the file is named for the key {named}; give the id of this key, or the \
         file of the other"
    )]
    OtherKeyId { given: String, named: String },
    #[error(
        "the issuer id is not a UUID; give the one that App Store Connect shows above the keys of the team, \
         and none for the key of one person"
    )]
    BadIssuerId,

    #[error(
        "this is not a service account key: it is {looks}; make a JSON key for the service account in the \
         Google Cloud console"
    )]
    NotAServiceAccount { looks: Looks },
    #[error(
        "this JSON is {what}, and not a service account key; make a JSON key for the service account in the \
         Google Cloud console"
    )]
    OtherGoogleFile { what: &'static str },
    #[error(
        "the service account key has no {field}, or not one line of text there; upload the JSON file as it was downloaded"
    )]
    MissingField { field: &'static str },
    #[error(
        "the private_key of the service account key is not an RSA key in PKCS#8 and PEM; upload the JSON file \
         as it was downloaded"
    )]
    BadServiceAccountKey,
    #[error(
        "the client_email of the service account key is not the address of a service account \
         (….gserviceaccount.com); upload the JSON file as it was downloaded"
    )]
    BadEmail,
}

impl Refusal {
    /// A name for the kind of refusal that never changes, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "tooLarge",
            Self::Unreadable { .. } => "unreadable",
            Self::NotPkcs12 { .. } => "notPkcs12",
            Self::JavaKeystore { .. } => "javaKeystore",
            Self::Damaged { .. } => "damaged",
            Self::UnsupportedEncryption { .. } => "unsupportedEncryption",
            Self::TooMuchWork { .. } => "tooMuchWork",
            Self::WrongPassword { .. } => "wrongPassword",
            Self::WrongKeyPassword { .. } => "wrongKeyPassword",
            Self::KeyPasswordNeeded { .. } => "keyPasswordNeeded",
            Self::KeyNotEncrypted => "keyNotEncrypted",
            Self::NoPrivateKey { .. } => "noPrivateKey",
            Self::NoCertificate { .. } => "noCertificate",
            Self::SeveralKeys { .. } => "severalKeys",
            Self::UnknownAlias { .. } => "unknownAlias",
            Self::KeyMismatch { .. } => "keyMismatch",
            Self::UnsupportedKey { .. } => "unsupportedKey",
            Self::DamagedKey { .. } => "damagedKey",
            Self::DamagedCertificate { .. } => "damagedCertificate",
            Self::CertificateExpired { .. } => "certificateExpired",
            Self::CertificateNotYetValid { .. } => "certificateNotYetValid",
            Self::DebugCertificate { .. } => "debugCertificate",
            Self::NotForIosApps { .. } => "notForIosApps",
            Self::NoTeam { .. } => "noTeam",
            Self::NotAProfile { .. } => "notAProfile",
            Self::ProfileAltered => "profileAltered",
            Self::UnsupportedSignature => "unsupportedSignature",
            Self::IncompleteProfile { .. } => "incompleteProfile",
            Self::ProfileExpired { .. } => "profileExpired",
            Self::OtherPlatform { .. } => "otherPlatform",
            Self::TeamMismatch { .. } => "teamMismatch",
            Self::KindMismatch { .. } => "kindMismatch",
            Self::CertificateNotInProfile { .. } => "certificateNotInProfile",
            Self::NotAP8 { .. } => "notAP8",
            Self::NotP256 => "notP256",
            Self::NoKeyId => "noKeyId",
            Self::BadKeyId => "badKeyId",
            Self::OtherKeyId { .. } => "otherKeyId",
            Self::BadIssuerId => "badIssuerId",
            Self::NotAServiceAccount { .. } => "notAServiceAccount",
            Self::OtherGoogleFile { .. } => "otherGoogleFile",
            Self::MissingField { .. } => "missingField",
            Self::BadServiceAccountKey => "badServiceAccountKey",
            Self::BadEmail => "badEmail",
        }
    }
}

fn what_to_export(file: File) -> &'static str {
    match file {
        File::P12 => {
            "in Keychain Access, export the certificate together with its private key as .p12"
        }
        _ => {
            "upload the keystore with which the app is signed, such as keytool or Android Studio made it"
        }
    }
}

fn certificate_noun(kind: AppleCertificate) -> &'static str {
    match kind {
        AppleCertificate::Development => "Apple Development",
        AppleCertificate::Distribution => "Apple Distribution",
    }
}

fn other_certificate(kind: AppleCertificate) -> AppleCertificate {
    match kind {
        AppleCertificate::Development => AppleCertificate::Distribution,
        AppleCertificate::Distribution => AppleCertificate::Development,
    }
}

fn list(aliases: &[String]) -> String {
    let mut shown: Vec<String> =
        aliases.iter().take(MOST_ALIASES).map(|alias| quote(alias)).collect();
    if aliases.len() > shown.len() {
        shown.push(format!("and {} more", aliases.len() - shown.len()));
    }
    shown.join(", ")
}

/// A text of a file as part of a sentence: not long, and on one line.
pub(crate) fn quote(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(LONGEST_QUOTE)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if shown.len() < text.len() && text.chars().nth(LONGEST_QUOTE).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_short_and_on_one_line() {
        assert_eq!(quote("CN=Example"), "CN=Example");
        assert_eq!(quote("two\nlines\u{1b}[31m"), "two\u{fffd}lines\u{fffd}[31m");
        assert_eq!(quote(&"ä".repeat(100_000)), format!("{}…", "ä".repeat(LONGEST_QUOTE)));
    }

    #[test]
    fn a_sentence_lists_some_aliases() {
        let aliases: Vec<String> = (0..25).map(|number| format!("key{number}")).collect();
        let listed = list(&aliases);
        assert!(listed.starts_with("key0, key1, "), "{listed}");
        assert!(listed.ends_with("key19, and 5 more"), "{listed}");
    }
}
