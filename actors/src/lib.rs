//! The platform: supervised actors that own its resources, and the functions that clients call.
//!
//! From the top down, each imports only those after it. [`background`] runs without a call. [`functions`]
//! serves what callers ask. [`records`] lists everything that is stored. [`call`] takes each call through
//! one pipeline of checks. [`kinds`] has a folder for each kind of resource: its pure rules in `rules.rs`,
//! and its effects in `effects.rs`. [`installation`] is what is stored of this installation. [`ports`]
//! declares the interfaces to the outside. [`runtime`] is the code that all owners share.

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
