//! Artifacts: uploaded binaries. A release takes only verified ones.

pub mod address;
mod artifact_refs;
mod attesting;
mod effects;
pub mod endpoints;
mod handlers;
mod origin;
mod rules;
mod transitions;

pub use artifact_refs::{ArtifactRefs, ArtifactRefsDelta};
pub use rules::{
    ArtifactClaim, ArtifactIndex, Artifacts, Command, Declared, Effect, Expected, Outcome, Upload,
};
