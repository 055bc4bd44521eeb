//! Publications in TestFlight: a build for groups of testers.
//!
//! A withdrawn build expires, for good. TestFlight has no staged roll-out.

#[cfg(feature = "clients")]
mod client;
mod progress;
#[cfg(feature = "clients")]
mod rules;

#[cfg(feature = "clients")]
pub use client::Testflight;
pub use progress::{TestflightProgress, restoral, withdrawal};
