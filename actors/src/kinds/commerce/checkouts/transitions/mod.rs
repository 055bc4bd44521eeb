//! The transitions of a checkout. Pure.

mod opening;
mod payment;
mod settlement;

use super::{
    Checkouts, Command, Effect, New, Outcome, Price, Problem, SettlementAttempt, State,
    schedule::PAYABLE,
};
use crate::runtime::{
    audit::Event,
    entries::wire_name,
    resource::{Moment, Step, Work},
};
use CheckoutState as S;
use contract::{Fault, Timestamp, checkouts::CheckoutState};
use payments::Payment;
use std::time::Duration;
use store::Change;

/// The longest pause between two attempts that callers wait for.
const SHORT: Duration = Duration::from_secs(60);

impl State {
    pub(in crate::kinds::commerce::checkouts) fn begin(
        now: Timestamp,
        new: New,
    ) -> Step<Checkouts> {
        let New { app_id, provider, ordered, request } = new;
        State {
            app_id,
            provider,
            ordered,
            request,
            state: S::Created,
            total: None,
            lines: Vec::new(),
            building: commerce::OrderProgress::default(),
            order: None,
            order_paid: false,
            opened: None,
            payment: None,
            looked_at: None,
            looking: false,
            look_owed: false,
            attempt: None,
            subscription: None,
            problem: None,
            attempts: 0,
            begun_at: now,
            due: None,
            alarmed: false,
            alarming: false,
            deleting: false,
            settled_at: None,
            by_hand: None,
            created_at: now,
            expires_at: now + PAYABLE,
        }
        .start(now)
    }

    pub(in crate::kinds::commerce::checkouts) fn on_command(
        mut self,
        now: Timestamp,
        command: Command,
    ) -> Result<Step<Checkouts>, Fault> {
        match (self.state, command) {
            (_, Command::Remove) => Ok(self.remove(now)),
            (S::Failed, Command::Again) if self.can_begin_again() => {
                (self.total, self.order, self.lines) = (None, None, Vec::new());
                Ok(self.start(now))
            }
            (_, Command::Again) => Ok(Step::keep()),
            // Nobody has the address of the page yet.
            (S::Created | S::OrderBuilding | S::Initialized, Command::Look) => Ok(Step::keep()),
            (S::Failed, Command::Look) if !self.is_open() => Ok(Step::keep()),
            // What the look finds is settled.
            (S::Paid | S::Settling, Command::Settle)
                if self.looking || self.attempt == Some(SettlementAttempt::Begun) =>
            {
                Ok(Step::keep())
            }
            (S::Paid | S::Settling, Command::Settle) => Ok(self.settle(now)),
            (_, Command::Look) => Ok(self.ask()),
            (_, Command::SettledByHand(_)) if self.attempt == Some(SettlementAttempt::Begun) => {
                Err(Fault::NotNow("this checkout is being settled; call again in a minute".into()))
            }
            (_, Command::SettledByHand(what)) if self.is_unsettled() => {
                self.by_hand = Some(what);
                Ok(self.settled(now))
            }
            (S::Settled, Command::Settle | Command::SettledByHand(_)) => Err(Fault::NotNow(
                "this checkout is settled already; there is nothing to do".into(),
            )),
            (S::AmountMismatch, Command::Settle) => Err(Fault::NotNow(
                "what was paid for this checkout is not what was to be paid; give the money back \
                 at the provider, or settle it yourself and say so with byHand"
                    .into(),
            )),
            (state, Command::Settle | Command::SettledByHand(_)) => Err(Fault::NotNow(format!(
                "this checkout is {}; one that is paid can be settled",
                wire_name(state)
            ))),
        }
    }

    /// The time has come of the next look, or of the next attempt to settle.
    pub(in crate::kinds::commerce::checkouts) fn on_due(self, now: Timestamp) -> Step<Checkouts> {
        match self.state {
            _ if self.deleting => self.remove(now),
            S::Settling if !self.look_owed => self.settle(now),
            _ => self.look(),
        }
    }

    /// The next step, at [`State::due`] if that is set.
    pub(in crate::kinds::commerce::checkouts) fn next(&self) -> Option<Work<Effect>> {
        let is_begun = self.attempt == Some(SettlementAttempt::Begun);
        let effect = match self.state {
            _ if self.deleting && self.is_unsettled() => return Some(Work::now(Effect::Alarm)),
            _ if self.deleting => return Some(Work::now(Effect::Close).until(self.due)),
            _ if self.looking => Effect::Look,
            S::Paid | S::Settling if is_begun => Effect::Settle,
            S::Settling | S::AmountMismatch if self.alarming => {
                return Some(Work::now(Effect::Alarm));
            }
            S::Created => Effect::Price,
            // The order is built. Its plan must have the same price.
            S::OrderBuilding if self.order.is_some() => Effect::Price,
            S::OrderBuilding => Effect::Build,
            S::Initialized => Effect::Open,
            _ if self.is_to_be_cancelled() => Effect::Cancel,
            _ => return self.due.map(Work::wait),
        };
        Some(Work { at: self.due, ..Work::now(effect) })
    }

    /// Whether the shop has an order that nobody pays any more.
    fn is_to_be_cancelled(&self) -> bool {
        let is_over = match self.state {
            S::Expired => true,
            S::Failed => !self.is_open() || self.is_given_back(),
            _ => false,
        };
        is_over && self.building.order.is_some()
    }

    /// People hear of money that is not settled. The page is closed first, so that nobody pays for what
    /// is gone. One that cannot be closed until its time is over is left.
    fn remove(mut self, now: Timestamp) -> Step<Checkouts> {
        if self.is_unsettled() {
            if self.deleting {
                return Step::keep();
            }
            (self.deleting, self.due, self.attempt) = (true, None, None);
            (self.looking, self.look_owed) = (false, false);
            return Step::put(self);
        }
        let is_payable = matches!(self.state, S::AwaitingPayment | S::Failed | S::Abandoned);
        if !is_payable || !self.is_open() || now >= self.expires_at {
            return Step::remove();
        }
        (self.deleting, self.due) = (true, Some(self.expires_at));
        (self.looking, self.look_owed) = (false, false);
        Step::put(self)
    }

    /// Whether the buyer has, or had, a page to pay on.
    pub fn is_open(&self) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.url.is_some())
    }

    /// Whether the same call may try again what failed because nobody answered. The order of the
    /// first attempt is cancelled before another one is built.
    pub fn can_begin_again(&self) -> bool {
        let is_unreachable = |problem: &Problem| problem.unreachable && !problem.lost;
        self.state == S::Failed
            && !self.is_open()
            && self.building.order.is_none()
            && self.problem.as_ref().is_some_and(is_unreachable)
    }

    /// Whether money arrived that is not settled, or does not match and was not given back.
    pub fn is_unsettled(&self) -> bool {
        match self.state {
            S::Paid | S::Settling => true,
            S::AmountMismatch => !self.is_given_back(),
            _ => false,
        }
    }

    /// Whether the next attempt to settle is one at the shop.
    pub fn pays_order(&self) -> bool {
        matches!(self.ordered.price, Price::Shop { .. }) && !self.order_paid
    }

    fn is_given_back(&self) -> bool {
        let payment = self.payment.as_ref();
        payment.is_some_and(|Payment { amount, refunded, .. }| {
            amount.as_ref().is_some_and(|paid| *refunded >= paid.amount.minor())
        })
    }

    /// Whether nothing is left to do, unless the provider changes its mind. Nobody waits for a
    /// payment any more when the regular looks have ended.
    pub fn is_final(&self) -> bool {
        let is_over = self.due.is_none() && !self.looking;
        match self.state {
            S::Settled | S::Expired => true,
            S::AmountMismatch => self.is_given_back(),
            S::Failed => !self.is_open() || is_over,
            S::AwaitingPayment | S::Abandoned => is_over,
            S::Created | S::OrderBuilding | S::Initialized | S::Paid | S::Settling => false,
        }
    }

    pub(in crate::kinds::commerce::checkouts) fn on_outcome(
        mut self,
        at: &Moment<Checkouts>,
        outcome: Outcome,
    ) -> Step<Checkouts> {
        let now = at.now;
        match outcome {
            Outcome::Priced(Ok(plan)) => self.priced(plan),
            Outcome::Built(Ok((progress, None))) => {
                (self.building, self.attempts, self.due) = (progress, 0, None);
                Step::put(self)
            }
            Outcome::Built(Ok((progress, Some(built)))) => {
                self.building = progress;
                self.built(built)
            }
            Outcome::Opened(Ok(opened), used) => self.opened(now, opened).also(use_recorded(used)),
            Outcome::Priced(Err(error)) => self.not_begun(at, error),
            Outcome::Built(Err(error)) => self.not_begun(at, error),
            Outcome::Opened(Err(error), used) => self.not_begun(at, error).also(use_recorded(used)),
            Outcome::Looked(looked) => {
                (self.looking, self.looked_at) = (false, Some(now));
                match *looked {
                    Ok(Some(payment)) => self.seen(at, payment),
                    Ok(None) => self.not_seen(at, None),
                    Err(error) => self.not_seen(at, Some(error)),
                }
            }
            Outcome::Settled(settled) => self.tried_to_settle(at, settled),
            Outcome::Alarmed if self.deleting => Step::remove(),
            Outcome::Alarmed => {
                (self.alarmed, self.alarming) = (true, false);
                self.rest()
            }
            Outcome::Cancelled => {
                self.building = commerce::OrderProgress::default();
                self.rest()
            }
            Outcome::Closed => Step::remove(),
        }
    }
}

/// The use of the credential, for the audit log.
fn use_recorded(used: Option<Box<crate::kinds::delivery::credentials::Use>>) -> Change {
    match used {
        Some(used) => Change::new().append::<Event>(&used.event.0.id, &used.event),
        None => Change::new(),
    }
}
