//! The transitions of an artifact.

use super::{
    artifact_refs::ArtifactRefs,
    rules::{Artifacts, Command, Expected, Outcome, Received, SharedBytes, StoredArtifact},
};
use crate::{
    ports::binaries::{AppMetadata, Examined},
    runtime::resource::{Moment, Step},
};
use contract::{
    Fault, Sha256, VersionName, WebUrl,
    artifacts::{ArtifactState, Attestation, ProvenancePath, Trust},
};
use std::time::Duration;
use store::Change;

/// An upload does not expire within this time of the last bytes that came in.
const IDLE: Duration = Duration::from_secs(3600);
/// The segments of an upload. Each has as many bytes as a client sends at a time, and at most 8 MiB.
pub const MOST_SEGMENTS: usize = 2000;
/// The deadline of a verification. If the bytes cannot be read by then, the artifact is rejected.
const VERIFY_WITHIN: Duration = Duration::from_secs(3600);

impl StoredArtifact {
    pub(super) fn on_command(
        mut self,
        at: &Moment<Artifacts>,
        command: Command,
    ) -> Result<Step<Artifacts>, Fault> {
        use ArtifactState as S;
        match (self.artifact.state, command) {
            (S::Deleted, _) => Ok(Step::keep()),
            (_, Command::Remove) => Ok(self.discard(S::Deleted)),
            (S::Pending, Command::Renew(until)) => {
                self.expires_at = self.expires_at.max(until);
                Ok(Step::put(self))
            }
            (S::Pending, Command::Received(received)) => {
                self.count(received)?;
                self.expires_at = self.expires_at.max(at.now + IDLE);
                Ok(Step::put(self))
            }
            (S::Pending, Command::Finalize { sha256, size }) => self.finalize(at, sha256, size),
            (S::Verifying | S::Verified, Command::Finalize { sha256, .. }) => {
                self.finalize_again(&sha256)
            }
            (_, Command::Delete) => Ok(self
                .discard(S::Deleted)
                .also(Change::new().require_absent::<ArtifactRefs>(&at.id))),
            (S::Verified, Command::Attest(attestation)) => self.attest(*attestation),
            (
                state,
                Command::Renew(_)
                | Command::Received(..)
                | Command::Finalize { .. }
                | Command::Attest(_),
            ) => Err(self.closed(state)),
        }
    }

    /// The upload, or the verification, is given up.
    pub(super) fn expire(self, at: &Moment<Artifacts>) -> Step<Artifacts> {
        match self.artifact.state {
            ArtifactState::Verifying => {
                let problem = "its bytes could not be read for an hour; upload the file again";
                self.reject(at, problem.into())
            }
            _ => self.discard(ArtifactState::Expired),
        }
    }

    /// Counts bytes that are durable. Those that are behind them no longer count.
    fn count(&mut self, Received { offset, length, shared }: Received) -> Result<(), Fault> {
        let known = self.staged.offset;
        match shared {
            Some(SharedBytes { after, .. }) if after != known => {
                let reason = format!(
                    "somebody else has sent bytes of this upload: {known} are stored; go on there"
                );
                return Err(Fault::WrongOffset { reason, offset: known });
            }
            Some(SharedBytes { segment, .. }) => {
                self.staged.segments.retain(|segment| segment.end <= offset);
                self.staged.segments.extend(segment);
            }
            None => self.staged.segments.clear(),
        }
        if self.staged.segments.len() > MOST_SEGMENTS && offset > known {
            return Err(Fault::NotNow(format!(
                "this upload has come in {MOST_SEGMENTS} pieces; send the file again in larger ones, from byte 0"
            )));
        }
        self.staged.offset = offset;
        self.length = self.declared.size.or(length);
        Ok(())
    }

    /// Whether an upload came in so many pieces that it takes no more of them, and may begin again.
    pub fn is_in_too_many_pieces(&self) -> bool {
        self.staged.segments.len() >= MOST_SEGMENTS
    }

    pub fn is_complete(&self) -> bool {
        self.length == Some(self.staged.offset)
    }

    fn finalize(
        mut self,
        at: &Moment<Artifacts>,
        sha256: Sha256,
        size: Option<u64>,
    ) -> Result<Step<Artifacts>, Fault> {
        let size = size.or(self.length);
        if !self.is_complete() {
            let of = size.map(|size| format!(" of {size}")).unwrap_or_default();
            let reason = format!(
                "the upload is not complete: {}{of} bytes are stored; send the rest first",
                self.staged.offset
            );
            return Err(Fault::Incomplete { reason, offset: self.staged.offset });
        }
        self.artifact.state = ArtifactState::Verifying;
        self.expires_at = at.now + VERIFY_WITHIN;
        self.expected = Some(Expected { sha256, size });
        Ok(Step::put(self))
    }

    /// A repeated `Finalize` changes nothing. One with another hash is refused.
    fn finalize_again(self, sha256: &Sha256) -> Result<Step<Artifacts>, Fault> {
        match &self.artifact.sha256 {
            Some(known) if known != sha256 => Err(Fault::NotAsDeclared(format!(
                "this artifact has the SHA-256 {known}, not {sha256}"
            ))),
            _ => Ok(Step::keep()),
        }
    }

    /// What the attestation proves replaces what the uploader said. The service itself knows where
    /// the artifact of a build comes from.
    fn attest(mut self, attestation: Attestation) -> Result<Step<Artifacts>, Fault> {
        match &self.artifact.attestation {
            // A run may attest a file twice.
            Some(known) if known.is_same_run(&attestation) => return Ok(Step::keep()),
            Some(_) => {
                return Err(Fault::NotNow(
                    "this artifact is attested already, by another run; attestations are not replaced"
                        .into(),
                ));
            }
            None => {}
        }
        let provenance = &mut self.artifact.provenance;
        let known = provenance.commit.as_ref().filter(|_| !provenance.claimed);
        if let Some(known) = known.filter(|known| **known != attestation.commit) {
            return Err(Fault::NotAsDeclared(format!(
                "the attestation is for the commit {}, and the artifact is of {known}",
                attestation.commit
            )));
        }
        if provenance.claimed {
            let is_of = |run: &WebUrl| {
                let attempt = attestation.run_url.as_ref().map(WebUrl::as_str).unwrap_or_default();
                let rest = attempt.strip_prefix(run.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            // The uploader named another run: neither its build nor its profile is proven.
            if !provenance.run_url.as_ref().is_some_and(is_of) || provenance.build_id.is_none() {
                provenance.build_id = None;
                provenance.profile = None;
                provenance.path = ProvenancePath::ExternalCi;
            }
            provenance.repository = Some(attestation.repository.clone());
            provenance.commit = Some(attestation.commit.clone());
            provenance.git_ref = Some(attestation.git_ref.clone());
            provenance.run_url = attestation.run_url.clone();
            provenance.claimed = false;
        }
        self.artifact.trust = Trust::Attested;
        self.artifact.attestation = Some(attestation);
        Ok(Step::put(self))
    }

    fn closed(&self, state: ArtifactState) -> Fault {
        Fault::NotNow(match state {
            ArtifactState::Verifying => {
                "this artifact is being verified and takes no more bytes; wait for the outcome"
                    .into()
            }
            ArtifactState::Verified => {
                "this artifact is verified and takes no more bytes; open a new upload".into()
            }
            ArtifactState::Expired => "this upload has expired; open a new one".into(),
            _ => {
                let problem = self
                    .artifact
                    .problem
                    .as_deref()
                    .unwrap_or("its bytes are not what was declared");
                format!("this artifact was rejected ({problem}); open a new upload")
            }
        })
    }

    fn reject(mut self, at: &Moment<Artifacts>, problem: String) -> Step<Artifacts> {
        self.artifact.problem = Some(problem);
        self.artifact.finalized_at = Some(at.now);
        self.discard(ArtifactState::Rejected)
    }

    fn discard(mut self, state: ArtifactState) -> Step<Artifacts> {
        (self.artifact.state, self.discarding) = (state, true);
        Step::put(self)
    }

    pub(super) fn on_outcome(
        mut self,
        at: &Moment<Artifacts>,
        outcome: Outcome,
    ) -> Step<Artifacts> {
        match (self.artifact.state, outcome) {
            (ArtifactState::Verifying, Outcome::Accepted(examined)) => {
                let Examined { size, sha256, content } = *examined;
                if let Ok(content) = content {
                    self.artifact.version = content.version.and_then(|v| v.parse().ok());
                    self.artifact.identifier = content.identifier.parse().ok();
                    self.artifact.build_number = content.build_number;
                    self.artifact.signer = content.signer;
                    self.artifact.profile = content.profile;
                }
                self.staged.segments.clear();
                self.artifact.size = Some(size);
                self.artifact.sha256 = Some(sha256);
                self.artifact.state = ArtifactState::Verified;
                self.artifact.finalized_at = Some(at.now);
                Step::put(self)
            }
            (ArtifactState::Verifying, Outcome::Refused(problem)) => self.reject(at, problem),
            (ArtifactState::Deleted, Outcome::Discarded) => Step::remove(),
            (_, Outcome::Discarded) => {
                self.discarding = false;
                self.staged.segments.clear();
                Step::put(self)
            }
            // The outcome of an overtaken effect.
            _ => Step::keep(),
        }
    }

    /// Compares the bytes with the declaration. The error states the expected and the actual value.
    /// A file without a version takes the declared version.
    pub fn judge(&self, expected: &Expected, found: &Examined) -> Result<AppMetadata, String> {
        let differs = |what: &str, expected: &str, got: &str| {
            Err(format!("the {what} is not as declared: expected {expected}, got {got}"))
        };
        if let Some(size) = expected.size.filter(|size| *size != found.size) {
            return differs("size", &format!("{size} bytes"), &found.size.to_string());
        }
        let declared = self.declared.sha256.as_ref();
        for sha256 in [Some(&expected.sha256), declared].into_iter().flatten() {
            if *sha256 != found.sha256 {
                return differs("SHA-256", sha256.as_str(), found.sha256.as_str());
            }
        }
        let mut content = found.content.clone()?;
        content.version = Some(self.version_of(&content)?.to_string());
        if let Some(declared) = &self.declared.build_number {
            let got = content.build_number.as_deref().unwrap_or("none");
            if got != declared {
                return differs("build number", declared, got);
            }
        }
        Ok(content)
    }

    fn version_of(&self, content: &AppMetadata) -> Result<VersionName, String> {
        match (&content.version, &self.artifact.version) {
            (Some(found), Some(declared)) if found != declared.as_str() => Err(format!(
                "the version is not as declared: expected {declared}, got {found}"
            )),
            (Some(found), _) => {
                found.parse().map_err(|why| format!("the version in the file is {found:?}: {why}"))
            }
            (None, Some(declared)) => Ok(declared.clone()),
            (None, None) => Err(
                "the file says no version; upload it again and declare one, with `version` or svc publish --version".into(),
            ),
        }
    }
}
