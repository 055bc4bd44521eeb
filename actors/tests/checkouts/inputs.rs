//! Everything that can happen to a checkout, as inputs of its state machine.

use actors::{
    kinds::commerce::checkouts::{
        Checkouts, Command, Effect, New, Ordered, Outcome, Price, RequestId, Settlement, State,
    },
    runtime::resource::Input,
};
use contract::{
    AppId, CheckoutId, Id, Timestamp,
    checkouts::{Customer, PaymentProvider, Reference},
    money::{Amount, Money},
};
use payments::{DisputeState, Payment, PaymentPage, PaymentStatus, RemoteError, SubscriptionPlan};
use std::time::Duration;
use ulid::Ulid;

pub const CREATED: Timestamp = Timestamp::from_millis(1_000_000_000_000);

pub fn id() -> CheckoutId {
    Id::of(Ulid(7))
}

fn eur(minor: u64) -> Money {
    Money { amount: Amount::new(minor).unwrap(), currency: "EUR".parse().unwrap() }
}

pub fn lines() -> Price {
    let line = payments::Line { name: "Tea".into(), unit: Amount::new(500).unwrap(), quantity: 2 };
    Price::Lines { lines: vec![line], currency: "EUR".parse().unwrap() }
}

pub fn plan() -> Price {
    Price::Plan { code: "PLN_gold".parse().unwrap(), expected: Amount::new(1000), currency: None }
}

pub fn shop(plan: Option<&str>) -> Price {
    let tea = commerce::Variant::Sku("tea".into());
    Price::Shop {
        channel: Id::of(Ulid(5)),
        lines: vec![commerce::Line { variant: tea, quantity: 2 }],
        shipping_address: None,
        shipping_method: None,
        plan: plan.map(|code| code.parse().unwrap()),
    }
}

pub fn new(price: Price) -> New {
    New {
        app_id: AppId::of(Ulid(3)),
        provider: PaymentProvider::Stripe,
        ordered: Ordered {
            price,
            store_id: None,
            customer: Customer {
                email: "buyer@example.com".parse().unwrap(),
                name: None,
                phone: None,
            },
            return_to: "https://shop.example.com/thanks".parse().unwrap(),
            metadata: Default::default(),
        },
        request: Some(RequestId { key: "k".into(), fingerprint: "f".into() }),
    }
}

fn payment(status: PaymentStatus) -> Payment {
    Payment {
        reference: Some(Reference(id()).to_string()),
        status,
        amount: Some(eur(1000)),
        paid_at: None,
        id: Some("pi_1".into()),
        customer: None,
        plan: None,
        subscription: None,
        refunded: 0,
        dispute: None,
    }
}

fn paid() -> Payment {
    Payment { paid_at: Some(CREATED), ..payment(PaymentStatus::Paid) }
}

/// What a look finds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seen {
    Unknown,
    Pending,
    Declined,
    Abandoned,
    Expired,
    Paid,
    Refunded,
    GivenBack,
    Disputed,
    OtherSum,
    OtherSumGivenBack,
    OtherCurrency,
    OtherReference,
    NoSum,
}

impl Seen {
    pub fn payment(self) -> Option<Payment> {
        Some(match self {
            Seen::Unknown => return None,
            Seen::Pending => payment(PaymentStatus::Pending),
            Seen::Declined => payment(PaymentStatus::Failed("declined".into())),
            Seen::Abandoned => payment(PaymentStatus::Abandoned),
            Seen::Expired => payment(PaymentStatus::Expired),
            Seen::Paid => paid(),
            Seen::Refunded => Payment { refunded: 400, ..paid() },
            Seen::GivenBack => Payment { refunded: 1000, ..paid() },
            Seen::Disputed => Payment { dispute: Some(DisputeState::Open), ..paid() },
            Seen::OtherSum => Payment { amount: Some(eur(1)), ..paid() },
            Seen::OtherSumGivenBack => Payment { amount: Some(eur(1)), refunded: 1, ..paid() },
            Seen::OtherCurrency => {
                let amount = Some(Money { currency: "NGN".parse().unwrap(), ..eur(1000) });
                Payment { amount, ..paid() }
            }
            Seen::OtherReference => Payment { reference: Some("another".into()), ..paid() },
            Seen::NoSum => Payment { amount: None, ..paid() },
        })
    }
}

/// How a request ends that is not done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Not {
    Refused,
    /// With a pause that the service asks for.
    Busy,
    Unclear,
}

impl Not {
    fn error(self) -> RemoteError {
        match self {
            Not::Refused => RemoteError::Refused("no".into()),
            Not::Busy => RemoteError::Busy { why: "wait".into(), after: Duration::from_secs(300) },
            Not::Unclear => RemoteError::Unclear("no answer".into()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    Again,
    Look,
    Settle,
    ByHand,
    Due,
    Remove,
    Priced,
    NotPriced(Not),
    BuiltInPart,
    Built,
    NotBuilt(Not),
    Opened,
    /// The payment is under way: the answer with the page was lost.
    OpenedBefore,
    NotOpened(Not),
    Looked(Seen),
    NotLooked(Not),
    Settled,
    NotYet,
    NotSettled(Not),
    Alarmed,
    Cancelled,
    Closed,
}

const NOT: [Not; 3] = [Not::Refused, Not::Busy, Not::Unclear];
const SEEN: [Seen; 14] = [
    Seen::Unknown,
    Seen::Pending,
    Seen::Declined,
    Seen::Abandoned,
    Seen::Expired,
    Seen::Paid,
    Seen::Refunded,
    Seen::GivenBack,
    Seen::Disputed,
    Seen::OtherSum,
    Seen::OtherSumGivenBack,
    Seen::OtherCurrency,
    Seen::OtherReference,
    Seen::NoSum,
];

pub fn events() -> Vec<Event> {
    use Event as E;
    let mut all = vec![
        E::Again,
        E::Look,
        E::Settle,
        E::ByHand,
        E::Due,
        E::Remove,
        E::Priced,
        E::BuiltInPart,
        E::Built,
        E::Opened,
        E::OpenedBefore,
        E::Settled,
        E::NotYet,
        E::Alarmed,
        E::Cancelled,
        E::Closed,
    ];
    all.extend(SEEN.map(E::Looked));
    for not in NOT {
        let of = [E::NotPriced, E::NotBuilt, E::NotOpened, E::NotLooked, E::NotSettled];
        all.extend(of.map(|event| event(not)));
    }
    all
}

/// The effect whose outcome it is. An outcome is possible only while its effect is pending.
pub fn effect(event: Event) -> Option<Effect> {
    use Event as E;
    Some(match event {
        E::Again | E::Look | E::Settle | E::ByHand | E::Due | E::Remove => return None,
        E::Priced | E::NotPriced(_) => Effect::Price,
        E::BuiltInPart | E::Built | E::NotBuilt(_) => Effect::Build,
        E::Opened | E::OpenedBefore | E::NotOpened(_) => Effect::Open,
        E::Looked(_) | E::NotLooked(_) => Effect::Look,
        E::Settled | E::NotYet | E::NotSettled(_) => Effect::Settle,
        E::Alarmed => Effect::Alarm,
        E::Cancelled => Effect::Cancel,
        E::Closed => Effect::Close,
    })
}

pub fn input(event: Event, state: &State) -> Input<Checkouts> {
    use Event as E;
    let progress = || commerce::OrderProgress { order: Some("1".into()) };
    let opened = |url: Option<&str>| PaymentPage {
        session: Some("cs_1".into()),
        url: url.map(|url| url.parse().unwrap()),
        access_code: None,
        expires_at: None,
    };
    let outcome = match event {
        E::Again => return Input::Command(Command::Again),
        E::Look => return Input::Command(Command::Look),
        E::Settle => return Input::Command(Command::Settle),
        E::ByHand => {
            let what = "sent by post".parse().unwrap();
            return Input::Command(Command::SettledByHand(what));
        }
        E::Due => return Input::Due,
        E::Remove => return Input::Command(Command::Remove),
        E::Priced => {
            let code = "PLN_gold".parse().unwrap();
            Outcome::Priced(Ok(SubscriptionPlan { code, name: "Gold".into(), price: eur(1000) }))
        }
        E::NotPriced(not) => Outcome::Priced(Err(not.error())),
        E::BuiltInPart => Outcome::Built(Ok((progress(), None))),
        E::Built => {
            let built = commerce::Built {
                id: "1".into(),
                code: "T1".into(),
                total: eur(1000),
                summary: vec![],
            };
            Outcome::Built(Ok((progress(), Some(built))))
        }
        E::NotBuilt(not) => Outcome::Built(Err(not.error())),
        E::Opened => Outcome::Opened(Ok(opened(Some("https://pay.example.com/1"))), None),
        E::OpenedBefore => Outcome::Opened(Ok(opened(None)), None),
        E::NotOpened(not) => Outcome::Opened(Err(not.error()), None),
        E::Looked(seen) => Outcome::Looked(Box::new(Ok(seen.payment()))),
        E::NotLooked(not) => Outcome::Looked(Box::new(Err(not.error()))),
        E::Settled => Outcome::Settled(Ok(match state.ordered.price {
            Price::Plan { .. } => Settlement::Subscription(Id::of(Ulid(9))),
            Price::Shop { plan: Some(_), .. } if state.order_paid => {
                Settlement::Subscription(Id::of(Ulid(9)))
            }
            Price::Lines { .. } | Price::Shop { .. } => Settlement::Order,
        })),
        E::NotYet => Outcome::Settled(Ok(Settlement::NotYet)),
        E::NotSettled(not) => Outcome::Settled(Err(not.error())),
        E::Alarmed => Outcome::Alarmed,
        E::Cancelled => Outcome::Cancelled,
        E::Closed => Outcome::Closed,
    };
    Input::Outcome(outcome)
}
