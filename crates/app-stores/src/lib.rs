//! Stores and distribution services for apps.
//!
//! A publication is taken to its goal one step at a time. The caller keeps the [`Progress`] between
//! the steps, and a step may be repeated after a crash: what must not happen twice is looked up in
//! the store before it is done.

#![warn(missing_docs)]
#![cfg_attr(not(feature = "clients"), allow(dead_code, reason = "what the clients alone use"))]

pub mod app_store;
mod app_store_connect;
pub mod firebase;
#[cfg(feature = "clients")]
mod google;
pub mod google_play;
mod key;
mod order;
mod progress;
mod rollback;
mod store;
pub mod testflight;

#[cfg(feature = "clients")]
pub use app_store_connect::ADDRESS as APP_STORE_CONNECT;
#[cfg(feature = "clients")]
pub use google::GoogleAddresses;
pub use key::{AppStoreConnectKey, Pem, ServiceAccount, StoreKey};
pub use order::{AppFile, DesiredState, FirebaseApp, Options, PublicationOrder, ReadAt};
pub use progress::{Advanced, NextStep, Progress};
pub use remote::RemoteError;
pub use rollback::{Action, Undo};
pub use store::{AnyStore, OfOneStore, STEP_WITHIN, StoreClient};
