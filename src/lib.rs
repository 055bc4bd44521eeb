//! The edge of `svc`: its faces to people and its adapters to the world, wired together in
//! [`wiring`].

pub mod adapters;
pub mod admin;
pub mod config;
pub mod http;
pub mod process;
pub mod secrets;
pub mod serve;
pub mod telemetry;
pub mod wiring;
