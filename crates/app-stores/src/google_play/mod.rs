//! Publications in Google Play.
//!
//! A publication opens an edit, uploads its file in it, changes the track in it, and commits it. Who
//! opens a new edit ends the one before, and so does a change in the console; then the publication
//! begins again, and finds in the new edit what has happened.

mod change;
#[cfg(feature = "clients")]
mod checks;
#[cfg(feature = "clients")]
mod client;
#[cfg(feature = "clients")]
mod edits;
#[cfg(feature = "clients")]
mod lease;
#[cfg(feature = "clients")]
mod order;
mod progress;
#[cfg(feature = "clients")]
mod refusal;
mod track;
mod undo;
#[cfg(feature = "clients")]
mod upload;

#[cfg(feature = "clients")]
pub use client::GooglePlay;
pub use progress::PlayProgress;
pub use undo::{restoral, withdrawal};
