//! Shops that run on Vendure, through its admin API.
//!
//! Sources: the schema that `@vendure/core` 3.7 publishes, and what a real server answers. The API is
//! GraphQL: errors about what was asked come with the HTTP status 200, as members of a union or in
//! the list `errors`.

mod access;
mod api;
mod build;
mod documents;
mod next;
mod settle;
mod summary;

use crate::{Built, Channel, OrderProgress, PurchaseOrder, RemoteError, Shop};
use api::Api;
use async_trait::async_trait;
use contract::{checkouts::Reference, money::Money, text::WebUrl};
use remote::{Guarded, PrivateHosts};

/// The operator's setting that holds the hosts of shops on the internal network.
const SETTING: &str = "SVC_SHOP_PRIVATE_HOSTS";

/// Shops that run on Vendure.
///
/// The address of a shop must be an https address on the public internet, which each connection
/// checks anew. Exceptions are the private hosts that the operator allows, and shops that the service
/// runs itself.
pub struct Vendure(Guarded);

impl Vendure {
    /// `private_hosts` may lie on the internal network.
    pub fn new(private_hosts: PrivateHosts) -> Result<Vendure, String> {
        Guarded::new(SETTING, private_hosts).map(Vendure)
    }

    /// Whether a request can go to this address, as far as the address alone tells it. The error ends
    /// a sentence whose subject is the address.
    pub fn check_address(&self, admin_api_url: &WebUrl) -> Result<(), String> {
        self.0.open(admin_api_url.as_str()).map(|_| ())
    }
}

#[async_trait]
impl Shop for Vendure {
    /// A step makes one change at most.
    ///
    /// Only the answer to the first change, the creation of a draft, cannot be looked up when it is
    /// lost. Such a draft stays in the shop: it is empty, has no customer, and holds no stock.
    async fn build(
        &self,
        channel: &Channel,
        order: &PurchaseOrder,
        progress: &OrderProgress,
    ) -> Result<(OrderProgress, Option<Built>), RemoteError> {
        build::step(&Api::open(&self.0, channel)?, order, progress).await
    }

    /// Vendure with PostgreSQL does not keep two callers at once from recording a payment each: the
    /// order then shows one of them, and stock is allocated for each.
    async fn settle(
        &self,
        channel: &Channel,
        order: &str,
        reference: Reference,
        paid: &Money,
    ) -> Result<(), RemoteError> {
        settle::settle(&Api::open(&self.0, channel)?, order, reference, paid).await
    }

    async fn cancel(
        &self,
        channel: &Channel,
        order: &str,
        reference: Reference,
    ) -> Result<(), RemoteError> {
        settle::cancel(&Api::open(&self.0, channel)?, order, reference).await
    }

    async fn check_access(&self, channel: &Channel) -> Result<String, RemoteError> {
        access::check(&Api::open(&self.0, channel)?).await
    }
}
