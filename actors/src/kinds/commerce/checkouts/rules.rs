//! The rules of a checkout:
//! `created | orderBuilding → initialized → awaitingPayment → paid → settling → settled`, and
//! `failed`, `abandoned`, `expired`, `amountMismatch`.
//!
//! The id of the checkout is the reference of the payment, and is written before the provider is
//! called. What the provider says about the payment is looked up: notices and verifications only
//! ask for a look. Paid money moves forward only.

use crate::{
    kinds::{delivery::credentials::Use, people::apps::Apps, world::World},
    runtime::{
        entries::InState,
        event::Event,
        resource::{Child, Kept, Moment, Resource, Retry, Step, Unique, Work},
    },
};
use commerce::Built;
use contract::{
    AppId, CheckoutId, CommerceChannelId, Fault, Name, SubscriptionId, Timestamp,
    checkouts::{CheckoutFlow, CheckoutState, Customer, PaymentProvider, ShippingAddress},
    metadata::Metadata,
    money::{Amount, Money},
    retention::Retention,
    text::{Currency, Description, PlanCode, WebUrl},
};
use futures_util::future::LocalBoxFuture;
use payments::{Payment, PaymentPage, RemoteError, SubscriptionPlan};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use store::{Entries, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Checkouts;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub app_id: AppId,
    pub provider: PaymentProvider,
    pub ordered: Ordered,
    /// The request id with which it was asked for.
    pub request: Option<RequestId>,
    pub state: CheckoutState,
    /// What is to be paid.
    pub total: Option<Money>,
    /// What the buyer reads on the page of the provider.
    pub lines: Vec<payments::Line>,
    /// How far the order in the shop is built.
    #[serde(default)]
    pub building: commerce::OrderProgress,
    pub order: Option<ShopOrder>,
    /// Whether the order is marked as paid in the shop.
    #[serde(default)]
    pub order_paid: bool,
    pub opened: Option<PaymentPage>,
    /// What the provider said last.
    pub payment: Option<Payment>,
    /// When the provider was last asked for the payment.
    pub looked_at: Option<Timestamp>,
    /// Whether the provider is being asked for the payment.
    pub looking: bool,
    /// Whether the provider must be asked again: somebody asked for a look while a look or something
    /// else was under way, or a look had no answer.
    #[serde(default)]
    pub look_owed: bool,
    #[serde(default)]
    pub attempt: Option<SettlementAttempt>,
    pub subscription: Option<SubscriptionId>,
    pub problem: Option<Problem>,
    /// How many attempts at the present step failed.
    pub attempts: u32,
    /// When the present attempt to begin began.
    pub begun_at: Timestamp,
    /// When the provider or the shop is asked next, if nothing happens before. With a step that is to
    /// be done: when it begins, if not at once.
    pub due: Option<Timestamp>,
    /// Whether somebody was told that paid money is not settled, or does not match.
    pub alarmed: bool,
    /// Whether somebody must be told that.
    #[serde(default)]
    pub alarming: bool,
    /// Its app is deleted: the page is being closed.
    #[serde(default)]
    pub deleting: bool,
    pub settled_at: Option<Timestamp>,
    /// What a person did instead of the service.
    #[serde(default)]
    pub by_hand: Option<Description>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// What the caller ordered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ordered {
    pub price: Price,
    pub store_id: Option<Name>,
    pub customer: Customer,
    pub return_to: WebUrl,
    pub metadata: Metadata,
}

/// Where the price comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Price {
    /// From the caller.
    Lines { lines: Vec<payments::Line>, currency: Currency },
    /// From a plan of the provider. What the caller expects of its price must be so.
    Plan {
        code: PlanCode,
        expected: Option<Amount>,
        #[serde(default)]
        currency: Option<Currency>,
    },
    /// The shop adds up the lines, with taxes and shipping.
    #[serde(rename_all = "camelCase")]
    Shop {
        channel: CommerceChannelId,
        lines: Vec<commerce::Line>,
        shipping_address: Option<Box<ShippingAddress>>,
        shipping_method: Option<Name>,
        /// The plan to which the buyer subscribes. Its price must be the total of the shop.
        #[serde(default)]
        plan: Option<PlanCode>,
    },
}

impl Price {
    /// The plan to which the buyer subscribes.
    pub fn plan(&self) -> Option<&PlanCode> {
        match self {
            Price::Lines { .. } => None,
            Price::Plan { code, .. } => Some(code),
            Price::Shop { plan, .. } => plan.as_ref(),
        }
    }

    pub fn flow(&self) -> CheckoutFlow {
        match self {
            Price::Lines { .. } | Price::Plan { .. } => CheckoutFlow::Direct,
            Price::Shop { .. } => CheckoutFlow::Commerce,
        }
    }
}

/// An order in the shop that can be paid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShopOrder {
    /// How the API of the shop names it.
    pub id: String,
    /// What buyers and shopkeepers see.
    pub code: String,
}

/// An attempt to settle of which the result is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SettlementAttempt {
    /// It is under way, or begins after a pause.
    Begun,
    /// It got no answer until then. The shop may still be working on it.
    Unanswered(Timestamp),
}

/// Why the checkout failed, or is not settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub text: String,
    /// Nobody answered. The same call may succeed later.
    pub unreachable: bool,
    /// The address of the opened page was lost with the provider's answer. Nobody can pay there, and
    /// the reference cannot be opened again.
    #[serde(default)]
    pub lost: bool,
}

#[derive(Debug, Clone)]
pub struct New {
    pub app_id: AppId,
    pub provider: PaymentProvider,
    pub ordered: Ordered,
    pub request: Option<RequestId>,
}

/// A request id of a caller, as digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestId {
    /// Of the caller and the request id.
    pub key: String,
    /// Of the parameters, which must be the same when the call is repeated.
    pub fingerprint: String,
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Begin again after nobody answered. The reference stays.
    Again,
    /// Ask the provider for the payment.
    Look,
    /// Settle now.
    Settle,
    /// A person has settled it.
    SettledByHand(Description),
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Look the price of the plan up.
    Price,
    /// Take the order in the shop one step closer to being payable.
    Build,
    /// Open the page of the provider.
    Open,
    /// Ask the provider for the payment.
    Look,
    /// Mark the order as paid in the shop; if that is done, or there is no order, find the
    /// subscription.
    Settle,
    /// Tell people that paid money is not settled, or does not match.
    Alarm,
    /// Cancel the order in the shop, which nobody paid.
    Cancel,
    /// Close the page of the provider.
    Close,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    Priced(Result<SubscriptionPlan, RemoteError>),
    Built(Result<(commerce::OrderProgress, Option<Built>), RemoteError>),
    /// With the use of the credential, for the audit log.
    Opened(Result<PaymentPage, RemoteError>, Option<Box<Use>>),
    /// `None`: the provider knows nothing of the reference.
    Looked(Box<Result<Option<Payment>, RemoteError>>),
    Settled(Result<Settlement, RemoteError>),
    Alarmed,
    Cancelled,
    Closed,
}

/// How an attempt to settle ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Settlement {
    /// The order is marked as paid.
    Order,
    /// The payment began this subscription.
    Subscription(SubscriptionId),
    /// The provider has not made the subscription yet.
    NotYet,
}

impl Resource for Checkouts {
    const INDEX: u16 = 4;
    type New = New;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    /// One step is one or two requests, and building an order a few.
    const TIME_LIMIT: Duration = Duration::from_secs(120);

    fn create(at: &Moment<Self>, new: New) -> Result<Step<Self>, Fault> {
        Ok(State::begin(at.now, new))
    }

    fn on_command(state: State, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        state.on_command(at.now, command)
    }

    fn on_outcome(state: State, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        state.on_outcome(at, outcome)
    }

    /// A shop may record two payments that arrive at the same time.
    fn unanswered(effect: &Effect, state: &State) -> Option<Outcome> {
        let is_of_shop = state.pays_order();
        let why = || RemoteError::Unclear("the service stopped before the shop answered".into());
        (is_of_shop && *effect == Effect::Settle).then(|| Outcome::Settled(Err(why())))
    }

    fn is_deleted(state: &State) -> bool {
        state.deleting
    }

    fn accepts_deleted(command: &Command) -> bool {
        matches!(command, Command::Remove)
    }

    fn index(state: &State) -> Entries<Self> {
        let channel = match &state.ordered.price {
            Price::Shop { channel, .. } if !state.is_final() => Some(*channel),
            _ => None,
        };
        Entries::default()
            .and(InState::<Apps>::new(state.app_id, state.state))
            .and_all(state.is_unsettled().then_some(CheckoutIndex::Unsettled))
            .and_all(
                state.is_unsettled().then_some(CheckoutIndex::UnsettledOf { app: state.app_id }),
            )
            .and_all(channel.map(|channel| CheckoutIndex::Open { channel }))
    }

    /// Of calls with one request id, one creates the checkout, and the others find it. A page whose
    /// address was lost gives the request id free.
    fn claims(state: &State) -> Vec<Unique<Self>> {
        let is_lost = state.problem.as_ref().is_some_and(|problem| problem.lost);
        let request = state.request.as_ref().filter(|_| !is_lost);
        let claim = |request: &RequestId| CheckoutClaim::Request { key: request.key.clone() };
        request.map(|request| Unique::new(claim(request), || Fault::Stale)).into_iter().collect()
    }

    fn next(state: &State) -> Option<Work<Effect>> {
        state.next()
    }

    fn on_due(state: State, at: &Moment<Self>) -> Step<Self> {
        state.on_due(at.now)
    }

    fn retained(state: &State) -> Vec<(Retention, Timestamp)> {
        let has_ended = state.is_final() && state.next().is_none();
        let paid = state.payment.as_ref().and_then(|payment| payment.paid_at);
        let (retention, ended) = match state.settled_at.or(paid) {
            Some(ended) => (Retention::Checkouts, ended),
            // A page that is not closed may be paid late, and who would look for the money then?
            None if state.is_open() && state.state != CheckoutState::Expired => {
                (Retention::OpenCheckouts, state.expires_at)
            }
            None => (Retention::UnpaidCheckouts, state.expires_at),
        };
        has_ended.then_some((retention, ended)).into_iter().collect()
    }

    fn on_retention_over(
        state: State,
        at: &Moment<Self>,
        _: Retention,
    ) -> Result<Step<Self>, Fault> {
        state.on_command(at.now, Command::Remove)
    }

    fn adopt(kept: &mut Kept<Self>, intent: &Value) {
        kept.state.alarming = *intent == "Alarm";
    }

    fn events(at: &Moment<Self>, before: Option<&State>, after: &State, _: &World) -> Vec<Event> {
        super::view::events(at.id, before, after)
    }

    fn perform(
        effect: Effect,
        id: CheckoutId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, kept, world))
    }
}

impl Child for Checkouts {
    fn parent(state: &State) -> Option<AppId> {
        Some(state.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

store::entries! {
    pub enum CheckoutIndex of Checkouts {
        /// Money arrived, and is not settled or does not match.
        Unsettled = "unsettled",
        /// Those of one app.
        UnsettledOf { app: AppId } = "unsettledOf",
        /// Orders of a channel that may still be paid, or are not settled.
        Open { channel: CommerceChannelId } = "open",
    }
}

store::claims! {
    pub enum CheckoutClaim of Checkouts {
        /// A call with a request id makes one checkout.
        Request { key: String } = "request",
    }
}
