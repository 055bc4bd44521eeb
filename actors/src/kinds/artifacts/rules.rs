//! The rules of an artifact: `pending → verifying → verified | rejected`, `expired`, `deleted`.

use super::artifact_refs::ArtifactRefs;
use crate::{
    ports::{Content, Examined},
    runtime::resource::{Child, Intent, Kept, Moment, Resource, Retry, Step, Unique},
    world::World,
};
use contract::{
    AppId, ArtifactId, Fault, Sha256, Timestamp, VersionName,
    artifacts::{Artifact, ArtifactKind, ArtifactState},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use store::{Change, Entries};

/// The artifacts.
#[derive(Debug, Clone, Copy)]
pub struct Artifacts;

/// What is kept of an artifact: what is shown, and its upload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Upload {
    /// What is shown.
    pub artifact: Artifact,
    /// Bytes that are stored durably.
    pub offset: u64,
    /// How many bytes there are to be, once that is known.
    pub length: Option<u64>,
    /// What was declared when the upload was opened. An upload with both can be resumed.
    pub declared: Declared,
    /// Until when bytes are waited for, or the end of their verification.
    pub expires_at: Timestamp,
    /// Whether no second upload of the declared bytes is opened beside this one. Those of earlier
    /// versions were opened without that.
    #[serde(default)]
    pub claims_bytes: bool,
}

/// What was declared when an upload was opened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Declared {
    /// Bytes.
    pub size: Option<u64>,
    /// Of all bytes.
    pub sha256: Option<Sha256>,
    /// What the file must say.
    pub build_number: Option<String>,
    /// What the file must say.
    #[serde(default)]
    pub version: Option<VersionName>,
}

/// An upload whose bytes come in is waited for this long after the last of them.
const IDLE: Duration = Duration::from_secs(3600);
/// Bytes that cannot be verified within this time, because what keeps them does not answer, are
/// given up.
const VERIFY_WITHIN: Duration = Duration::from_secs(3600);

/// What can be asked of an artifact.
#[derive(Debug, Clone)]
pub enum Command {
    /// Wait for bytes until this moment.
    Renew(Timestamp),
    /// So many bytes are stored durably, of so many where that is known.
    Received(u64, Option<u64>),
    /// Have the bytes verified.
    Finalize {
        /// What their hash must be.
        sha256: Sha256,
        /// How many they must be.
        size: Option<u64>,
    },
    /// Give up waiting, where that is due.
    Expire,
    /// Remove it, where no release holds it.
    Delete,
    /// Remove it with its app.
    Remove,
}

/// What an artifact does outside of its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// Read the bytes, hold them to what was declared and to the app, and keep them.
    Verify(Expected),
    /// Nothing. Earlier versions made releases with it, and it may be pending in what they wrote.
    Release,
    /// Remove the bytes; `forget`: and then the record.
    Discard {
        /// Whether the record goes too.
        forget: bool,
    },
}

/// What the bytes must be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Of all bytes.
    pub sha256: Sha256,
    /// Bytes.
    pub size: Option<u64>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The bytes are what they must be, and kept.
    Accepted(Box<Examined>),
    /// They are not, for this reason.
    Refused(String),
    /// The bytes are gone.
    Discarded,
    /// Nothing was done.
    Nothing,
}

impl Resource for Artifacts {
    /// Four gibibytes are read twice: at 100 MiB a second, a minute and a half.
    const TIME_LIMIT: Duration = Duration::from_secs(600);
    type New = Upload;
    type State = Upload;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(_: &Moment<Self>, upload: Upload) -> Result<Step<Self>, Fault> {
        Ok(Step::put(upload))
    }

    fn on_command(
        upload: Upload,
        at: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        upload.on_command(at, command)
    }

    fn on_outcome(upload: Upload, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        upload.on_outcome(at, outcome)
    }

    fn is_deleted(upload: &Upload) -> bool {
        upload.artifact.state == ArtifactState::Deleted
    }

    fn index(upload: &Upload) -> Entries<Self> {
        let artifact = &upload.artifact;
        let app = artifact.app_id;
        match (artifact.state, &upload.declared, &artifact.sha256) {
            (ArtifactState::Pending, Declared { size, sha256, .. }, _) => {
                let known = size.zip(sha256.clone());
                Entries::default()
                    .and(ArtifactIndex::Pending { app })
                    .and_all(known.map(|(size, sha256)| ArtifactIndex::Open { app, sha256, size }))
            }
            (ArtifactState::Verified, _, Some(sha256)) => {
                Entries::default().and(ArtifactIndex::Held { app, sha256: sha256.clone() })
            }
            _ => Entries::default(),
        }
    }

    /// An upload that came to nothing, and a deleted one, make room for another. Of two uploads of
    /// the same bytes at the same moment, the second is decided anew and finds the first.
    fn claims(upload: &Upload) -> Vec<Unique<Self>> {
        use ArtifactState as S;
        let Artifact { app_id, kind, state, .. } = upload.artifact;
        let claim = ArtifactClaim::of(app_id, kind, &upload.declared);
        let stands = matches!(state, S::Pending | S::Verifying | S::Verified);
        let claim = claim.filter(|_| stands && upload.claims_bytes);
        claim.map(|claim| Unique::new(claim, || Fault::Stale)).into_iter().collect()
    }

    fn deadline(upload: &Upload) -> Option<(Timestamp, Command)> {
        let open =
            matches!(upload.artifact.state, ArtifactState::Pending | ArtifactState::Verifying);
        open.then_some((upload.expires_at, Command::Expire))
    }

    fn perform(
        effect: Effect,
        id: ArtifactId,
        kept: Arc<Kept<Self>>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, kept, world))
    }
}

impl Child for Artifacts {
    fn parent(upload: &Upload) -> Option<AppId> {
        Some(upload.artifact.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

store::entries! {
    /// What artifacts are found by.
    pub enum ArtifactIndex of Artifacts {
        /// An upload that waits for bytes.
        Pending { app: AppId } = "pending",
        /// An upload that can be resumed.
        Open { app: AppId, sha256: Sha256, size: u64 } = "open",
        /// Bytes that an app holds.
        Held { app: AppId, sha256: Sha256 } = "held",
    }
}

store::claims! {
    /// What no two artifacts have in common.
    pub enum ArtifactClaim of Artifacts {
        /// The bytes that were declared for an upload; `version` is empty where none was.
        Bytes { app: AppId, kind: &'static str, version: String, sha256: Sha256, size: u64 } = "bytes",
    }
}

impl ArtifactClaim {
    /// The claim of an upload, where its bytes were declared.
    pub fn of(app: AppId, kind: ArtifactKind, declared: &Declared) -> Option<Self> {
        let version = declared.version.as_ref().map(ToString::to_string).unwrap_or_default();
        let (size, sha256) = declared.size.zip(declared.sha256.clone())?;
        Some(ArtifactClaim::Bytes { app, kind: kind.extension(), version, sha256, size })
    }
}

impl Upload {
    fn on_command(
        mut self,
        at: &Moment<Artifacts>,
        command: Command,
    ) -> Result<Step<Artifacts>, Fault> {
        use ArtifactState as S;
        match (self.artifact.state, command) {
            (S::Deleted, _) => Ok(Step::keep()),
            (_, Command::Remove) => Ok(self.discard(S::Deleted, true)),
            (S::Pending, Command::Renew(until)) => {
                self.expires_at = self.expires_at.max(until);
                Ok(Step::put(self))
            }
            (S::Pending, Command::Received(offset, length)) => {
                self.offset = offset;
                self.length = self.declared.size.or(length);
                self.expires_at = self.expires_at.max(at.now + IDLE);
                Ok(Step::put(self))
            }
            (S::Pending, Command::Finalize { sha256, size }) => self.finalize(at, sha256, size),
            (S::Verifying | S::Verified, Command::Finalize { sha256, .. }) => {
                self.finalize_again(&sha256)
            }
            (S::Pending, Command::Expire) if self.expires_at <= at.now => {
                Ok(self.discard(S::Expired, false))
            }
            (S::Verifying, Command::Expire) if self.expires_at <= at.now => {
                let problem =
                    "its bytes could not be read for an hour; upload the file again".into();
                Ok(self.reject(at, problem))
            }
            (_, Command::Expire) => Ok(Step::keep()),
            (_, Command::Delete) => Ok(self
                .discard(S::Deleted, true)
                .also(Change::new().require_absent::<ArtifactRefs>(&at.id))),
            (state, Command::Renew(_) | Command::Received(..) | Command::Finalize { .. }) => {
                Err(self.closed(state))
            }
        }
    }

    /// Whether all bytes are stored.
    pub fn is_complete(&self) -> bool {
        self.length == Some(self.offset)
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
                self.offset
            );
            return Err(Fault::Incomplete { reason, offset: self.offset });
        }
        self.artifact.state = ArtifactState::Verifying;
        self.expires_at = at.now + VERIFY_WITHIN;
        Ok(Step::put(self).intend(Intent::Now(Effect::Verify(Expected { sha256, size }))))
    }

    /// Finalizing twice is the same as once; with another hash it is refused, and changes nothing.
    fn finalize_again(self, sha256: &Sha256) -> Result<Step<Artifacts>, Fault> {
        match &self.artifact.sha256 {
            Some(verified) if verified != sha256 => Err(Fault::NotAsDeclared(format!(
                "this artifact is verified already, with the SHA-256 {verified}, not {sha256}"
            ))),
            _ => Ok(Step::keep()),
        }
    }

    fn closed(&self, state: ArtifactState) -> Fault {
        Fault::NotNow(match state {
            ArtifactState::Verifying => {
                "this artifact is being verified and takes no more bytes".into()
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
        self.discard(ArtifactState::Rejected, false)
    }

    fn discard(mut self, state: ArtifactState, forget: bool) -> Step<Artifacts> {
        self.artifact.state = state;
        Step::put(self).intend(Intent::Now(Effect::Discard { forget }))
    }

    fn on_outcome(mut self, at: &Moment<Artifacts>, outcome: Outcome) -> Step<Artifacts> {
        match (self.artifact.state, outcome) {
            (ArtifactState::Verifying, Outcome::Accepted(examined)) => {
                let Examined { size, sha256, content } = *examined;
                if let Ok(content) = content {
                    self.artifact.version = content.version.and_then(|v| v.parse().ok());
                    self.artifact.identifier = content.identifier.parse().ok();
                    self.artifact.build_number = content.build_number;
                    self.artifact.signer = content.signer;
                }
                self.artifact.size = Some(size);
                self.artifact.sha256 = Some(sha256);
                self.artifact.state = ArtifactState::Verified;
                self.artifact.finalized_at = Some(at.now);
                Step::put(self).intend(Intent::None)
            }
            (ArtifactState::Verifying, Outcome::Refused(problem)) => self.reject(at, problem),
            (ArtifactState::Deleted, Outcome::Discarded) => Step::remove(),
            (_, Outcome::Discarded | Outcome::Nothing) => Step::put(self).intend(Intent::None),
            // the outcome of something that was overtaken
            _ => Step::keep(),
        }
    }

    /// Whether the bytes are what was declared. The error says expected and got. A file that states
    /// no version gets the one that was declared.
    pub fn judge(&self, expected: &Expected, found: &Examined) -> Result<Content, String> {
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

    fn version_of(&self, content: &Content) -> Result<VersionName, String> {
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
