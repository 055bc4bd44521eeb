//! Tests of the rules of the kinds alone, and of the owners over ports that fail on demand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests say so by failing"
)]

mod builds;
mod checkouts;
mod earlier_records;
mod layers;
mod life;
mod machines;
mod nodes;
mod owners;
mod publications;
mod webhooks;
