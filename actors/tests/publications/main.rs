//! Publications: the state machine alone, and the owners over a store that fails on demand.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests say so by failing"
)]

#[path = "../support/life.rs"]
mod life;

mod owners;
mod shop;
mod states;
mod world;
