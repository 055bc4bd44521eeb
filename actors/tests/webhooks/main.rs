//! Webhooks: the state machines alone, and the owners over a receiver that fails on demand and a
//! clock that the test moves.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests say so by failing"
)]

#[path = "../support/life.rs"]
mod life;

mod fairness;
mod long_calls;
mod machines;
mod owners;
mod world;
