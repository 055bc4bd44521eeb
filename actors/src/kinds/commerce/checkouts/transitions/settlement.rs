//! Money that arrived is settled: the order is marked as paid in the shop, or the subscription is found.

use super::SHORT;
use crate::{
    kinds::commerce::checkouts::{
        Checkouts, Price, Problem, Settlement, SettlementAttempt, State,
        schedule::{QUIET, is_alarming, pause},
    },
    runtime::resource::{Moment, Step},
};
use CheckoutState as S;
use contract::{Timestamp, checkouts::CheckoutState};
use payments::RemoteError;
use std::time::Duration;

impl State {
    pub(super) fn paid(mut self, now: Timestamp) -> Step<Checkouts> {
        (self.problem, self.attempts) = (None, 0);
        (self.alarmed, self.alarming) = (false, false);
        self.state = S::Paid;
        match self.ordered.price {
            Price::Lines { .. } => self.settled(now),
            Price::Plan { .. } | Price::Shop { .. } => self.settle(now),
        }
    }

    /// Begins an attempt to settle, unless one is under way or may be.
    pub(super) fn settle(self, now: Timestamp) -> Step<Checkouts> {
        match self.attempt {
            None => self.settle_at(None),
            Some(SettlementAttempt::Begun) => Step::put(self),
            Some(SettlementAttempt::Unanswered(at)) => self.settle_at(Some((at + QUIET).max(now))),
        }
    }

    fn settle_at(mut self, due: Option<Timestamp>) -> Step<Checkouts> {
        (self.attempt, self.due) = (Some(SettlementAttempt::Begun), due);
        Step::put(self)
    }

    pub(super) fn tried_to_settle(
        mut self,
        at: &Moment<Checkouts>,
        settled: Result<Settlement, RemoteError>,
    ) -> Step<Checkouts> {
        let now = at.now;
        self.attempt = None;
        let (text, is_refused, after) = match settled {
            Ok(Settlement::Order) => {
                let was_order = self.pays_order();
                self.order_paid = was_order;
                // What a plan pays for the first time is settled when its subscription is known.
                return match self.ordered.price.plan() {
                    Some(_) if was_order => {
                        (self.state, self.problem, self.attempts) = (S::Settling, None, 0);
                        self.settle(now)
                    }
                    _ => self.settled(now),
                };
            }
            Ok(Settlement::Subscription(id)) => {
                self.subscription = Some(id);
                return self.settled(now);
            }
            Ok(Settlement::NotYet) => {
                ("the provider has not made the subscription yet".to_owned(), false, Duration::ZERO)
            }
            Err(RemoteError::Refused(why)) => (why, true, SHORT),
            Err(RemoteError::Busy { why, after }) => (why, false, after),
            Err(RemoteError::Unclear(why)) if self.pays_order() => {
                self.attempt = Some(SettlementAttempt::Unanswered(now));
                (why, false, QUIET)
            }
            Err(RemoteError::Unclear(why)) => (why, false, Duration::ZERO),
        };
        self.attempts = self.attempts.saturating_add(1);
        self.state = S::Settling;
        self.problem = Some(Problem { text, unreachable: !is_refused, lost: false });
        let pause = pause(at.id, self.attempts, after);
        let paid_at = self.payment.as_ref().and_then(|payment| payment.paid_at);
        let is_alarming = is_alarming(paid_at.unwrap_or(self.begun_at), now, is_refused);
        self.alarming = is_alarming && !self.alarmed;
        if pause <= SHORT && !is_alarming && !self.alarmed {
            return self.settle_at(Some(now + pause));
        }
        self.due = Some(now + pause);
        Step::put(self)
    }

    /// Everything is done.
    pub(super) fn settled(mut self, now: Timestamp) -> Step<Checkouts> {
        (self.state, self.problem, self.due) = (S::Settled, None, None);
        (self.attempt, self.attempts, self.settled_at) = (None, 0, Some(now));
        match self.looking {
            true => Step::put(self),
            false => self.rest(),
        }
    }
}
