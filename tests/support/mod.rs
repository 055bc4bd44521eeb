//! The support of the tests: the service as a process, people, an engine with images, git, ssh, load.

pub mod authority;
pub mod browser;
pub mod bucket;
pub mod builds;
pub mod checkouts;
pub mod credentials;
pub mod declared;
pub mod engine;
pub mod git;
pub mod github;
pub mod load;
pub mod lossy;
pub mod mail;
pub mod managed;
pub mod oidc;
pub mod pages;
pub mod ports;
pub mod service;
pub mod sigstore;
pub mod ssh;
pub mod stores;
pub mod webhooks;

pub use test_support::{apple, google, payments, requires, rig, vendure};
