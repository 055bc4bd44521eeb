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
pub mod testflight;

#[cfg(feature = "clients")]
pub use app_store_connect::ADDRESS as APP_STORE_CONNECT;
#[cfg(feature = "clients")]
pub use google::GoogleAddresses;
pub use key::{AppStoreConnectKey, Key, Pem, ServiceAccount};
pub use order::{AppFile, Content, FirebaseApp, Options, Order, Wanted};
pub use progress::{Advanced, Next, Progress};
pub use remote::RemoteError;
pub use rollback::{Action, Undo};

use async_trait::async_trait;
use std::time::Duration;

/// A store, or a service that distributes apps to testers.
#[async_trait]
pub trait Store: Send + Sync {
    /// Takes a publication one step closer to what is wanted. The first steps check everything that
    /// the store tells before anything is sent. A step takes at most [`Store::step_within`].
    ///
    /// After [`RemoteError::Busy`] and [`RemoteError::Unclear`], the step may be repeated with the same
    /// progress; after [`RemoteError::Refused`] too, once the reason is gone.
    async fn advance(
        &self,
        key: &Key,
        order: &Order,
        content: &dyn Content,
        progress: &Progress,
    ) -> Result<Advanced, RemoteError>;

    /// Checks that the key opens the app in this store with every permission that a publication
    /// needs. Changes nothing that anybody sees. Returns what was found, as one sentence.
    async fn check_access(&self, key: &Key, app: &str) -> Result<String, RemoteError>;

    /// How long one step of this order may take. It is longer where a store takes a file only as a
    /// whole.
    fn step_within(&self, _order: &Order) -> Duration {
        STEP_WITHIN
    }
}

/// How long one step may take in most stores.
pub const STEP_WITHIN: Duration = Duration::from_secs(120);
