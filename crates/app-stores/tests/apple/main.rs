//! The App Store and TestFlight against a fake of App Store Connect, which keeps Apple's rules behind
//! a proxy that checks every request and every answer against Apple's description.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]
#![allow(dead_code, reason = "the support of the tests serves other tests too")]

#[path = "../../../../tests/support/apple.rs"]
mod apple;
mod crashes;
mod lives;
mod plans;
mod refusals;
#[path = "../../../../tests/support/requires.rs"]
mod requires;
#[path = "../../../../tests/support/rig.rs"]
mod rig;
mod scene;
