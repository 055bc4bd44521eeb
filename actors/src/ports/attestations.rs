//! Attestations of builds.

use async_trait::async_trait;
use contract::{Sha256, Timestamp, trusted_publishers::CiRun};

/// Verifies attestations of builds: statements of a CI, signed with Sigstore, about the files that
/// its runs built.
#[async_trait]
pub trait Attestations: Send + Sync {
    /// Verifies a Sigstore bundle for the file with this hash. The error says why it proves nothing.
    async fn verify(&self, bundle: Vec<u8>, sha256: &Sha256) -> Result<Attested, String>;
}

/// What an attestation proves.
pub struct Attested {
    pub run: CiRun,
    /// The workflow that contains the job that signed, with its repository and the reference.
    pub signer_workflow: String,
    /// `github-hosted` or `self-hosted`.
    pub runner_environment: String,
    /// The page of the run.
    pub run_url: String,
    pub signed_at: Timestamp,
}
