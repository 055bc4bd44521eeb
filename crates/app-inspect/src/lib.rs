//! Reads the identifier, version and signer of a mobile binary.
//!
//! The input comes from strangers, so every module keeps three rules:
//!
//! * **No panic.** Modules read outside bytes through `cursor::Cursor`, which returns `None`
//!   instead of indexing.
//! * **Bounded memory.** A file is never loaded whole, and each part that is loaded has a limit in
//!   [`Limits`]. Manifests are walked in place and not decoded into trees, because a few bytes of
//!   input can ask a decoder for a gigabyte of nodes.
//! * **One reading.** An archive that two programs could read differently is refused: this crate
//!   would check the signature of one reading, and the phone would install the other.
//!
//! | format | identifier and version | signer |
//! |---|---|---|
//! | apk | `AndroidManifest.xml` (binary XML) | APK Signature Scheme v3.2, v3.1, v3, v2, else the JAR signature |
//! | aab | `base/manifest/AndroidManifest.xml` (protobuf) | JAR signature |
//! | ipa | `Payload/*.app/Info.plist` | code signature of the main executable |
//!
//! A signature is checked against the bytes and against the certificate that comes with it.
//! The caller decides by its fingerprint whether that certificate is the right one.

mod aab;
mod apk;
mod archive;
pub mod certificate;
pub mod cms;
mod cursor;
pub mod der;
mod ipa;
mod jar_signature;
mod refusal;
mod report;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

pub use refusal::{Failure, Refusal};
pub use report::{Kind, Report, Signer};

use archive::Archive;

/// The sizes beyond which an archive is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Most entries in the archive. Memory for the index is about 200 bytes an entry.
    pub max_entries: u64,
    /// Most bytes of the archive's central directory.
    pub max_directory_bytes: u64,
    /// Most bytes that all entries together may declare to inflate to.
    pub max_total_bytes: u64,
    /// Most inflated bytes per byte of the whole archive.
    pub max_total_ratio: u64,
    /// Inflated bytes of the whole archive that are accepted at any ratio: a small app may be
    /// dense, and costs little.
    pub total_free_of_ratio: u64,
    /// Most bytes a manifest, property list or certificate entry may inflate to.
    pub max_manifest_bytes: u64,
    /// Most bytes a resource table, a list of signed files or a code signature may have.
    pub max_table_bytes: u64,
    /// Most inflated bytes per stored byte of an entry that is read into memory. Entries that
    /// are only digested may be denser: an app may carry a file of zeros.
    pub max_ratio: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_entries: 65_000,
            max_directory_bytes: 16 << 20,
            max_total_bytes: 16 << 30,
            max_total_ratio: 50,
            total_free_of_ratio: 256 << 20,
            max_manifest_bytes: 4 << 20,
            max_table_bytes: 64 << 20,
            max_ratio: 500,
        }
    }
}

/// Reads the binary at `file`, which was uploaded as `kind`.
///
/// Blocks: reads the whole file once or a few times (digests), so call it off the async threads.
///
/// # Errors
///
/// [`Failure::Refused`] if the file is not a sound binary of this kind; asking again gives the
/// same answer. [`Failure::Io`] if the file could not be read; asking again may help.
pub fn inspect(file: &Path, kind: Kind, limits: &Limits) -> Result<Report, Failure> {
    // The plist, X.509 and inflate parsers come from other crates and may panic on hostile bytes.
    // Such a panic must become a final answer, or a caller that retries would panic forever.
    catch_unwind(AssertUnwindSafe(|| inspect_archive(file, kind, limits)))
        .unwrap_or(Err(Failure::Refused(Refusal::Unreadable { part: "file" })))
}

fn inspect_archive(file: &Path, kind: Kind, limits: &Limits) -> Result<Report, Failure> {
    let archive = Archive::open(file, limits)?;
    if !holds(&archive, kind) {
        let actual =
            [Kind::Aab, Kind::Ipa, Kind::Apk].into_iter().find(|other| holds(&archive, *other));
        return Err(match actual {
            Some(actual) => Refusal::Renamed { declared: kind, actual },
            None => Refusal::NotAnApp { kind },
        }
        .into());
    }
    match kind {
        Kind::Ipa => ipa::inspect(&archive),
        Kind::Apk => apk::inspect(&archive),
        Kind::Aab => aab::inspect(&archive),
    }
}

/// Whether the archive has the entry that makes it a binary of this kind.
fn holds(archive: &Archive, kind: Kind) -> bool {
    match kind {
        Kind::Ipa => ipa::info_plists(archive).next().is_some(),
        Kind::Apk => archive.find(apk::MANIFEST).is_some(),
        Kind::Aab => archive.find(aab::MANIFEST).is_some(),
    }
}
