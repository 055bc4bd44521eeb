//! The fake and the real engine keep the same promises; and the fake fails on demand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests say so by failing"
)]

mod conformance;
mod fake;
