//! Releases: artifacts of one version that are published to a channel together.

pub(crate) mod current;
mod effects;
mod notes;
pub(crate) mod policy;
pub(crate) mod rules;
pub(crate) mod transitions;

pub use current::Current;
pub use rules::{
    Command, Draft, Effect, Offer, Outcome, PublicationRequest, Releases, State, TargetReply,
};
