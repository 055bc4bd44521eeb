//! Checkouts and subscriptions: the state machine alone, and the owners over a payment provider and
//! a shop that fail on demand.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests say so by failing"
)]

#[path = "../support/life.rs"]
mod life;

mod inputs;
mod market;
mod owners;
mod purchases;
mod random;
mod states;
mod subscriptions;
mod till;
mod unsettled;
mod world;
