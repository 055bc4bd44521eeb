//! Publications in the App Store: a version with a build, which Apple reviews and releases.
//!
//! What a wish does depends on where the version stands:
//!
//! | wanted | before the submission | until the release | released in phases | fully released |
//! |---|---|---|---|---|
//! | released | goes on | the review and the wish for the release decide | goes on, or resumes | – |
//! | released to 100 % | goes on | releases a version that waits for it | goes to everybody | – |
//! | halted | nothing more is sent | stays unreleased after its approval | paused | refused |
//! | withdrawn | a draft is left | leaves the review, or stays unreleased | paused | nothing: it stays live |
//! | restored | nothing | nothing | nothing | nothing |
//!
//! A version that is to be released by hand waits until a share is wanted. Apple chooses the shares
//! of a release in phases; a share of less than 100 % only asks for phases.

#[cfg(feature = "clients")]
mod checks;
#[cfg(feature = "clients")]
mod client;
#[cfg(feature = "clients")]
mod follow;
mod progress;
#[cfg(feature = "clients")]
mod rules;
#[cfg(feature = "clients")]
mod submission;
#[cfg(feature = "clients")]
mod version;

#[cfg(feature = "clients")]
pub use client::AppStore;
pub use progress::{AppStoreProgress, restoral, withdrawal};
