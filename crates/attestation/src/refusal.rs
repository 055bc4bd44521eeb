//! The reasons why an attestation is refused.

use std::fmt::Display;

use sigstore_verify::Error;

/// The longest text that is quoted from a bundle, in characters. Bundles come from strangers.
const LONGEST_QUOTE: usize = 200;

/// What is wrong with an attestation and what to do about it, as one sentence for its sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The bundle is larger than [`crate::LARGEST_BUNDLE`].
    #[error(
        "the bundle has {size} bytes, more than the limit of {limit}; attest fewer files at once"
    )]
    TooLarge {
        /// The size of the bundle, in bytes.
        size: usize,
        /// The largest size that is read, in bytes.
        limit: usize,
    },
    /// The bundle has more log entries, timestamps or certificates than any real one.
    #[error(
        "the bundle has more than {limit} log entries, timestamps or certificates; upload it as the \
         build produced it"
    )]
    TooMuchEvidence {
        /// How many of each are read.
        limit: usize,
    },
    /// The bytes are no Sigstore bundle, or one of an unknown version.
    #[error(
        "this is not a Sigstore bundle of version 0.1 to 0.3 ({problem}); upload one bundle as JSON, as \
         actions/attest-build-provenance writes it"
    )]
    NotABundle {
        /// Where the reader stopped, and why.
        problem: String,
    },
    /// The bundle can be read, and its parts contradict each other or are of an unknown kind.
    #[error("the bundle cannot be verified ({problem}); upload it as the build produced it")]
    Bundle {
        /// What the verifier found.
        problem: String,
    },
    /// The bundle signs the file itself. There is no statement about the build in it.
    #[error(
        "the bundle signs a file without saying how it was built; make the attestation with \
         actions/attest-build-provenance"
    )]
    NoStatement,
    /// The payload is not an in-toto statement of a known version.
    #[error(
        "the payload of the attestation is not an in-toto statement ({problem}); make the attestation \
         with actions/attest-build-provenance"
    )]
    Statement {
        /// What is in its place.
        problem: String,
    },
    /// The statement is not SLSA provenance of a known version.
    #[error(
        "the attestation says something else than how the file was built: its type is {predicate_type}; \
         upload the one of the type https://slsa.dev/provenance/v1"
    )]
    NotProvenance {
        /// A URI, which the bundle chooses.
        predicate_type: String,
    },
    /// The statement does not name the digest.
    #[error(
        "the attestation is for another file: its subjects have {subjects}, and this file has {digest}; \
         upload the attestation of this file, or attest it after its last change"
    )]
    OtherFile {
        /// The digests in the statement, such as `the SHA-256 0a1b…`, or `no SHA-256`.
        subjects: String,
        /// The digest of the file, hexadecimal.
        digest: String,
    },
    /// No root in use knows the authority that issued the certificate.
    #[error(
        "the certificate of the attestation was issued by {issuer}, whom no trusted root names; add the \
         trusted_root.json of this instance of Sigstore"
    )]
    UnknownInstance {
        /// The name in the certificate of who issued it.
        issuer: String,
    },
    /// The signature does not fit the payload and the certificate.
    #[error(
        "the signature of the attestation is wrong ({problem}): it was altered; upload the bundle as the \
         build produced it"
    )]
    Signature {
        /// What the verifier found.
        problem: String,
    },
    /// The certificate cannot be read, does not chain to a root, was not valid at the time of the
    /// signature, or is not in the log of certificates.
    #[error(
        "the certificate of the attestation is not trusted ({problem}); upload the bundle as the build \
         produced it, or update the trusted roots if it is unaltered"
    )]
    Certificate {
        /// What the verifier found.
        problem: String,
    },
    /// The transparency log does not prove the attestation.
    #[error(
        "the transparency log does not prove the attestation ({problem}); upload the bundle as the build \
         produced it, or update the trusted roots if it is unaltered"
    )]
    TransparencyLog {
        /// What the verifier found.
        problem: String,
    },
    /// Nothing proves when the attestation was signed.
    #[error(
        "the time of the signature is not proven ({problem}); upload the bundle as the build produced \
         it, or update the trusted roots if it is unaltered"
    )]
    Time {
        /// What the verifier found.
        problem: String,
    },
    /// The signer is a person or a machine, and not a run of a CI.
    #[error(
        "the attestation was signed by {signer} and not by a run of GitHub Actions; attest in the \
         workflow that builds the file"
    )]
    NotARun {
        /// The identity in the certificate.
        signer: String,
    },
    /// The certificate lacks a claim that every run of GitHub Actions has since 2023.
    #[error(
        "the certificate of the attestation does not say the {claim} (extension \
         1.3.6.1.4.1.57264.1.{extension}); attest in a workflow of GitHub Actions"
    )]
    MissingClaim {
        /// What is missing, in words.
        claim: &'static str,
        /// The last number of its object identifier.
        extension: u8,
    },
    /// The certificate is for a run of another CI, whose claims have another form.
    #[error(
        "the attestation is for a run of another CI than GitHub Actions: the {claim} is {value}; attest \
         in a workflow of GitHub Actions"
    )]
    OtherCi {
        /// The claim with an unknown form, in words.
        claim: &'static str,
        /// What the certificate says there, quoted and cut.
        value: String,
    },
    /// A parser of the bundle panicked. This is a bug, and the bundle is not a usual one.
    #[error("the bundle cannot be read; upload it as the build produced it")]
    Unreadable,
}

impl Refusal {
    pub(crate) fn not_a_bundle(problem: &dyn Display) -> Self {
        Self::NotABundle { problem: quote(problem) }
    }

    pub(crate) fn certificate(problem: &dyn Display) -> Self {
        Self::Certificate { problem: quote(problem) }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let problem = quote(&error);
        match error {
            Error::SignatureInvalid(_) => Self::Signature { problem },
            Error::Certificate(_) => Self::Certificate { problem },
            // The subjects were compared before, so this is the digest in a log entry.
            Error::TransparencyLog(_) | Error::ArtifactMismatch(_) => {
                Self::TransparencyLog { problem }
            }
            Error::Timestamp(_) => Self::Time { problem },
            _ => Self::Bundle { problem },
        }
    }
}

/// A text of strangers as part of a message: not long, and on one line.
pub(crate) fn quote(text: &dyn Display) -> String {
    let text = text.to_string();
    let mut shown: String = text
        .chars()
        .take(LONGEST_QUOTE)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_short_and_on_one_line() {
        assert_eq!(quote(&"plain text"), "plain text");
        assert_eq!(quote(&"two\nlines\u{1b}[31m"), "two\u{fffd}lines\u{fffd}[31m");
        let long = quote(&"ä".repeat(100_000));
        assert_eq!(long, format!("{}…", "ä".repeat(LONGEST_QUOTE)));
    }
}
