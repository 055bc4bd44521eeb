//! Payments through Stripe, in front of two independent programs whose requests and answers are
//! checked against Stripe's own description.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]
#![allow(dead_code, reason = "the support of the tests serves other tests too")]

#[path = "../../../../tests/support/payments.rs"]
mod providers;
#[path = "../../../../tests/support/requires.rs"]
mod requires;
#[path = "../../../../tests/support/rig.rs"]
mod rig;

mod after;
mod opening;
mod subscriptions;
mod world;
