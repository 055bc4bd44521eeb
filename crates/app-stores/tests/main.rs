//! App stores: the clients against fakes that are checked against the descriptions of Apple and Google.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests say so by failing"
)]

mod apple;
mod google;
