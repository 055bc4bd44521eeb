//! The upload of a build, which the App Store and TestFlight share.
//!
//! Apple has one build of each version and build number. Publications of the same file use the same
//! build: the first one uploads it, the others find it. The name of the file at Apple is its SHA-256,
//! so that everybody who finds an upload can tell which file it has.

#[cfg(feature = "clients")]
mod client;
#[cfg(feature = "clients")]
mod lookup;
mod progress;
#[cfg(feature = "clients")]
mod rules;
#[cfg(feature = "clients")]
mod troubles;

#[cfg(feature = "clients")]
pub(crate) use progress::AppRecord;
pub use progress::UploadProgress;
#[cfg(feature = "clients")]
pub(crate) use {
    client::Uploader,
    rules::{UploadStep, next, numbers},
};
