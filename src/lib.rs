//! `svc` builds, releases and runs mobile apps and their backends on a team's own machine.
//!
//! This crate is the edge of the program: the HTTP server, the operator's commands, and the adapters to
//! the outside world. [`wiring`] connects them to the platform. The parts know each other one way:
//!
//! ```text
//! http, dashboard, cli                what people and programs send
//!        │ a call
//! actors::call                        the steps of every call
//!        │ a handler
//! actors::functions                   what callers may ask
//!        │ a command
//! actors::kinds                       what a resource is, and what follows
//!        │ step, next, perform
//! actors::runtime                     an owner for each resource
//!        │ a change, an effect
//! store, actors::ports                the disk, and the world behind adapters
//! ```
//!
//! Where to begin:
//!
//! - [`contract`] declares every function, record and fault; clients, pages and documents derive from it.
//! - [`actors::runtime::resource`] says what a kind of resource consists of, and [`actors::kinds`] has all
//!   kinds. The example `reminder` of that crate is one kind, whole.
//! - [`actors::call::pipeline`] lists the steps of a call.
//! - [`store`] keeps records; its first page is a program.
//! - The crates that know something of the outside stand alone: [`app_inspect`], [`app_stores`],
//!   [`attestation`], [`commerce`], [`container_engine`], [`credentials`], [`payments`], [`remote`] and
//!   [`repository`].
//!
//! `docs/ARCHITECTURE.md` follows one call, one upload, one instance and one crash through them.

#![cfg(feature = "server")]

pub mod adapters;
pub mod admin;
mod apps;
pub mod config;
mod database;
pub mod http;
mod listen;
pub mod process;
pub mod secrets;
pub mod serve;
pub mod stop;
pub mod telemetry;
pub mod wiring;
