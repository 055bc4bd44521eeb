//! The promises of the store, also after kills and on a full disk.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests say so by failing"
)]

mod full_disk;
mod nodes;
mod starts;
mod store;
mod support;
