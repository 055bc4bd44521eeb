//! The state machine of a checkout alone: every sequence of inputs, early and late, and what must
//! hold after each.

use super::inputs::{CREATED, Event, Seen, effect, events, id, input, lines, new, plan, shop};
use actors::{
    kinds::commerce::checkouts::{Checkouts, Effect, Price, SettlementAttempt, State},
    runtime::{
        entries::due,
        resource::{Begins, Input, Kept, Moment, Resource, step},
    },
};
use contract::checkouts::{CheckoutState as S, Reference};
use payments::{DisputeState, PaymentStatus};
use std::{collections::BTreeSet, fmt, time::Duration};

const DAY: Duration = Duration::from_secs(24 * 3600);

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
