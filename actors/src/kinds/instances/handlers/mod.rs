//! The functions of instances.

mod backend;
mod cloud_functions;
pub mod helpers;
mod market;
