//! The reasons why there is no report on a binary.

use std::io;

use crate::report::Kind;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The binary is at fault. Final: the same bytes are refused again.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The stored file could not be read. Says nothing about the binary.
    #[error("the uploaded file could not be read: {0}")]
    Io(#[from] io::Error),
}

/// What is wrong with a binary and what to do about it, as one sentence for its sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    #[error("the file is not a zip archive, or it is cut off; upload it again")]
    NotAnArchive,
    #[error(
        "the archive contains {count} entries, more than the limit of {limit}; remove files from the app"
    )]
    TooManyEntries { count: u64, limit: u64 },
    #[error(
        "the archive's list of entries has {size} bytes, more than the limit of {limit}; remove files from the app"
    )]
    DirectoryTooLarge { size: u64, limit: u64 },
    #[error(
        "the archive would inflate to {size} bytes, more than the limit of {limit}; remove files from the app"
    )]
    ArchiveTooLarge { size: u64, limit: u64 },
    #[error(
        "the entry {name} would inflate to {size} bytes, more than the limit of {limit}; make it smaller"
    )]
    EntryTooLarge { name: String, size: u64, limit: u64 },
    #[error(
        "the entry {name} inflates to more than {limit} times its size, as a zip bomb does; build the app again"
    )]
    RatioTooHigh { name: String, limit: u64 },
    #[error("the entry name {name} is not a plain relative path; build the app again")]
    UnsafeName { name: String },
    #[error("the entry {name} is in the archive twice; build the app again")]
    DuplicateName { name: String },
    #[error("the entry {name} shares bytes with another entry; build the app again")]
    OverlappingEntries { name: String },
    #[error("the entry {name} is encrypted; build the app without a zip password")]
    Encrypted { name: String },
    #[error("the entry {name} is compressed in a way that phones do not read; use deflate")]
    UnknownCompression { name: String },
    #[error(
        "the archive would inflate to {size} bytes, more than {limit} times its own size, as a zip bomb does; build the app again"
    )]
    ArchiveTooDense { size: u64, limit: u64 },
    #[error(
        "the bytes at {offset} belong to no entry of the archive, so that programs could read different files in it; build the app again"
    )]
    StrayBytes { offset: u64 },
    #[error("the entry {name} is damaged; upload the file again")]
    DamagedEntry { name: String },

    #[error("this is {actual}, but it was uploaded as .{}; upload it as .{}", .declared.extension(), .actual.extension())]
    Renamed { declared: Kind, actual: Kind },
    #[error("this is a zip archive, but it is not {kind}; upload the file that the build made")]
    NotAnApp { kind: Kind },
    #[error("the archive contains more than one app; upload one app per file")]
    SeveralApps,
    #[error("this is a build for the iOS simulator; upload a build for devices")]
    SimulatorBuild,
    #[error("the {part} cannot be read; build the app again")]
    Unreadable { part: &'static str },
    #[error("the app does not state its {field}; set it and build the app again")]
    MissingField { field: &'static str },
    #[error("the app's {field} is not a valid value; correct it and build the app again")]
    BadField { field: &'static str },

    #[error(
        "the {scheme} signature does not cover these bytes: the file was changed after signing; sign it again"
    )]
    ChangedAfterSigning { scheme: &'static str },
    #[error(
        "the iOS code signature does not cover the file {name} as it is: it was changed, added or removed after signing; sign the app again"
    )]
    UnsignedFile { name: String },
    #[error("the {scheme} signature is not valid: {reason}; sign the app again")]
    InvalidSignature { scheme: &'static str, reason: &'static str },
    #[error(
        "the {scheme} signature uses an algorithm that is not supported; sign with SHA-256 and RSA or ECDSA"
    )]
    UnsupportedSignature { scheme: &'static str },
    #[error(
        "the file has a signature of a scheme newer than this service, which newer phones may go by; update the service, or sign with the schemes up to APK v3.2"
    )]
    UnknownScheme,
    #[error("the {scheme} signature is in the file twice; sign the app again")]
    DuplicateSignature { scheme: &'static str },
    #[error("the {scheme} signature was removed from the file after signing; sign the app again")]
    StrippedSignature { scheme: &'static str },
}

impl Refusal {
    /// An entry name for a sentence, cut and escaped: hostile names are long and unprintable.
    pub(crate) fn quote(name: &[u8]) -> String {
        let shown: String = String::from_utf8_lossy(name).chars().take(100).collect();
        format!("{shown:?}")
    }
}
