//! Orders in a real Vendure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]
#![allow(dead_code, reason = "the support of the tests serves other tests too")]

#[path = "../../../../tests/support/requires.rs"]
mod requires;
#[path = "../../../../tests/support/rig.rs"]
mod rig;
#[path = "../../../../tests/support/vendure.rs"]
mod vendure;

mod access;
mod crashes;
mod orders;
mod payments;
mod place;
mod refusals;
