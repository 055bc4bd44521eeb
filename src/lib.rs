//! The edge of `svc`: the HTTP server, the command line, and the adapters to the outside world.
//! [`wiring`] connects them to the platform.

#![cfg(feature = "server")]

pub mod adapters;
pub mod admin;
pub mod config;
pub mod http;
pub mod process;
pub mod secrets;
pub mod serve;
pub mod stop;
pub mod telemetry;
pub mod wiring;
