//! What is declared, documented and told is the same.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say so by failing"
)]

mod documents;
mod encodings;
mod messages;
