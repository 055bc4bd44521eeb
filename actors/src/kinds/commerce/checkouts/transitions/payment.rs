//! What the provider says of the payment.

use super::SHORT;
use crate::{
    kinds::commerce::checkouts::{
        Checkouts, Problem, SettlementAttempt, State,
        schedule::{may_still_pay, next_look, pause_of_looks},
    },
    runtime::resource::{Moment, Step},
};
use CheckoutState as S;
use contract::{
    Timestamp,
    checkouts::{CheckoutState, Reference},
    money::Money,
};
use payments::{Payment, PaymentStatus, RemoteError};
use std::time::Duration;

impl State {
    /// Somebody asks for a look. What is under way ends first: a look that has begun may have missed
    /// what the present one is asked for.
    pub(super) fn ask(mut self) -> Step<Checkouts> {
        let is_busy = match self.state {
            S::Paid => true,
            S::Settling => !self.alarmed || self.attempt == Some(SettlementAttempt::Begun),
            S::AmountMismatch => !self.alarmed,
            S::Expired => self.building.order.is_some(),
            S::Failed => self.is_given_back() && self.building.order.is_some(),
            _ => false,
        };
        if !self.looking && !is_busy {
            return self.look();
        }
        if self.look_owed {
            return Step::keep();
        }
        self.look_owed = true;
        Step::put(self)
    }

    pub(super) fn look(mut self) -> Step<Checkouts> {
        (self.looking, self.look_owed, self.due) = (true, false, None);
        Step::put(self)
    }

    /// Nothing else is left to do, unless an order is to be cancelled: then a look that was asked for
    /// follows.
    pub(super) fn rest(self) -> Step<Checkouts> {
        match self.look_owed && !self.is_to_be_cancelled() {
            true => self.look(),
            false => Step::put(self),
        }
    }

    /// The provider knows the payment.
    pub(super) fn seen(mut self, at: &Moment<Checkouts>, payment: Payment) -> Step<Checkouts> {
        let is_paid = payment.status == PaymentStatus::Paid;
        let status = payment.status.clone();
        let matches = self.matches(Reference(at.id), &payment);
        let was_given_back = self.is_given_back();
        self.remember(payment, matches);
        match self.state {
            S::Settled | S::AmountMismatch => {}
            // Nobody delivers what was given back.
            _ if is_paid && matches && self.is_given_back() => {
                return match self.state {
                    S::Failed if was_given_back => self.payment_noted(),
                    _ => self.given_back(at.now),
                };
            }
            _ => {}
        }
        match self.state {
            // Paid money moves forward only; refunds and disputes are now in the payment.
            S::Paid | S::Settling => return self.settle(at.now),
            S::Settled => return self.payment_noted(),
            S::AmountMismatch if !(is_paid && matches) => return self.payment_noted(),
            _ if is_paid => return if matches { self.paid(at.now) } else { self.mismatched() },
            _ => {}
        }
        if !self.is_open() {
            return self.lose();
        }
        self.problem = None;
        self.state = match status {
            PaymentStatus::Pending | PaymentStatus::Paid => S::AwaitingPayment,
            PaymentStatus::Abandoned if may_still_pay(self.begun_at, at.now) => S::AwaitingPayment,
            PaymentStatus::Abandoned => S::Abandoned,
            PaymentStatus::Failed(why) => {
                self.problem = Some(Problem { text: why, unreachable: false, lost: false });
                S::Failed
            }
            PaymentStatus::Expired => S::Expired,
        };
        self.wait(at.now)
    }

    /// What is known of money that arrived stays, except for refunds and disputes.
    pub(super) fn remember(&mut self, seen: Payment, matches: bool) {
        let is_paid = seen.status == PaymentStatus::Paid;
        let contradicts = match self.state {
            S::Paid | S::Settling | S::Settled => !is_paid || !matches,
            S::AmountMismatch => !is_paid,
            _ => false,
        };
        match &mut self.payment {
            Some(known) if contradicts => {
                known.refunded = known.refunded.max(seen.refunded);
                known.dispute = seen.dispute.or(known.dispute);
            }
            known => *known = Some(seen),
        }
    }

    /// The provider does not know the payment, or gave no answer.
    pub(super) fn not_seen(
        mut self,
        at: &Moment<Checkouts>,
        error: Option<RemoteError>,
    ) -> Step<Checkouts> {
        let now = at.now;
        let Some(error) = error else {
            return match self.state {
                S::Paid | S::Settling => self.settle(now),
                S::Settled | S::AmountMismatch => self.payment_noted(),
                _ if !self.is_open() => self.lose(),
                _ => {
                    self.problem = self.problem.filter(|problem| !problem.unreachable);
                    self.wait(now)
                }
            };
        };
        if matches!(self.state, S::Paid | S::Settling) {
            self.look_owed = true;
            return self.settle(now);
        }
        let (text, after) = match error {
            RemoteError::Refused(why) | RemoteError::Unclear(why) => (why, Duration::ZERO),
            RemoteError::Busy { why, after } => (why, after),
        };
        self.attempts = self.attempts.saturating_add(1);
        let pause = pause_of_looks(at.id, self.attempts, after);
        if !matches!(self.state, S::Settled | S::AmountMismatch) {
            self.problem = Some(Problem { text, unreachable: true, lost: false });
        }
        if self.state == S::Initialized {
            // Whether it was paid must be known before it is given up.
            (self.looking, self.due) = (true, Some(now + pause.min(SHORT)));
            return Step::put(self);
        }
        // The provider may know of money, so it is asked until it answers.
        let again = now + pause;
        self.due = Some(self.next_look(now).map_or(again, |regular| regular.min(again)));
        Step::put(self)
    }

    /// The provider told more of money that arrived.
    pub(super) fn payment_noted(mut self) -> Step<Checkouts> {
        (self.attempts, self.due) = (0, None);
        self.rest()
    }

    /// Nobody has the address of the page, and nobody paid.
    pub(super) fn lose(self) -> Step<Checkouts> {
        self.fail("the answer of the provider with the page was lost; call again".into(), true)
    }

    /// The provider answered, and nobody paid yet.
    pub(super) fn wait(mut self, now: Timestamp) -> Step<Checkouts> {
        (self.attempts, self.due) = (0, self.next_look(now));
        if now > self.expires_at && self.state == S::AwaitingPayment {
            self.state = S::Abandoned;
        }
        self.rest()
    }

    /// When the provider is asked next, if nobody pays and it answers.
    pub(super) fn next_look(&self, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            S::AwaitingPayment | S::Failed | S::Abandoned => next_look(self.begun_at, now),
            _ => None,
        }
    }

    /// Whether this is the payment that was asked for.
    pub(super) fn matches(&self, reference: Reference, payment: &Payment) -> bool {
        payment.reference.as_deref() == Some(reference.to_string().as_str())
            && payment.amount.is_some()
            && payment.amount == self.total
    }

    pub(super) fn given_back(mut self, now: Timestamp) -> Step<Checkouts> {
        // The shop has the payment. Of what it does not deliver then, the service knows nothing.
        if self.order_paid {
            return self.settled(now);
        }
        let text = "the payment was refunded before it was settled".into();
        self.problem = Some(Problem { text, unreachable: false, lost: false });
        (self.state, self.attempt, self.attempts, self.due) = (S::Failed, None, 0, None);
        self.rest()
    }

    pub(super) fn mismatched(mut self) -> Step<Checkouts> {
        let shown = |money: Option<&Money>| money.map_or("nothing".into(), ToString::to_string);
        let paid = self.payment.as_ref().and_then(|payment| payment.amount.as_ref());
        let text = format!(
            "the provider says that {} was paid, and {} was to be paid",
            shown(paid),
            shown(self.total.as_ref())
        );
        self.problem = Some(Problem { text, unreachable: false, lost: false });
        (self.state, self.due) = (S::AmountMismatch, None);
        (self.alarmed, self.alarming) = (false, true);
        Step::put(self)
    }
}
