//! Verifies attestations of builds: Sigstore bundles with SLSA provenance over the digest of a file.
//!
//! An attestation says which run of a CI built a file. The CI signs it with a key that lives for
//! minutes. A certificate of Sigstore binds this key to the identity token of the run, so what is
//! known about the run is read from the extensions of this certificate. The predicate of the
//! provenance is not read: the job itself writes it, and could write anything.
//!
//! No network is used. Whom to trust is data: [`Roots`].
//!
//! Sources: "Sigstore Client Spec", "Sigstore Bundle Format", "Fulcio OID information", "in-toto
//! Attestation Framework", "SLSA Provenance".

#![warn(missing_docs)]

mod claims;
mod refusal;
mod roots;
mod statement;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sigstore_verify::types::Bundle;

pub use claims::Attested;
pub use refusal::Refusal;
pub use roots::{Roots, UnusableRoot};

/// The largest bundle that is read, in bytes. Real ones have about 10 KiB.
pub const LARGEST_BUNDLE: usize = 1 << 20;

/// Most log entries, and most timestamps, and most certificates of a bundle. Each costs the check of
/// a signature. Real bundles have one or two.
const MOST_EVIDENCE: usize = 8;

/// The digest of the file that an attestation must be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    /// What attestations of artifacts name.
    Sha256([u8; 32]),
    /// What the provenance of npm packages names.
    Sha512([u8; 64]),
}

impl Digest {
    fn algorithm(&self) -> &'static str {
        match self {
            Self::Sha256(_) => "SHA-256",
            Self::Sha512(_) => "SHA-512",
        }
    }
}

/// The lowercase hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: &[u8] = match self {
            Self::Sha256(bytes) => bytes,
            Self::Sha512(bytes) => bytes,
        };
        f.write_str(&HEXLOWER.encode(bytes))
    }
}

/// Verifies that a run of GitHub Actions attested the file with this digest.
///
/// `bundle` is one Sigstore bundle as JSON, of version 0.1, 0.2 or 0.3, such as the `bundle` in a
/// reply of GitHub's attestation API. What is verified, against the instances in `roots`:
///
/// * the signature of the envelope, with the key of the certificate;
/// * the time of the signature, from the transparency log or from an RFC 3161 timestamp;
/// * the chain of the certificate at this time, and that a certificate log knows it;
/// * that the transparency log contains this signature, of this key, over this payload;
/// * that the payload is SLSA provenance with this digest among its subjects.
///
/// An instance without a transparency log, such as GitHub's own for private repositories, is
/// verified by its timestamp alone. See [`Roots`].
///
/// Success says who built the file and not that this builder may be trusted: compare
/// [`Attested::issuer`] and the ids of the repository with the expected ones.
///
/// Blocks for some milliseconds. Reads the clock of the system, because evidence from the future is
/// refused.
///
/// # Errors
///
/// A [`Refusal`] says what is wrong and what to do. It is final for these bytes and these roots.
pub fn verify(bundle: &[u8], digest: &Digest, roots: &Roots) -> Result<Attested, Refusal> {
    // The parsers of other crates read bytes of strangers here. A panic in one must become a final
    // answer, or a caller that retries would panic forever.
    catch_unwind(AssertUnwindSafe(|| verify_bundle(bundle, digest, roots)))
        .unwrap_or(Err(Refusal::Unreadable))
}

fn verify_bundle(bytes: &[u8], digest: &Digest, roots: &Roots) -> Result<Attested, Refusal> {
    let bundle = parse(bytes)?;
    // One parsed bundle is used from here on and never changed, so the payload whose subjects are
    // compared is the payload whose signature is verified.
    let statement = statement::read(&bundle)?;
    statement::check_subjects(&statement, digest)?;
    let verified = roots.check(&bundle, digest)?;
    claims::read(&verified, statement.predicate_type)
}

fn parse(bytes: &[u8]) -> Result<Bundle, Refusal> {
    /// The library reads a bundle without a media type as one of version 0.1.
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed {
        #[serde(rename = "mediaType")]
        _media_type: IgnoredAny,
    }

    if bytes.len() > LARGEST_BUNDLE {
        return Err(Refusal::TooLarge { size: bytes.len(), limit: LARGEST_BUNDLE });
    }
    let read = || -> Result<Bundle, serde_json::Error> {
        serde_json::from_slice::<Typed>(bytes)?;
        serde_json::from_slice(bytes)
    };
    let bundle = read().map_err(|error| Refusal::not_a_bundle(&error))?;
    let material = &bundle.verification_material;
    let timestamps = material.timestamp_verification_data.rfc3161_timestamps.len();
    let certificates = roots::certificates(&bundle).len();
    if material.tlog_entries.len().max(timestamps).max(certificates) > MOST_EVIDENCE {
        return Err(Refusal::TooMuchEvidence { limit: MOST_EVIDENCE });
    }
    Ok(bundle)
}
