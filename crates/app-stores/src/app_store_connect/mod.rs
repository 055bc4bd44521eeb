//! What the App Store and TestFlight have in common: one API, one kind of key, and one upload of a
//! build that both can use.
//!
//! Source: Apple's description of the App Store Connect API, version 4.4.1.

pub(crate) mod upload;

#[cfg(feature = "clients")]
mod access;
#[cfg(feature = "clients")]
mod api;
#[cfg(feature = "clients")]
mod credentials;
#[cfg(feature = "clients")]
pub(crate) mod documents;
#[cfg(feature = "clients")]
mod refusal;
#[cfg(feature = "clients")]
mod step;

#[cfg(feature = "clients")]
pub use api::ADDRESS;
#[cfg(feature = "clients")]
pub(crate) use {
    access::shown_to,
    api::{Api, AppleRequest, KeyedApi},
    step::{FOLLOW_REVIEW, StepReport, checked_notes, linked, resource},
};
