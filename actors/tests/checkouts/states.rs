//! The state machine of a checkout alone: every sequence of inputs, early and late, and what must
//! hold after each.

use actors::{
    kinds::commerce::checkouts::{
        Checkouts, Command, Effect, New, Ordered, Outcome, Price, RequestId, Settlement,
        SettlementAttempt, State,
    },
    runtime::{
        entries::due,
        resource::{Begins, Input, Kept, Moment, Resource, step},
    },
};
use contract::{
    AppId, CheckoutId, Id, Timestamp,
    checkouts::{CheckoutState as S, Customer, PaymentProvider, Reference},
    money::{Amount, Money},
};
use payments::{DisputeState, Payment, PaymentPage, PaymentStatus, RemoteError, SubscriptionPlan};
use std::{collections::BTreeSet, fmt, time::Duration};
use ulid::Ulid;

const CREATED: Timestamp = Timestamp::from_millis(1_000_000_000_000);
const DAY: Duration = Duration::from_secs(24 * 3600);

pub fn id() -> CheckoutId {
    Id::of(Ulid(7))
}

fn eur(minor: u64) -> Money {
    Money { amount: Amount::new(minor).unwrap(), currency: "EUR".parse().unwrap() }
}

fn lines() -> Price {
    let line = payments::Line { name: "Tea".into(), unit: Amount::new(500).unwrap(), quantity: 2 };
    Price::Lines { lines: vec![line], currency: "EUR".parse().unwrap() }
}

fn plan() -> Price {
    Price::Plan { code: "PLN_gold".parse().unwrap(), expected: Amount::new(1000), currency: None }
}

fn shop(plan: Option<&str>) -> Price {
    let tea = commerce::Variant::Sku("tea".into());
    Price::Shop {
        channel: Id::of(Ulid(5)),
        lines: vec![commerce::Line { variant: tea, quantity: 2 }],
        shipping_address: None,
        shipping_method: None,
        plan: plan.map(|code| code.parse().unwrap()),
    }
}

fn new(price: Price) -> New {
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
enum Seen {
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
    fn payment(self) -> Option<Payment> {
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
enum Not {
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
enum Event {
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

fn events() -> Vec<Event> {
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
fn effect(event: Event) -> Option<Effect> {
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

fn input(event: Event, state: &State) -> Input<Checkouts> {
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

/// A situation, and whether it is four days after the beginning.
#[derive(Clone)]
struct At {
    kept: Kept<Checkouts>,
    late: bool,
}

/// Tells of a step that is wrong.
struct Told<'a> {
    /// With whether it happens late.
    event: Option<(Event, bool)>,
    before: &'a At,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = serde_json::to_string(&self.before.kept).map_err(|_| fmt::Error)?;
        write!(f, "{:?} after {before}", self.event)
    }
}

/// Takes away what makes no new situation.
fn reduce(state: &mut State) {
    // A higher number of attempts makes only longer pauses.
    if state.attempts > 1 {
        state.attempts = 20;
    }
    (state.looked_at, state.settled_at) = (None, None);
    if let Some(problem) = &mut state.problem {
        problem.text.clear();
    }
    state.payment = match state.state {
        S::Settled if state.by_hand.is_some() => None,
        S::Paid | S::Settling | S::Settled => Seen::Paid.payment(),
        S::AmountMismatch if state.is_unsettled() => Seen::OtherSum.payment(),
        S::AmountMismatch => Seen::OtherSumGivenBack.payment(),
        S::Failed if is_given_back(state) => Seen::GivenBack.payment(),
        _ => None,
    };
    if let Some(due) = &mut state.due {
        *due = CREATED;
    }
    if let Some(SettlementAttempt::Unanswered(at)) = &mut state.attempt {
        *at = CREATED;
    }
}

fn moment(late: bool) -> Moment<Checkouts> {
    let age = if late { DAY * 4 } else { Duration::from_secs(10) };
    Moment { id: id(), now: CREATED + age }
}

/// The payment is the one that was asked for.
fn matches(state: &State) -> bool {
    let payment = state.payment.as_ref().filter(|p| p.status == PaymentStatus::Paid);
    payment.is_some_and(|payment| {
        payment.reference == Some(Reference(id()).to_string()) && payment.amount == state.total
    })
}

fn is_given_back(state: &State) -> bool {
    state.payment.as_ref().is_some_and(|payment| {
        payment.amount.as_ref().is_some_and(|paid| payment.refunded >= paid.amount.minor())
    })
}

fn has_money(state: &State) -> bool {
    matches!(state.state, S::Paid | S::Settling | S::Settled)
}

/// The effect that a state asks for, now or later.
fn asked(state: &State) -> Option<Effect> {
    Checkouts::next(state)?.effect
}

/// What holds in every situation.
fn is_sound(At { kept, late }: &At, told: &Told) {
    let (state, pending) = (&kept.state, asked(&kept.state));
    let is_open = state.is_open();
    assert_eq!(state.looking, pending == Some(Effect::Look), "looking: {told}");
    let is_settling = state.attempt == Some(SettlementAttempt::Begun);
    assert_eq!(is_settling, pending == Some(Effect::Settle), "settling: {told}");
    if state.deleting {
        let is_told = state.is_unsettled() && pending == Some(Effect::Alarm);
        assert!(is_told || (pending == Some(Effect::Close) && state.due.is_some()), "{told}");
        return;
    }
    match pending {
        Some(Effect::Price | Effect::Build) => assert!(!is_open, "{told}"),
        Some(Effect::Open) => {
            assert!(!is_open, "no second page: {told}");
            assert!(state.state == S::Initialized && state.total.is_some(), "{told}");
        }
        Some(Effect::Settle) => {
            assert!(matches(state), "only what was paid is settled: {told}");
            assert!(matches!(state.state, S::Paid | S::Settling), "{told}");
        }
        Some(Effect::Alarm) => {
            assert!(matches!(state.state, S::Settling | S::AmountMismatch), "{told}");
        }
        Some(Effect::Cancel) => {
            assert!(state.building.order.is_some(), "{told}");
            let is_closed = matches!(state.state, S::Failed | S::Expired);
            let is_over = !is_open || state.state == S::Expired || is_given_back(state);
            assert!(is_closed && is_over, "{told}");
        }
        Some(Effect::Close) => panic!("only what is deleted is closed: {told}"),
        Some(Effect::Look) => {}
        None => rests(state, *late, told),
    }
    if has_money(state) && state.by_hand.is_none() {
        assert!(matches(state), "what arrived stays known: {told}");
    }
    let unsettled = match state.state {
        S::Paid | S::Settling => true,
        S::AmountMismatch => !is_given_back(state),
        _ => false,
    };
    assert_eq!(state.is_unsettled(), unsettled, "{told}");
    if state.state == S::AmountMismatch && !state.alarmed {
        assert_eq!(pending, Some(Effect::Alarm), "people hear of it: {told}");
    }
    if state.state == S::Settling && state.alarmed && pending.is_none() {
        assert!(state.due.is_some(), "it is tried for ever: {told}");
    }
    let is_lost = state.problem.as_ref().is_some_and(|problem| problem.lost);
    assert!(!is_lost || (state.state == S::Failed && !is_open), "{told}");
    assert_eq!(Checkouts::claims(state).is_empty(), is_lost, "the request id: {told}");
    let is_unreachable = state.problem.as_ref().is_some_and(|problem| problem.unreachable);
    if is_unreachable && state.state != S::Failed {
        assert!(pending.is_some() || state.due.is_some(), "it is tried again: {told}");
    }
    if state.is_final() {
        assert!(!unsettled, "its channel stays: {told}");
        assert!(*late || !matches!(state.state, S::AwaitingPayment | S::Abandoned), "{told}");
    }
}

/// Nothing is under way: either the time of the next step is known, or nothing is left to do.
fn rests(state: &State, late: bool, told: &Told) {
    assert!(!state.look_owed || state.due.is_some(), "a look that was asked for: {told}");
    if state.due.is_some() {
        return;
    }
    match state.state {
        S::Settled | S::Expired => {}
        S::AmountMismatch => assert!(state.alarmed, "{told}"),
        S::Failed if !state.is_open() => assert!(state.problem.is_some(), "{told}"),
        // After three days, only a notice or a caller asks again.
        S::Failed | S::Abandoned => assert!(late || is_given_back(state), "{told}"),
        S::AwaitingPayment => panic!("after its time it is abandoned: {told}"),
        other => panic!("it stands still as {other:?}: {told}"),
    }
}

/// What holds for each step.
fn goes_on(before: &At, event: Event, after: Option<&At>, told: &Told) {
    let was = &before.kept.state;
    let Some(At { kept, .. }) = after else {
        let is_removed = matches!(event, Event::Remove | Event::Closed | Event::Alarmed)
            || (event == Event::Due && was.deleting);
        assert!(is_removed, "only what is deleted goes: {told}");
        return;
    };
    let state = &kept.state;
    if state.deleting {
        return;
    }
    assert!(!was.deleting, "what is deleted does not come back: {told}");
    let allowed: &[S] = match was.state {
        S::Paid | S::Settling => &[S::Paid, S::Settling, S::Settled],
        S::Settled => &[S::Settled],
        S::AmountMismatch => &[S::AmountMismatch, S::Paid, S::Settling, S::Settled],
        _ => &[],
    };
    let is_allowed = allowed.is_empty() || allowed.contains(&state.state);
    let is_refunded = was.state != S::Settled && state.state == S::Failed && is_given_back(state);
    assert!(is_allowed || is_refunded, "money goes forward, or back to the buyer: {told}");
    assert!(!was.is_open() || state.opened == was.opened, "the page stays: {told}");
    if let Event::Looked(seen) = event {
        let given_back = seen.payment().map_or(0, |payment| payment.refunded);
        let known = state.payment.as_ref().map_or(0, |payment| payment.refunded);
        assert!(known >= given_back, "refunds are recorded: {told}");
        if seen == Seen::Disputed {
            let dispute = state.payment.as_ref().and_then(|payment| payment.dispute);
            assert_eq!(dispute, Some(DisputeState::Open), "{told}");
        }
        if seen.payment().is_some_and(|payment| payment.status == PaymentStatus::Paid) {
            let is_known = has_money(state) || state.state == S::AmountMismatch;
            assert!(is_known || is_given_back(state), "{told}");
        }
    }
    if event == Event::Look && (was.is_open() || was.is_unsettled() || was.state == S::Settled) {
        assert!(state.looking || state.look_owed, "a notice is heard: {told}");
    }
    let is_replaced = asked(was) != asked(state);
    if is_replaced && effect(event).is_none() {
        let lost = match asked(was) {
            Some(Effect::Cancel) => state.state != S::Paid && state.building.order.is_some(),
            Some(Effect::Alarm) => state.state == S::AmountMismatch,
            Some(Effect::Look) => event != Event::Remove,
            _ => false,
        };
        assert!(!lost, "what is under way is not given up: {told}");
    }
    if matches!(event, Event::NotLooked(_)) && was.state != S::Failed && asked(state).is_none() {
        assert!(state.due.is_some(), "a look without an answer is repeated: {told}");
    }
}

fn explore(price: Price) -> BTreeSet<String> {
    let created = step::<Checkouts>(
        &Moment { id: id(), now: CREATED },
        None,
        Input::Create(Box::new(new(price))),
    );
    let first = At { kept: created.unwrap().apply(None).unwrap().unwrap(), late: false };
    is_sound(&first, &Told { event: None, before: &first });
    let (mut seen, mut states) = (BTreeSet::new(), BTreeSet::new());
    let mut open = vec![first];
    let events = events();
    while let Some(before) = open.pop() {
        states.insert(format!("{:?}", before.kept.state.state));
        let happens = events.iter().filter(|event| {
            effect(**event).is_none_or(|effect| asked(&before.kept.state) == Some(effect))
        });
        for event in happens {
            // It may become late, and never early again.
            for late in [false, true].into_iter().filter(|late| *late || !before.late) {
                let state = &before.kept.state;
                let is_due = || due(&before.kept).is_some_and(|due| due <= moment(late).now);
                if *event == Event::Due && !is_due() {
                    continue;
                }
                let told = Told { event: Some((*event, late)), before: &before };
                let taken = step(&moment(late), Some(&before.kept), input(*event, state));
                let Ok(taken) = taken else { continue };
                if asked(state) == Some(Effect::Settle)
                    && effect(*event).is_none()
                    && *event != Event::Remove
                {
                    assert_eq!(taken.begins, Begins::GoesOn, "no second one at a time: {told}");
                }
                let Some(kept) = taken.apply(Some(&before.kept)).unwrap() else {
                    goes_on(&before, *event, None, &told);
                    continue;
                };
                let mut after = At { kept, late };
                goes_on(&before, *event, Some(&after), &told);
                is_sound(&after, &told);
                reduce(&mut after.kept.state);
                let known = (serde_json::to_string(&after.kept).unwrap(), after.late);
                if seen.insert(known) {
                    open.push(after);
                }
            }
        }
    }
    states
}

const ALWAYS: [&str; 8] = [
    "Abandoned",
    "AmountMismatch",
    "AwaitingPayment",
    "Expired",
    "Failed",
    "Initialized",
    "Settled",
    "Settling",
];

/// The states that were reached, besides those that every checkout can reach.
fn others(price: Price) -> Vec<String> {
    let mut states = explore(price);
    for state in ALWAYS {
        assert!(states.remove(state) || state == "Settling", "{state}");
    }
    states.into_iter().collect()
}

#[test]
fn every_situation_of_a_payment_of_lines_is_sound() {
    assert!(others(lines()).is_empty(), "lines are settled when they are paid");
}

#[test]
fn every_situation_of_a_payment_of_a_plan_is_sound() {
    assert_eq!(others(plan()), ["Created", "Paid"]);
}

#[test]
fn every_situation_of_a_payment_in_a_shop_is_sound() {
    assert_eq!(others(shop(None)), ["OrderBuilding", "Paid"]);
}

#[test]
fn every_situation_of_a_plan_in_a_shop_is_sound() {
    assert_eq!(others(shop(Some("PLN_gold"))), ["OrderBuilding", "Paid"]);
}
