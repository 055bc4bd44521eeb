//! Instances: their rules, and their owners on an engine that goes wrong on demand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests say so by failing"
)]

mod machine;
mod owners;
mod scene;
mod world;
