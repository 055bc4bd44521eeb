//! CI workflows that may upload artifacts of an app without a stored secret.

mod matching;
mod rules;

pub use matching::{Mismatch, matches};
pub use rules::{
    Command, Publisher, TrustedPublisherClaim, TrustedPublisherIndex, TrustedPublishers,
};
