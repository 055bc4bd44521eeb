//! The rules of an artifact: `pending → verifying → verified | rejected`, `expired`, `deleted`.

use crate::{
    kinds::{people::apps::Apps, world::World},
    ports::binaries::{Examined, Segment, Staged},
    runtime::{
        entries::InState,
        event::Event,
        resource::{Child, Kept, Moment, Resource, Retry, Step, Unique, Work},
        uses::Uses,
    },
};
use contract::{
    AppId, ArtifactId, BuildId, Fault, Sha256, Timestamp, VersionName,
    artifacts::{Artifact, ArtifactKind, ArtifactState, Attestation},
    quotas::Quota,
    retention::Retention,
    webhooks::EventType,
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use store::{Entries, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Artifacts;

/// The stored state: the public artifact, and its upload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredArtifact {
    /// What callers see.
    pub artifact: Artifact,
    /// The bytes that are durable.
    #[serde(flatten)]
    pub staged: Staged,
    /// The size of the whole file in bytes, once it is known.
    pub length: Option<u64>,
    /// An upload with a declared size and hash can be resumed.
    pub declared: Declared,
    /// The deadline of the upload; while the artifact is verifying, of the verification.
    pub expires_at: Timestamp,
    /// What the bytes are compared with, once the upload is finalized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// Whether the bytes are no longer wanted, and not deleted yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discarding: bool,
    /// Whether this upload claims its declared bytes, so that no second upload of them is opened.
    /// False in the records of earlier versions.
    #[serde(default)]
    pub claims_bytes: bool,
}

/// What the caller declared when it opened the upload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Declared {
    /// In bytes.
    pub size: Option<u64>,
    pub sha256: Option<Sha256>,
    pub build_number: Option<String>,
    #[serde(default)]
    pub version: Option<VersionName>,
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Extend the deadline of the upload to this time.
    Renew(Timestamp),
    /// Count these bytes.
    Received(Received),
    /// Verify that the bytes have this hash and size.
    Finalize {
        sha256: Sha256,
        /// In bytes.
        size: Option<u64>,
    },
    /// A run of a CI that the app trusts built the file.
    Attest(Box<Attestation>),
    /// Delete the artifact. Refused while a release refers to it.
    Delete,
    /// Delete the artifact because its app is deleted.
    Remove,
}

/// Bytes that are durable.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// How many there are.
    pub offset: u64,
    /// The size of the whole file in bytes, if it is known.
    pub length: Option<u64>,
    /// Set if nodes share the bytes. Then no lock keeps other writers away, and the record does.
    pub shared: Option<SharedBytes>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SharedBytes {
    /// The bytes follow these. Refused if the record counts more or fewer.
    pub after: u64,
    /// Where the bytes are. `None`: no bytes were added.
    pub segment: Option<Segment>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Read the bytes, compare them with the declaration and the app, and keep them.
    Verify(Expected),
    /// Delete the bytes. After those of a deleted artifact, the record is removed.
    Discard,
}

/// What `Finalize` says of the bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    pub sha256: Sha256,
    /// In bytes.
    pub size: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The bytes match and are kept.
    Accepted(Box<Examined>),
    /// The bytes do not match, for this reason.
    Refused(String),
    /// The bytes are deleted.
    Discarded,
}

impl Resource for Artifacts {
    const INDEX: u16 = 4;
    /// Verification reads up to 4 GiB twice. At 100 MiB/s that takes a minute and a half.
    const TIME_LIMIT: Duration = Duration::from_secs(600);
    type New = StoredArtifact;
    type State = StoredArtifact;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(_: &Moment<Self>, upload: StoredArtifact) -> Result<Step<Self>, Fault> {
        Ok(Step::put(upload))
    }

    fn on_command(
        upload: StoredArtifact,
        at: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        upload.on_command(at, command)
    }

    fn on_outcome(upload: StoredArtifact, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        upload.on_outcome(at, outcome)
    }

    fn is_deleted(upload: &StoredArtifact) -> bool {
        upload.artifact.state == ArtifactState::Deleted
    }

    fn index(upload: &StoredArtifact) -> Entries<Self> {
        let artifact = &upload.artifact;
        let app = artifact.app_id;
        let stands = [ArtifactState::Pending, ArtifactState::Verifying, ArtifactState::Verified]
            .contains(&artifact.state);
        let build = artifact.provenance.build_id.filter(|_| stands);
        let entries = Entries::default()
            .and(InState::<Apps>::new(app, artifact.state))
            .and_all(build.map(|build| ArtifactIndex::OfBuild { build }));
        match (artifact.state, &upload.declared, &artifact.sha256) {
            (ArtifactState::Pending, Declared { size, sha256, .. }, _) => {
                let known = size.zip(sha256.clone());
                entries
                    .and(ArtifactIndex::Pending { app })
                    .and_all(known.map(|(size, sha256)| ArtifactIndex::Open { app, sha256, size }))
            }
            (ArtifactState::Verified, _, Some(sha256)) => {
                entries.and(ArtifactIndex::Held { app, sha256: sha256.clone() })
            }
            _ => entries,
        }
    }

    /// Rejected, expired and deleted artifacts give up their claim. If two calls open an upload of
    /// the same bytes at once, the second call is decided again and finds the upload of the first.
    fn claims(upload: &StoredArtifact) -> Vec<Unique<Self>> {
        use ArtifactState as S;
        let Artifact { app_id, kind, state, .. } = upload.artifact;
        let claim = ArtifactClaim::of(app_id, kind, &upload.declared);
        let stands = matches!(state, S::Pending | S::Verifying | S::Verified);
        let claim = claim.filter(|_| stands && upload.claims_bytes);
        claim.map(|claim| Unique::new(claim, || Fault::Stale)).into_iter().collect()
    }

    /// An upload counts what was declared, and at least what arrived, so that none begins where no byte is
    /// left.
    fn uses(upload: &StoredArtifact) -> Uses {
        use ArtifactState as S;
        let announced = upload.length.or(upload.declared.size).unwrap_or_default();
        let arrives = announced.max(upload.staged.offset).max(1);
        match upload.artifact.state {
            S::Pending => Uses::one(Quota::OpenUploads).and(Quota::ArtifactBytes, arrives),
            S::Verifying => Uses::default().and(Quota::ArtifactBytes, arrives),
            S::Verified => {
                Uses::default().and(Quota::ArtifactBytes, upload.artifact.size.unwrap_or(arrives))
            }
            S::Rejected | S::Expired | S::Deleted => Uses::default(),
        }
    }

    fn next(upload: &StoredArtifact) -> Option<Work<Effect>> {
        let end = upload.expires_at;
        match (upload.artifact.state, &upload.expected) {
            _ if upload.discarding => Some(Work::now(Effect::Discard)),
            (ArtifactState::Verifying, Some(expected)) => {
                Some(Work::now(Effect::Verify(expected.clone())).until(Some(end)))
            }
            (ArtifactState::Pending | ArtifactState::Verifying, _) => Some(Work::wait(end)),
            _ => None,
        }
    }

    fn on_due(upload: StoredArtifact, at: &Moment<Self>) -> Step<Self> {
        upload.expire(at)
    }

    fn retained(upload: &StoredArtifact) -> Vec<(Retention, Timestamp)> {
        let ended = match upload.artifact.state {
            ArtifactState::Rejected => upload.artifact.finalized_at,
            ArtifactState::Expired => Some(upload.expires_at),
            ArtifactState::Pending
            | ArtifactState::Verifying
            | ArtifactState::Verified
            | ArtifactState::Deleted => None,
        };
        ended.map(|ended| (Retention::RejectedArtifacts, ended)).into_iter().collect()
    }

    fn on_retention_over(
        upload: StoredArtifact,
        at: &Moment<Self>,
        _: Retention,
    ) -> Result<Step<Self>, Fault> {
        upload.on_command(at, Command::Remove)
    }

    fn adopt(kept: &mut Kept<Self>, intent: &Value) {
        kept.state.expected =
            intent.get("Verify").and_then(|expected| Expected::deserialize(expected).ok());
        kept.state.discarding = intent.get("Discard").is_some();
    }

    fn expires(_: &StoredArtifact) -> bool {
        true
    }

    fn events(
        _: &Moment<Self>,
        before: Option<&StoredArtifact>,
        after: &StoredArtifact,
        _: &World,
    ) -> Vec<Event> {
        let artifact = &after.artifact;
        if before.is_some_and(|before| before.artifact.state == artifact.state) {
            return Vec::new();
        }
        let kind = match artifact.state {
            ArtifactState::Verified => EventType::ArtifactVerified,
            ArtifactState::Rejected => EventType::ArtifactRejected,
            ArtifactState::Pending
            | ArtifactState::Verifying
            | ArtifactState::Expired
            | ArtifactState::Deleted => return Vec::new(),
        };
        vec![Event::new(kind, artifact.app_id, artifact)]
    }

    fn perform(
        effect: Effect,
        id: ArtifactId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, kept, world))
    }
}

impl Child for Artifacts {
    fn parent(upload: &StoredArtifact) -> Option<AppId> {
        Some(upload.artifact.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

store::entries! {
    pub enum ArtifactIndex of Artifacts {
        /// Uploads that wait for bytes.
        Pending { app: AppId } = "pending",
        /// Uploads that can be resumed.
        Open { app: AppId, sha256: Sha256, size: u64 } = "open",
        /// Verified artifacts.
        Held { app: AppId, sha256: Sha256 } = "held",
        /// The artifacts of a build, also those that are not verified yet.
        OfBuild { build: BuildId } = "build",
    }
}

store::claims! {
    pub enum ArtifactClaim of Artifacts {
        /// The declared bytes of an upload. `version` is empty if none was declared.
        Bytes { app: AppId, kind: &'static str, version: String, sha256: Sha256, size: u64 } = "bytes",
    }
}

impl ArtifactClaim {
    /// The claim of an upload with this declaration. `None` without a declared size and hash.
    pub fn of(app: AppId, kind: ArtifactKind, declared: &Declared) -> Option<Self> {
        let version = declared.version.as_ref().map(ToString::to_string).unwrap_or_default();
        let (size, sha256) = declared.size.zip(declared.sha256.clone())?;
        Some(ArtifactClaim::Bytes { app, kind: kind.extension(), version, sha256, size })
    }
}
