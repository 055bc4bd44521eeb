//! Publications: the state machine alone, and the owners over a store that fails on demand.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests say so by failing"
)]

mod owners;
mod shop;
mod states;
mod world;
