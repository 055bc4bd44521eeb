//! The platform: supervised actors that own its resources, and the functions that clients call.
//!
//! [`functions`] serves what callers ask. [`call`] takes each call through one pipeline of checks. [`kinds`]
//! has a folder for each kind of resource: its pure rules in `rules.rs`, and its effects in `effects.rs`.
//! [`records`] lists what else is stored. [`runtime`] is the code that all owners share. [`background`] runs
//! without a call. [`ports`] declares the interfaces to the outside. Each imports only those below it.

pub mod background;
pub mod call;
#[cfg(feature = "failpoints")]
mod failpoints;
pub mod functions;
pub mod installation;
pub mod kinds;
pub mod ports;
pub mod records;
pub mod runtime;
