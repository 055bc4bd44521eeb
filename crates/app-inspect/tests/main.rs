//! Real, hostile and damaged files of apps.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say so by failing"
)]

mod fixtures;
mod hostile;
mod mutations;
mod real_apps;
mod resources;
mod signing_block;
mod zip;
