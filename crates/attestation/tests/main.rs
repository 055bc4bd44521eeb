//! Real, hostile and tampered attestations.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say so by failing"
)]

mod hostile;
mod real;
mod support;
mod tampering;
