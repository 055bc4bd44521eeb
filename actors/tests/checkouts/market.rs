//! A model of the world outside: a payment provider, a shop, and a mail server. Clones are the same
//! world.

use actors::{
    ports::{PortError, mail::Mail},
    runtime::{clock::Time, manual_clock::ManualClock},
};
use async_trait::async_trait;
use commerce::{Built, Channel, OrderProgress, Shop};
use contract::{
    Email, Timestamp,
    checkouts::Reference,
    money::{Amount, Money},
};
use payments::{RemoteError, Subscription, SubscriptionStatus};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    future::pending,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

/// How long the shop works on a request of which the answer is lost. Meanwhile it does not show what
/// will come of it.
const WORKS_ON: Duration = Duration::from_secs(45);

/// What is asked of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    Plan,
    Build,
    Open,
    Look,
    Settle,
    FindSubscription,
    LookAtSubscription,
    Cancel,
    Close,
    Mail,
}

pub const STEPS: [Step; 10] = [
    Step::Plan,
    Step::Build,
    Step::Open,
    Step::Look,
    Step::Settle,
    Step::FindSubscription,
    Step::LookAtSubscription,
    Step::Cancel,
    Step::Close,
    Step::Mail,
];

/// How a step fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    UnclearBefore,
    UnclearAfter,
    Busy,
    PanicsBefore,
    PanicsAfter,
    HangsBefore,
    HangsAfter,
}

pub const FAULTS: [Fault; 7] = [
    Fault::UnclearBefore,
    Fault::UnclearAfter,
    Fault::Busy,
    Fault::PanicsBefore,
    Fault::PanicsAfter,
    Fault::HangsBefore,
    Fault::HangsAfter,
];

/// A payment page, and the payment.
#[derive(Debug, Clone)]
pub struct Page {
    pub(super) order: payments::PaymentOrder,
    /// How often its address was told.
    pub told: u32,
    pub charges: u32,
    pub paid: Option<(Money, Timestamp)>,
    pub refunded: u64,
    pub closed: bool,
    /// When the page closes by itself.
    pub(super) ends: Option<Timestamp>,
    pub(super) declined: bool,
}

impl Page {
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.closed || self.ends.is_some_and(|ends| ends <= now)
    }
}

/// An order in the shop.
#[derive(Debug, Clone, Default)]
pub struct ShopOrder {
    steps: u32,
    /// The payments of the order, by the moment from which the shop shows them.
    pub payments: Vec<Timestamp>,
    pub cancelled: bool,
}

#[derive(Clone)]
pub struct Market {
    pub(super) clock: ManualClock,
    model: Arc<Mutex<Model>>,
}

#[derive(Default)]
pub(super) struct Model {
    pub(super) pages: BTreeMap<String, Page>,
    /// By the reference and a number.
    orders: BTreeMap<String, Vec<ShopOrder>>,
    pub(super) subscriptions: HashMap<String, Subscription>,
    faults: Vec<(Step, Fault)>,
    refused: HashSet<Step>,
    asked: HashMap<Step, u32>,
    mails: Vec<(String, String)>,
    /// Whether the answer to the present request is lost.
    loses_answer: bool,
}

/// The price of everything.
pub fn price() -> Money {
    Money { amount: Amount::new(1000).unwrap(), currency: "EUR".parse().unwrap() }
}

impl Market {
    pub fn new(clock: &ManualClock) -> Self {
        Market { clock: clock.clone(), model: Arc::default() }
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Lets the next step of this sort fail.
    pub fn inject(&self, step: Step, fault: Fault) {
        self.model().faults.push((step, fault));
    }

    /// Whether every injected fault has happened.
    pub fn has_failed(&self) -> bool {
        self.model().faults.is_empty()
    }

    /// Refuses such steps until all is calm, as with a revoked key.
    pub fn refuse(&self, step: Step) {
        self.model().refused.insert(step);
    }

    /// Every step succeeds from now on.
    pub fn calm(&self) {
        let mut model = self.model();
        model.faults.clear();
        model.refused.clear();
    }

    /// How often such a step was asked for.
    pub fn asked(&self, step: Step) -> u32 {
        self.model().asked.get(&step).copied().unwrap_or(0)
    }

    pub fn page(&self, reference: Reference) -> Option<Page> {
        self.model().pages.get(&reference.to_string()).cloned()
    }

    /// The orders that were built for a payment.
    pub fn orders(&self, reference: Reference) -> Vec<ShopOrder> {
        self.model().orders.get(&reference.to_string()).cloned().unwrap_or_default()
    }

    /// The addresses and subjects of the mails that were delivered.
    pub fn mails(&self) -> Vec<(String, String)> {
        self.model().mails.clone()
    }

    /// The buyer pays on the page. False: the page does not take money.
    pub fn pay(&self, reference: Reference, sum: Money) -> bool {
        let now = self.clock.now();
        let mut model = self.model();
        let Some(page) = model.pages.get_mut(&reference.to_string()) else { return false };
        if page.told == 0 || page.paid.is_some() || page.is_over(now) {
            return false;
        }
        page.charges += 1;
        page.paid = Some((sum, now));
        if let Some(plan) = page.order.plan.clone() {
            let subscription = Subscription {
                id: format!("sub-{reference}"),
                plan,
                email: page.order.customer.email.clone(),
                status: SubscriptionStatus::Active,
                period_end: Some(now + Duration::from_secs(30 * 24 * 3600)),
                said: "active".into(),
                renewal_failure: None,
            };
            model.subscriptions.insert(subscription.id.clone(), subscription);
        }
        true
    }

    /// The provider's id of the subscription that a payment began.
    pub fn subscription_of(&self, reference: Reference) -> Option<String> {
        let id = format!("sub-{reference}");
        self.model().subscriptions.contains_key(&id).then_some(id)
    }

    /// The bank declines an attempt to pay.
    pub fn decline(&self, reference: Reference) {
        if let Some(page) = self.model().pages.get_mut(&reference.to_string()) {
            page.declined = true;
        }
    }

    /// Money is given back.
    pub fn refund(&self, reference: Reference, minor: u64) -> bool {
        let mut model = self.model();
        let page = model.pages.get_mut(&reference.to_string()).filter(|page| page.paid.is_some());
        page.map(|page| page.refunded = page.refunded.max(minor)).is_some()
    }

    /// Changes a subscription, or begins one at the provider itself.
    pub fn subscribe(&self, subscription: Subscription) {
        self.model().subscriptions.insert(subscription.id.clone(), subscription);
    }

    /// Asks for a step, which may fail.
    pub(super) async fn step<T>(
        &self,
        step: Step,
        work: impl FnOnce(&mut Model) -> Result<T, RemoteError> + Send,
    ) -> Result<T, RemoteError> {
        let fault = {
            let mut model = self.model();
            *model.asked.entry(step).or_default() += 1;
            if model.refused.contains(&step) {
                return Err(RemoteError::Refused("the key is revoked".into()));
            }
            let found = model.faults.iter().position(|(of, _)| *of == step);
            found.map(|at| model.faults.remove(at).1)
        };
        match fault {
            Some(Fault::UnclearBefore) => return Err(RemoteError::Unclear("no answer".into())),
            Some(Fault::Busy) => {
                let after = Duration::from_secs(2);
                return Err(RemoteError::Busy { why: "too many requests".into(), after });
            }
            Some(Fault::PanicsBefore) => panic!("the client has a fault"),
            Some(Fault::HangsBefore) => pending().await,
            _ => {}
        }
        // Another step of the same checkout would see the same here.
        tokio::task::yield_now().await;
        let done = {
            let mut model = self.model();
            let after = [Fault::UnclearAfter, Fault::PanicsAfter, Fault::HangsAfter];
            model.loses_answer = fault.is_some_and(|fault| after.contains(&fault));
            work(&mut model)
        };
        match fault {
            Some(Fault::UnclearAfter) => Err(RemoteError::Unclear("no answer".into())),
            Some(Fault::PanicsAfter) => panic!("the client has a fault"),
            Some(Fault::HangsAfter) => pending().await,
            _ => done,
        }
    }
}

#[async_trait]
impl Shop for Market {
    /// Looks for the order of the reference before it makes one. An order has three steps.
    async fn build(
        &self,
        _: &Channel,
        order: &commerce::PurchaseOrder,
        progress: &OrderProgress,
    ) -> Result<(OrderProgress, Option<Built>), RemoteError> {
        let build = |model: &mut Model| {
            let orders = model.orders.entry(order.reference.to_string()).or_default();
            let known = match &progress.order {
                Some(number) => Some(number.parse().unwrap()),
                None => orders.iter().position(|order| !order.cancelled),
            };
            let number = known.unwrap_or_else(|| {
                orders.push(ShopOrder::default());
                orders.len() - 1
            });
            let made = &mut orders[number];
            if made.cancelled {
                return Err(RemoteError::Refused("the order is cancelled".into()));
            }
            made.steps = (made.steps + 1).min(3);
            let built = (made.steps == 3).then(|| Built {
                id: number.to_string(),
                code: format!("T{number}"),
                total: price(),
                summary: vec![],
            });
            Ok((OrderProgress { order: Some(number.to_string()) }, built))
        };
        self.step(Step::Build, build).await
    }

    async fn settle(
        &self,
        _: &Channel,
        order: &str,
        reference: Reference,
        paid: &Money,
    ) -> Result<(), RemoteError> {
        let now = self.clock.now();
        let settle = |model: &mut Model| {
            let shown_at = if model.loses_answer { now + WORKS_ON } else { now };
            let orders = model.orders.get_mut(&reference.to_string()).unwrap();
            let order = &mut orders[order.parse::<usize>().unwrap()];
            if order.cancelled || *paid != price() {
                return Err(RemoteError::Refused("the order does not take this payment".into()));
            }
            if order.payments.iter().all(|shown_at| *shown_at > now) {
                order.payments.push(shown_at);
            }
            Ok(())
        };
        self.step(Step::Settle, settle).await
    }

    async fn cancel(
        &self,
        _: &Channel,
        order: &str,
        reference: Reference,
    ) -> Result<(), RemoteError> {
        let cancel = |model: &mut Model| {
            let reference = reference.to_string();
            let orders = model.orders.get_mut(&reference).unwrap();
            let order = &mut orders[order.parse::<usize>().unwrap()];
            if !order.payments.is_empty() {
                let refunded = model.pages[&reference].refunded;
                assert!(refunded >= price().amount.minor(), "nobody cancels what was paid");
                return Err(RemoteError::Refused("the order is paid".into()));
            }
            order.cancelled = true;
            Ok(())
        };
        self.step(Step::Cancel, cancel).await
    }

    async fn check_access(&self, _: &Channel) -> Result<String, RemoteError> {
        Ok("The channel opens.".into())
    }
}

#[async_trait]
impl Mail for Market {
    async fn send(&self, to: &Email, subject: &str, _: &str) -> Result<(), PortError> {
        let deliver = |model: &mut Model| {
            model.mails.push((to.to_string(), subject.to_owned()));
            Ok(())
        };
        self.step(Step::Mail, deliver).await.map_err(|error| PortError(error.to_string()))
    }
}
