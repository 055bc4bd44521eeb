//! From the call to a page on which the buyer can pay.

use super::SHORT;
use crate::{
    kinds::commerce::checkouts::{
        Checkouts, Price, Problem, ShopOrder, State,
        schedule::{BEGINS_WITHIN, PAYABLE, next_look, pause},
    },
    runtime::resource::{Moment, Step},
};
use CheckoutState as S;
use commerce::{Built, BuiltLine};
use contract::{
    Timestamp,
    checkouts::CheckoutState,
    money::{Amount, Money},
};
use payments::{Line, PaymentPage, RemoteError, SubscriptionPlan};
use std::time::Duration;

impl State {
    /// The first step: the price.
    pub(super) fn start(mut self, now: Timestamp) -> Step<Checkouts> {
        (self.attempts, self.begun_at, self.expires_at) = (0, now, now + PAYABLE);
        (self.problem, self.due) = (None, None);
        self.state = match self.ordered.price.clone() {
            Price::Lines { lines, currency } => {
                // The handler refused a sum that is not an amount.
                let sum = lines.iter().map(|line| line.unit.minor() * u64::from(line.quantity));
                let Some(amount) = Amount::new(sum.sum()) else {
                    return self.fail("the sum of the lines is not an amount".into(), false);
                };
                return self.open(Money { amount, currency }, lines);
            }
            Price::Plan { .. } => S::Created,
            Price::Shop { .. } => S::OrderBuilding,
        };
        Step::put(self)
    }

    pub(super) fn open(mut self, total: Money, lines: Vec<Line>) -> Step<Checkouts> {
        (self.total, self.lines) = (Some(total), lines);
        (self.state, self.attempts, self.problem) = (S::Initialized, 0, None);
        self.due = None;
        Step::put(self)
    }

    /// What is to be paid must be the price of the plan.
    pub(super) fn priced(self, plan: SubscriptionPlan) -> Step<Checkouts> {
        let Money { amount, currency } = plan.price.clone();
        let (what, asked) = match &self.ordered.price {
            Price::Plan { expected, currency: named, .. } => {
                let asked = Money {
                    amount: expected.unwrap_or(amount),
                    currency: named.clone().unwrap_or(currency),
                };
                ("", asked)
            }
            Price::Shop { .. } => match &self.total {
                Some(total) => (", and the order in the shop", total.clone()),
                None => return self.fail("the order has no total".into(), false),
            },
            Price::Lines { .. } => return self.fail("this checkout has no plan".into(), false),
        };
        if asked != plan.price {
            let text = match what {
                "" => format!("the plan costs {}, not {asked}", plan.price),
                what => format!("the plan costs {}{what} {asked}: both must be equal", plan.price),
            };
            return self.fail(text, false);
        }
        let line = Line { name: plan.name, unit: plan.price.amount, quantity: 1 };
        self.open(plan.price, vec![line])
    }

    pub(super) fn built(mut self, built: Built) -> Step<Checkouts> {
        let lines = lines_of(&built);
        self.order = Some(ShopOrder { id: built.id, code: built.code });
        if self.ordered.price.plan().is_some() {
            (self.total, self.attempts, self.problem) = (Some(built.total), 0, None);
            self.due = None;
            return Step::put(self);
        }
        self.open(built.total, lines)
    }

    pub(super) fn opened(mut self, now: Timestamp, opened: PaymentPage) -> Step<Checkouts> {
        if opened.url.is_none() {
            // The answer with the address was lost, and the provider does not open a second page.
            self.opened = Some(opened);
            return self.look();
        }
        if let Some(expires_at) = opened.expires_at {
            self.expires_at = expires_at;
        }
        (self.opened, self.attempts, self.problem) = (Some(opened), 0, None);
        (self.state, self.due) = (S::AwaitingPayment, next_look(now, now));
        Step::put(self)
    }

    /// A step before the payment failed. While nobody has a page to pay on, nothing can be paid.
    pub(super) fn not_begun(
        mut self,
        at: &Moment<Checkouts>,
        error: RemoteError,
    ) -> Step<Checkouts> {
        let (why, after) = match error {
            RemoteError::Refused(why) => return self.fail(why, false),
            RemoteError::Busy { why, after } => (why, after),
            RemoteError::Unclear(why) => (why, Duration::ZERO),
        };
        self.attempts = self.attempts.saturating_add(1);
        // A service that asks for a longer pause than the caller waits is asked after the pause.
        let pause = pause(at.id, self.attempts, after.min(SHORT));
        if at.now.since(self.begun_at) + pause >= BEGINS_WITHIN {
            return self.fail(why, true);
        }
        self.problem = Some(Problem { text: why, unreachable: true, lost: false });
        self.due = Some(at.now + pause);
        Step::put(self)
    }

    pub(super) fn fail(mut self, text: String, unreachable: bool) -> Step<Checkouts> {
        let lost = self.opened.is_some() && !self.is_open();
        self.problem = Some(Problem { text, unreachable, lost });
        (self.state, self.due) = (S::Failed, None);
        Step::put(self)
    }
}

/// What the page of the provider shows. Providers know no lines below zero, and no fractions: an
/// order with a discount, or a line that is not a whole number of equal prices, is one line.
fn lines_of(built: &Built) -> Vec<Line> {
    let line = |line: &BuiltLine| {
        let total = u64::try_from(line.total).ok()?;
        let quantity = u64::from(line.quantity);
        let unit = (quantity > 0 && total % quantity == 0).then(|| total / quantity)?;
        Some(Line { name: line.name.clone(), unit: Amount::new(unit)?, quantity: line.quantity })
    };
    let lines: Option<Vec<_>> = built.summary.iter().map(line).collect();
    // Each total fits, their sum may not.
    let sum = |lines: &Vec<Line>| {
        let mut totals = lines.iter().map(|line| line.unit.minor() * u64::from(line.quantity));
        totals.try_fold(0_u64, u64::checked_add)
    };
    lines.filter(|lines| sum(lines) == Some(built.total.amount.minor())).unwrap_or_else(|| {
        let name = format!("Order {}", built.code);
        vec![Line { name, unit: built.total.amount, quantity: 1 }]
    })
}
