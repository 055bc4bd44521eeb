//! Files of credentials that `openssl` and `keytool` make, and damaged ones.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say so by failing"
)]

mod hostile;
mod ios;
mod keys;
mod keystores;
mod secrets;
