//! Payments through providers: the clients, and the notices that providers send.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests say so by failing"
)]

mod notices;
mod paystack;
mod stripe;
