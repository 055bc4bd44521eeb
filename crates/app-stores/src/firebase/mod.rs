//! Publications in Firebase App Distribution: a file is uploaded as a whole, then given to groups of
//! testers.

#[cfg(feature = "clients")]
mod asked;
#[cfg(feature = "clients")]
mod client;
mod progress;
#[cfg(feature = "clients")]
mod requests;

#[cfg(feature = "clients")]
pub use client::Firebase;
pub use progress::{Progress, restoral, withdrawal};
