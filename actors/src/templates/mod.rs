//! Templates: blueprints of instances, and the catalogue that comes with the service.

pub mod catalogue;
mod check;
mod machine;
pub mod placeholder;
mod serve;

pub use machine::{Command, Templates, slug_claim};
