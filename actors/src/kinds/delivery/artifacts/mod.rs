//! Artifacts: uploaded binaries. A release takes only verified ones.

pub mod address;
pub(crate) mod artifact_refs;
mod effects;
mod rules;
mod transitions;

pub use artifact_refs::{ArtifactRefs, ArtifactRefsDelta};
pub use rules::{
    ArtifactClaim, ArtifactIndex, Artifacts, Command, Declared, Effect, Expected, Outcome,
    Received, SharedBytes, StoredArtifact,
};
pub use transitions::MOST_SEGMENTS;
