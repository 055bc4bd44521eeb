//! What the platform does: supervised actors that own its resources, and the functions they serve.
//!
//! [`call`] is the way of a call: one pipeline of checks. [`kinds`] has a folder for each kind of
//! resource: its rules in `rules.rs`, pure; what it does to the world in `effects.rs`; how its
//! functions use it in `handlers.rs`. [`runtime`] is what all owners share, [`background`] what runs
//! by itself, and [`ports`] what the platform needs of the world outside.

pub mod background;
pub mod call;
#[cfg(feature = "failpoints")]
mod failpoints;
pub mod kinds;
pub mod operators;
pub mod platform;
pub mod ports;
pub mod runtime;
pub mod world;
