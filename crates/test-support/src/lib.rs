//! What the tests of several crates need. The program never depends on it.
//!
//! - [`apple`], [`google`], [`payments`] and [`vendure`] start the services of others, or fakes of them
//!   that a published description checks.
//! - [`postgres`] starts a database, [`network`] makes a network that can be cut, and [`disk`] a disk
//!   that can be full.
//! - [`credential_files`] makes keys, certificates and profiles with `openssl` and `keytool`.
//! - [`claims`] keeps test programs from taking the same ports and networks.
//! - [`rig`] runs the Node programs of `tests/support`, and [`requires`] leaves a test out where a
//!   program is missing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests say so by failing"
)]

pub mod apple;
pub mod claims;
pub mod credential_files;
pub mod disk;
pub mod google;
pub mod network;
pub mod payments;
pub mod postgres;
pub mod requires;
pub mod rig;
pub mod vendure;
