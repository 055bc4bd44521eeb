//! Publications in Firebase App Distribution: a file is uploaded as a whole, then given to groups of
//! testers.

#[cfg(feature = "clients")]
mod client;
#[cfg(feature = "clients")]
mod order;
mod progress;
#[cfg(feature = "clients")]
mod requests;

#[cfg(feature = "clients")]
pub use client::Firebase;
pub use progress::{FirebaseProgress, restoral, withdrawal};
