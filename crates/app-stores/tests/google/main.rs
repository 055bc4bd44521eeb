//! Publications in Google Play and Firebase App Distribution, in front of fakes whose requests and
//! answers are checked against Google's own description.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]
#![allow(dead_code, reason = "the support of the tests serves other tests too")]

#[path = "../../../../tests/support/google.rs"]
mod google;
#[path = "../../../../tests/support/requires.rs"]
mod requires;
#[path = "../../../../tests/support/rig.rs"]
mod rig;

mod crashes;
mod firebase;
mod play;
mod refusals;
mod uploads;
mod world;
