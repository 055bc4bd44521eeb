//! The transitions of a checkout. Pure.

use super::{
    Attempt, Checkouts, Command, Effect, New, Outcome, Price, Problem, Settlement, ShopOrder,
    State,
    schedule::{
        BEGINS_WITHIN, PAYABLE, QUIET, is_alarming, may_still_pay, next_look, pause, pause_of_looks,
    },
};
use crate::{
    call::audit::Event,
    runtime::resource::{Intent, Moment, Step},
};
use CheckoutState as S;
use commerce::{Built, BuiltLine};
use contract::{
    Fault, Timestamp,
    checkouts::{CheckoutState, Reference},
    money::{Amount, Money},
};
use payments::{Line, Opened, Payment, PaymentStatus, Plan, RemoteError};
use std::time::Duration;
use store::Change;

/// A pause up to this is waited in memory. A longer one is left to the sweeper.
const SHORT: Duration = Duration::from_secs(60);

impl State {
    pub(super) fn begin(now: Timestamp, new: New) -> Step<Checkouts> {
        let New { app_id, provider, ordered, request } = new;
        State {
            app_id,
            provider,
            ordered,
            request,
            state: S::Created,
            total: None,
            lines: Vec::new(),
            building: commerce::Progress::default(),
            order: None,
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
            deleting: false,
            settled_at: None,
            by_hand: None,
            created_at: now,
            expires_at: now + PAYABLE,
        }
        .start(now)
    }

    /// The first step: the price.
    fn start(mut self, now: Timestamp) -> Step<Checkouts> {
        (self.attempts, self.begun_at, self.expires_at) = (0, now, now + PAYABLE);
        (self.problem, self.due) = (None, None);
        let effect = match self.ordered.price.clone() {
            Price::Lines { lines, currency } => {
                // The handler refused a sum that is not an amount.
                let sum = lines.iter().map(|line| line.unit.minor() * u64::from(line.quantity));
                let Some(amount) = Amount::new(sum.sum()) else {
                    return self.fail("the sum of the lines is not an amount".into(), false);
                };
                return self.open(Money { amount, currency }, lines);
            }
            Price::Plan { .. } => {
                self.state = S::Created;
                Effect::Price
            }
            Price::Shop { .. } => {
                self.state = S::OrderBuilding;
                Effect::Build
            }
        };
        Step::put(self).intend(Intent::Now(effect))
    }

    fn open(mut self, total: Money, lines: Vec<Line>) -> Step<Checkouts> {
        (self.total, self.lines) = (Some(total), lines);
        (self.state, self.attempts, self.problem) = (S::Initialized, 0, None);
        Step::put(self).intend(Intent::Now(Effect::Open))
    }

    pub(super) fn on_command(
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
            (S::Created | S::OrderBuilding | S::Initialized, Command::Look | Command::Due) => {
                Ok(Step::keep())
            }
            (S::Failed, Command::Look | Command::Due) if !self.is_open() => {
                self.due = None;
                Ok(Step::put(self))
            }
            // What the look finds is settled.
            (S::Paid | S::Settling, Command::Due | Command::Settle)
                if self.looking || self.attempt == Some(Attempt::Begun) =>
            {
                Ok(Step::keep())
            }
            (S::Settling, Command::Due) if self.look_owed => Ok(self.look()),
            (S::Paid | S::Settling, Command::Due | Command::Settle) => Ok(self.settle(now)),
            (_, Command::Look | Command::Due) => Ok(self.ask()),
            (_, Command::SettledByHand(_)) if self.attempt == Some(Attempt::Begun) => {
                Err(Fault::NotNow("this checkout is being settled; call again in a minute".into()))
            }
            (_, Command::SettledByHand(what)) if self.is_unsettled() => {
                self.by_hand = Some(what);
                Ok(self.settled(now))
            }
            (S::Settled, Command::Settle | Command::SettledByHand(_)) => {
                Err(Fault::NotNow("this checkout is settled already".into()))
            }
            (S::AmountMismatch, Command::Settle) => Err(Fault::NotNow(
                "what was paid for this checkout is not what was to be paid; give the money back \
                 at the provider, or settle it yourself and say so with byHand"
                    .into(),
            )),
            (_, Command::Settle | Command::SettledByHand(_)) => {
                Err(Fault::NotNow("this checkout is not paid".into()))
            }
        }
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

    /// Somebody asks for a look. What is under way ends first: a look that has begun may have missed
    /// what the present one is asked for.
    fn ask(mut self) -> Step<Checkouts> {
        let is_busy = match self.state {
            S::Paid => true,
            S::Settling => !self.alarmed || self.due.is_none(),
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

    fn look(mut self) -> Step<Checkouts> {
        (self.looking, self.look_owed, self.due) = (true, false, None);
        Step::put(self).intend(Intent::Now(Effect::Look))
    }

    /// Nothing else is left to do.
    fn rest(self) -> Step<Checkouts> {
        match self.look_owed {
            true => self.look(),
            false => Step::put(self).intend(Intent::None),
        }
    }

    /// Begins an attempt to settle, unless one is under way or may be.
    fn settle(self, now: Timestamp) -> Step<Checkouts> {
        match self.attempt {
            None => self.settle_after(Duration::ZERO),
            Some(Attempt::Begun) => Step::put(self),
            Some(Attempt::Unanswered(at)) => self.settle_after((at + QUIET).since(now)),
        }
    }

    fn settle_after(mut self, pause: Duration) -> Step<Checkouts> {
        (self.attempt, self.due) = (Some(Attempt::Begun), None);
        Step::put(self).intend(Intent::After(pause, Effect::Settle))
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
            return Step::put(self).intend(Intent::Now(Effect::Alarm));
        }
        let is_payable = matches!(self.state, S::AwaitingPayment | S::Failed | S::Abandoned);
        if !is_payable || !self.is_open() || now >= self.expires_at {
            return Step::remove();
        }
        (self.deleting, self.due) = (true, Some(self.expires_at));
        (self.looking, self.look_owed) = (false, false);
        Step::put(self).intend(Intent::Now(Effect::Close))
    }

    pub(super) fn on_outcome(
        mut self,
        at: &Moment<Checkouts>,
        outcome: Outcome,
    ) -> Step<Checkouts> {
        let now = at.now;
        match outcome {
            Outcome::Priced(Ok(plan)) => self.priced(plan),
            Outcome::Built(Ok((progress, None))) => {
                (self.building, self.attempts) = (progress, 0);
                Step::put(self).intend(Intent::Now(Effect::Build))
            }
            Outcome::Built(Ok((progress, Some(built)))) => {
                self.building = progress;
                self.built(built)
            }
            Outcome::Opened(Ok(opened), used) => self.opened(now, opened).also(told(used)),
            Outcome::Priced(Err(error)) => self.not_begun(now, Effect::Price, error),
            Outcome::Built(Err(error)) => self.not_begun(now, Effect::Build, error),
            Outcome::Opened(Err(error), used) => {
                self.not_begun(now, Effect::Open, error).also(told(used))
            }
            Outcome::Looked(looked) => {
                (self.looking, self.looked_at) = (false, Some(now));
                match *looked {
                    Ok(Some(payment)) => self.seen(at, payment),
                    Ok(None) => self.not_seen(now, None),
                    Err(error) => self.not_seen(now, Some(error)),
                }
            }
            Outcome::Settled(settled) => self.tried_to_settle(now, settled),
            Outcome::Alarmed if self.deleting => Step::remove(),
            Outcome::Alarmed => {
                self.alarmed = true;
                self.rest()
            }
            Outcome::Cancelled => {
                self.building = commerce::Progress::default();
                self.rest()
            }
            Outcome::Closed => Step::remove(),
        }
    }

    fn priced(self, plan: Plan) -> Step<Checkouts> {
        if let Price::Plan { expected: Some(expected), .. } = &self.ordered.price
            && *expected != plan.price.amount
        {
            let currency = plan.price.currency.clone();
            let expected = Money { amount: *expected, currency };
            return self.fail(format!("the plan costs {}, not {expected}", plan.price), false);
        }
        let line = Line { name: plan.name, unit: plan.price.amount, quantity: 1 };
        self.open(plan.price, vec![line])
    }

    fn built(mut self, built: Built) -> Step<Checkouts> {
        let lines = lines_of(&built);
        self.order = Some(ShopOrder { id: built.id, code: built.code });
        self.open(built.total, lines)
    }

    fn opened(mut self, now: Timestamp, opened: Opened) -> Step<Checkouts> {
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
        Step::put(self).intend(Intent::None)
    }

    /// A step before the payment failed. While nobody has a page to pay on, nothing can be paid.
    fn not_begun(mut self, now: Timestamp, effect: Effect, error: RemoteError) -> Step<Checkouts> {
        let (why, after) = match error {
            RemoteError::Refused(why) => return self.fail(why, false),
            RemoteError::Busy { why, after } => (why, after),
            RemoteError::Unclear(why) => (why, Duration::ZERO),
        };
        self.attempts = self.attempts.saturating_add(1);
        // A service that asks for a longer pause than the caller waits is asked after the pause.
        let pause = pause(self.attempts, after.min(SHORT));
        if now.since(self.begun_at) + pause >= BEGINS_WITHIN {
            return self.fail(why, true);
        }
        self.problem = Some(Problem { text: why, unreachable: true, lost: false });
        Step::put(self).intend(Intent::After(pause, effect))
    }

    fn fail(mut self, text: String, unreachable: bool) -> Step<Checkouts> {
        let lost = self.opened.is_some() && !self.is_open();
        self.problem = Some(Problem { text, unreachable, lost });
        (self.state, self.due) = (S::Failed, None);
        let cancel = self.cancel();
        Step::put(self).intend(cancel)
    }

    fn given_back(mut self) -> Step<Checkouts> {
        let text = "the payment was refunded before it was settled".into();
        self.problem = Some(Problem { text, unreachable: false, lost: false });
        (self.state, self.attempt, self.attempts, self.due) = (S::Failed, None, 0, None);
        match self.cancel() {
            Intent::None => self.rest(),
            cancel => Step::put(self).intend(cancel),
        }
    }

    /// The order in the shop that nobody pays is cancelled.
    fn cancel(&self) -> Intent<Effect> {
        match self.building.order {
            Some(_) => Intent::Now(Effect::Cancel),
            None => Intent::None,
        }
    }

    /// The provider knows the payment.
    fn seen(mut self, at: &Moment<Checkouts>, payment: Payment) -> Step<Checkouts> {
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
                    S::Failed if was_given_back => self.told(),
                    _ => self.given_back(),
                };
            }
            _ => {}
        }
        match self.state {
            // Paid money moves forward only; refunds and disputes are now in the payment.
            S::Paid | S::Settling => return self.settle(at.now),
            S::Settled => return self.told(),
            S::AmountMismatch if !(is_paid && matches) => return self.told(),
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
    fn remember(&mut self, seen: Payment, matches: bool) {
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
    fn not_seen(mut self, now: Timestamp, error: Option<RemoteError>) -> Step<Checkouts> {
        let Some(error) = error else {
            return match self.state {
                S::Paid | S::Settling => self.settle(now),
                S::Settled | S::AmountMismatch => self.told(),
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
        let pause = pause_of_looks(self.attempts, after);
        if !matches!(self.state, S::Settled | S::AmountMismatch) {
            self.problem = Some(Problem { text, unreachable: true, lost: false });
        }
        if self.state == S::Initialized {
            // Whether it was paid must be known before it is given up.
            self.looking = true;
            return Step::put(self).intend(Intent::After(pause.min(SHORT), Effect::Look));
        }
        // The provider may know of money, so it is asked until it answers.
        let again = now + pause;
        self.due = Some(self.next_look(now).map_or(again, |regular| regular.min(again)));
        Step::put(self).intend(Intent::None)
    }

    /// The provider told more of money that arrived.
    fn told(mut self) -> Step<Checkouts> {
        (self.attempts, self.due) = (0, None);
        self.rest()
    }

    /// Nobody has the address of the page, and nobody paid.
    fn lose(self) -> Step<Checkouts> {
        self.fail("the answer of the provider with the page was lost; call again".into(), true)
    }

    /// The provider answered, and nobody paid yet.
    fn wait(mut self, now: Timestamp) -> Step<Checkouts> {
        (self.attempts, self.due) = (0, self.next_look(now));
        if now > self.expires_at && self.state == S::AwaitingPayment {
            self.state = S::Abandoned;
        }
        match (self.state, self.cancel()) {
            (S::Expired, cancel @ Intent::Now(_)) => Step::put(self).intend(cancel),
            _ => self.rest(),
        }
    }

    /// When the provider is asked next, if nobody pays and it answers.
    fn next_look(&self, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            S::AwaitingPayment | S::Failed | S::Abandoned => next_look(self.begun_at, now),
            _ => None,
        }
    }

    /// Whether this is the payment that was asked for.
    fn matches(&self, reference: Reference, payment: &Payment) -> bool {
        payment.reference.as_deref() == Some(reference.to_string().as_str())
            && payment.amount.is_some()
            && payment.amount == self.total
    }

    fn paid(mut self, now: Timestamp) -> Step<Checkouts> {
        (self.problem, self.attempts, self.alarmed) = (None, 0, false);
        self.state = S::Paid;
        match self.ordered.price {
            Price::Lines { .. } => self.settled(now),
            Price::Plan { .. } | Price::Shop { .. } => self.settle(now),
        }
    }

    fn mismatched(mut self) -> Step<Checkouts> {
        let told = |money: Option<&Money>| money.map_or("nothing".into(), ToString::to_string);
        let paid = self.payment.as_ref().and_then(|payment| payment.amount.as_ref());
        let text = format!(
            "the provider says that {} was paid, and {} was to be paid",
            told(paid),
            told(self.total.as_ref())
        );
        self.problem = Some(Problem { text, unreachable: false, lost: false });
        (self.state, self.due, self.alarmed) = (S::AmountMismatch, None, false);
        Step::put(self).intend(Intent::Now(Effect::Alarm))
    }

    /// Everything is done.
    fn settled(mut self, now: Timestamp) -> Step<Checkouts> {
        (self.state, self.problem, self.due) = (S::Settled, None, None);
        (self.attempt, self.attempts, self.settled_at) = (None, 0, Some(now));
        match self.looking {
            true => Step::put(self),
            false => self.rest(),
        }
    }

    fn tried_to_settle(
        mut self,
        now: Timestamp,
        settled: Result<Settlement, RemoteError>,
    ) -> Step<Checkouts> {
        self.attempt = None;
        let (text, is_refused, after) = match settled {
            Ok(Settlement::Order) => return self.settled(now),
            Ok(Settlement::Subscription(id)) => {
                self.subscription = Some(id);
                return self.settled(now);
            }
            Ok(Settlement::NotYet) => {
                ("the provider has not made the subscription yet".to_owned(), false, Duration::ZERO)
            }
            Err(RemoteError::Refused(why)) => (why, true, SHORT),
            Err(RemoteError::Busy { why, after }) => (why, false, after),
            Err(RemoteError::Unclear(why)) if self.order.is_some() => {
                self.attempt = Some(Attempt::Unanswered(now));
                (why, false, QUIET)
            }
            Err(RemoteError::Unclear(why)) => (why, false, Duration::ZERO),
        };
        self.attempts = self.attempts.saturating_add(1);
        self.state = S::Settling;
        self.problem = Some(Problem { text, unreachable: !is_refused, lost: false });
        let pause = pause(self.attempts, after);
        let paid_at = self.payment.as_ref().and_then(|payment| payment.paid_at);
        let is_alarming = is_alarming(paid_at.unwrap_or(self.begun_at), now, is_refused);
        if is_alarming && !self.alarmed {
            self.due = Some(now + pause);
            return Step::put(self).intend(Intent::Now(Effect::Alarm));
        }
        if pause <= SHORT && !self.alarmed {
            return self.settle_after(pause);
        }
        self.due = Some(now + pause);
        Step::put(self).intend(Intent::None)
    }
}

/// The use of the credential, for the audit log.
fn told(used: Option<Box<crate::kinds::credentials::Use>>) -> Change {
    match used {
        Some(used) => Change::new().append::<Event>(&used.event.0.id, &used.event),
        None => Change::new(),
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
