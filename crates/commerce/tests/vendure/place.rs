//! A place in the shared shop: each test has a client, products and requests of its own.

use commerce::{
    Built, Channel, Line, OrderProgress, PurchaseOrder, RemoteError, Shop, Variant, Vendure,
};
use contract::checkouts::{Customer, Reference, ShippingAddress};
use serde_json::{Value, json};
use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering::Relaxed},
};
use test_support::vendure::Vendure as Server;

/// So many steps are more than any order here needs.
const MOST_STEPS: usize = 60;

/// A Vendure that the tests share. It ends with this process.
pub fn shared() -> &'static Server {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(Server::start)
}

/// A reference that no other test has.
pub fn reference() -> Reference {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    format!("chk-01J9ZQ8F5W7V3T6M2K4N8R{:04}", LAST.fetch_add(1, Relaxed)).parse().unwrap()
}

pub struct Place {
    pub server: &'static Server,
    pub name: String,
    /// The name of the channel.
    pub at: &'static str,
    pub channel: Channel,
    pub shop: Vendure,
}

impl Place {
    pub fn new(name: &str, at: &'static str) -> Place {
        let server = shared();
        let channel = Channel {
            admin_api_url: server.admin_api_url(name).parse().unwrap(),
            admin_token: server.token("session").parse().unwrap(),
            channel_token: server.channel(at).into(),
            is_own: true,
        };
        let shop = Vendure::new(Vec::new().into()).unwrap();
        Place { server, name: name.into(), at, channel, shop }
    }

    /// Adds a product whose SKU begins with the name of the place. Returns the line that orders it.
    pub fn product(&self, sku: &str, price: u32, stock: Option<u32>, quantity: u32) -> Line {
        let sku = format!("{}-{sku}", self.name);
        self.server.product(self.at, &sku, price, stock);
        Line { variant: Variant::Sku(sku), quantity }
    }

    pub fn order(&self, lines: Vec<Line>) -> PurchaseOrder {
        let reference = reference();
        let address = json!({
            "line1": "1 Long Street", "city": "Old Town",
            "country": self.server.ready["channels"][self.at]["country"],
        });
        let customer = json!({
            "email": format!("{reference}@Example.com"), "name": "Ada King Lovelace",
            "phone": "+49 1",
        });
        PurchaseOrder {
            reference,
            lines,
            customer: serde_json::from_value::<Customer>(customer).unwrap(),
            shipping_address: Some(serde_json::from_value::<ShippingAddress>(address).unwrap()),
            shipping_method: None,
        }
    }

    /// Takes steps until the order can be paid.
    pub async fn build(&self, order: &PurchaseOrder) -> Result<Built, RemoteError> {
        let mut progress = OrderProgress::default();
        self.go_on(order, &mut progress).await
    }

    /// Takes steps from here.
    pub async fn go_on(
        &self,
        order: &PurchaseOrder,
        progress: &mut OrderProgress,
    ) -> Result<Built, RemoteError> {
        for _ in 0..MOST_STEPS {
            let (next, built) = self.shop.build(&self.channel, order, progress).await?;
            *progress = next;
            if let Some(built) = built {
                assert_eq!(progress.order.as_ref(), Some(&built.id));
                let sum: i64 = built.summary.iter().map(|it| it.total).sum();
                assert_eq!(u64::try_from(sum), Ok(built.total.amount.minor()), "{built:?}");
                return Ok(built);
            }
        }
        panic!("{order:?} does not end: {progress:?}");
    }

    /// Takes a step with an order that was built already.
    pub async fn build_again(
        &self,
        order: &PurchaseOrder,
        built: &Built,
    ) -> Result<Built, RemoteError> {
        self.go_on(order, &mut OrderProgress { order: Some(built.id.clone()) }).await
    }

    pub async fn settle(&self, order: &PurchaseOrder, built: &Built) -> Result<(), RemoteError> {
        self.shop.settle(&self.channel, &built.id, order.reference, &built.total).await
    }

    pub async fn cancel(&self, id: &str, reference: Reference) -> Result<(), RemoteError> {
        self.shop.cancel(&self.channel, id, reference).await
    }

    /// An order as the shop has it.
    pub fn seen(&self, id: &str) -> Value {
        self.server.order(self.at, id)
    }

    /// The payments of an order: method, state, amount, reference.
    pub fn payments(&self, id: &str) -> Value {
        let seen = self.seen(id);
        let payments = seen["payments"].as_array().unwrap().iter();
        let told = payments
            .map(|it| json!([it["method"], it["state"], it["amount"], it["transactionId"]]));
        told.collect()
    }

    /// Lets a request go wrong, after so many others.
    pub fn fail(&self, skip: usize, how: &Value) {
        self.server.tell(&json!({"do": "fail", "place": self.name, "skip": skip, "how": how}));
    }

    /// Lets a request of each operation go wrong, after so many others of it.
    pub fn fail_each(&self, skip: usize, how: &Value) {
        let fault =
            json!({"do": "fail", "place": self.name, "skip": skip, "each": true, "how": how});
        self.server.tell(&fault);
    }

    pub fn heal(&self) {
        self.server.tell(&json!({"do": "heal", "place": self.name}));
    }
}

/// The sentence of a refusal.
pub fn refused<T: std::fmt::Debug>(result: Result<T, RemoteError>) -> String {
    match result {
        Err(RemoteError::Refused(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}
