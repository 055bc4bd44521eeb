//! The container engines, which have the containers of instances: that of the settings, and those that
//! operators added.
//!
//! An instance is placed once ([`placement`]) and stays where it is. [`Hosts`] has for each engine a
//! connection and what this process last found there.

mod health;
mod hosts;
mod image_copy;
pub(crate) mod in_use;
pub mod placement;
mod rules;

pub use health::{Egress, EngineHealth, EngineStatus};
pub use hosts::{Host, Hosts};
pub(crate) use image_copy::copy_image;
pub use rules::{
    AddedEngine, Command, EngineClaim, EngineIndex, EngineKeys, Engines, refuse_added,
};
