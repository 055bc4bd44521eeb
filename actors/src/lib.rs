//! The platform: supervised actors that own its resources, and the functions that clients call.
//!
//! [`call`] takes each call through one pipeline of checks. [`kinds`] has a folder for each kind of
//! resource: its pure rules in `rules.rs`, its effects in `effects.rs`, and the handlers of its
//! functions in `handlers.rs`. [`runtime`] is the code that all owners share. [`background`] runs
//! without a call. [`ports`] declares the interfaces to the outside.

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
