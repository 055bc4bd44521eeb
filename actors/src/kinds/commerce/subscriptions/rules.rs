//! The rules of a subscription: the record is what the provider last said.

use crate::{
    kinds::world::World,
    runtime::{
        backoff::Backoff,
        event::Event,
        resource::{Child, Kept, Moment, Resource, Retry, Step, Unique, Work},
    },
};
use contract::{
    AppId, Email, Fault, Id, SubscriptionId, Timestamp,
    checkouts::{PaymentProvider, SubscriptionStatus},
    webhooks::EventType,
};
use data_encoding::HEXLOWER;
use futures_util::future::LocalBoxFuture;
use payments::{RemoteError, Subscription};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{sync::Arc, time::Duration};
use store::{Entries, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Subscriptions;

const HOUR: Duration = Duration::from_secs(3600);
/// The provider is asked at least this often, in case a notice was lost.
const CHECKED_EVERY: Duration = Duration::from_secs(24 * 3600);
/// After the end of a paid period, the renewal is looked for after this time.
const RENEWED_WITHIN: Duration = Duration::from_secs(300);
/// For how long a period that is over still counts while the provider does not say whether it was
/// renewed.
const GRACE: Duration = Duration::from_secs(72 * 3600);
/// A subscription that the provider does not know goes after this time, unless the provider knew it before:
/// anybody with the secret of the app can make up notices.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(24 * 3600);
/// One that the provider does not tell of goes after this time: the key may lack a permission, which a person has
/// to notice and to mend.
const ASKED_WITHIN: Duration = Duration::from_secs(30 * 24 * 3600);
/// The pauses after failed looks.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(30), longest: HOUR };

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub app_id: AppId,
    pub provider: PaymentProvider,
    /// `SUB_…` at Paystack, `sub_…` at Stripe.
    pub provider_id: String,
    /// What the provider said last. `None`: it was not asked yet.
    pub seen: Option<Subscription>,
    pub checked_at: Option<Timestamp>,
    /// Why the last look failed.
    pub problem: Option<String>,
    /// How many looks in a row failed.
    pub attempts: u32,
    /// Whether the provider is being asked.
    pub looking: bool,
    /// Whether it must be asked again: somebody asked for a look after the present one began.
    #[serde(default)]
    pub look_owed: bool,
    /// The address whose account has the tier that is paid here.
    #[serde(default)]
    pub told: Option<Email>,
    /// Whether the account may not have the tier yet that is paid here.
    #[serde(default)]
    pub untold: bool,
    /// When the provider is asked next.
    pub due: Option<Timestamp>,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct New {
    pub app_id: AppId,
    pub provider: PaymentProvider,
    pub provider_id: String,
    /// What the provider said, if it was asked.
    pub seen: Option<Subscription>,
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Ask the provider.
    Look,
    /// The provider said this.
    Seen(Box<Subscription>),
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Ask the provider.
    Look,
    /// Let the account with the e-mail address have the tier that it pays for.
    Tier,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    /// `None`: the provider does not know it.
    Looked(Box<Result<Option<Subscription>, RemoteError>>),
    /// The account with this address has the tier.
    Told(Option<Email>),
}

impl Resource for Subscriptions {
    const INDEX: u16 = 2;
    type New = New;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    const TIME_LIMIT: Duration = Duration::from_secs(60);

    fn create(at: &Moment<Self>, new: New) -> Result<Step<Self>, Fault> {
        let New { app_id, provider, provider_id, seen } = new;
        let state = State {
            app_id,
            provider,
            provider_id,
            seen: None,
            checked_at: None,
            problem: None,
            attempts: 0,
            looking: false,
            look_owed: false,
            told: None,
            untold: false,
            due: None,
            created_at: at.now,
        };
        Ok(match seen {
            Some(seen) => state.seen(at.now, seen),
            None => state.look(),
        })
    }

    fn on_command(state: State, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        Ok(match command {
            Command::Look => state.look(),
            // What is known may be newer than what a checkout found, so the provider is asked.
            Command::Seen(_) if state.seen.is_some() => state.look(),
            Command::Seen(seen) => {
                let look_owed = state.look_owed || state.looking;
                State { look_owed, ..state }.seen(at.now, *seen)
            }
            Command::Remove => Step::remove(),
        })
    }

    fn on_outcome(state: State, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        let (why, after) = match outcome {
            Outcome::Told(email) => return state.notified(email),
            Outcome::Looked(looked) => match *looked {
                Ok(Some(seen)) => return state.seen(at.now, seen),
                Ok(None) if state.is_unconfirmed(at.now, CONFIRMED_WITHIN) => {
                    return Step::remove();
                }
                Err(RemoteError::Refused(_)) if state.is_unconfirmed(at.now, ASKED_WITHIN) => {
                    return Step::remove();
                }
                // A provider does not forget: it is the key that belongs to another account.
                Ok(None) => ("the provider does not know it".to_owned(), Duration::ZERO),
                Err(RemoteError::Refused(why) | RemoteError::Unclear(why)) => (why, Duration::ZERO),
                Err(RemoteError::Busy { why, after }) => (why, after),
            },
        };
        state.not_seen(at, why, after)
    }

    fn index(state: &State) -> Entries<Self> {
        let by_email =
            state.seen.as_ref().map(|seen| SubscriptionIndex::of(state.app_id, &seen.email));
        Entries::default().and_all(by_email)
    }

    /// `Stale`: the caller reads again, and finds the subscription that exists.
    fn claims(state: &State) -> Vec<Unique<Self>> {
        let claim = SubscriptionClaim::of(state.app_id, state.provider, &state.provider_id);
        vec![Unique::new(claim, || Fault::Stale)]
    }

    fn next(state: &State) -> Option<Work<Effect>> {
        match (state.untold, state.looking) {
            (true, _) => Some(Work::now(Effect::Tier)),
            (false, true) => Some(Work::now(Effect::Look)),
            (false, false) => state.due.map(Work::wait),
        }
    }

    fn on_due(state: State, _: &Moment<Self>) -> Step<Self> {
        state.look()
    }

    fn adopt(kept: &mut Kept<Self>, intent: &Value) {
        kept.state.untold = *intent == "Tier";
    }

    fn events(at: &Moment<Self>, before: Option<&State>, after: &State, _: &World) -> Vec<Event> {
        let was = before.map(State::status);
        let failure =
            |state: &State| state.seen.as_ref().and_then(|seen| seen.renewal_failure.clone());
        let kind = match after.status() {
            status if was == Some(status) || (was.is_none() && after.seen.is_none()) => {
                match failure(after) {
                    Some(why) if before.and_then(failure).as_ref() != Some(&why) => {
                        EventType::SubscriptionRenewalFailed
                    }
                    _ => return Vec::new(),
                }
            }
            SubscriptionStatus::Incomplete => return Vec::new(),
            SubscriptionStatus::Active => EventType::SubscriptionActive,
            SubscriptionStatus::Ending => EventType::SubscriptionEnding,
            SubscriptionStatus::PastDue => EventType::SubscriptionRenewalFailed,
            SubscriptionStatus::Ended => EventType::SubscriptionEnded,
        };
        vec![Event::new(kind, after.app_id, &super::view(at.id, after))]
    }

    fn perform(
        effect: Effect,
        _: SubscriptionId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, kept, world))
    }
}

impl State {
    /// A look that has begun may have missed what the present one is asked for.
    fn look(mut self) -> Step<Subscriptions> {
        let begins_later = self.looking && self.untold;
        if begins_later || self.looking && self.look_owed {
            return Step::keep();
        }
        if self.looking {
            self.look_owed = true;
            return Step::put(self);
        }
        (self.looking, self.look_owed, self.due) = (true, false, None);
        Step::put(self)
    }

    fn seen(mut self, now: Timestamp, seen: Subscription) -> Step<Subscriptions> {
        use SubscriptionStatus as S;
        let regular = now + CHECKED_EVERY;
        self.due = match (seen.status, seen.period_end) {
            (S::Ended, _) => None,
            (_, Some(end)) if end > now => Some(regular.min(end + RENEWED_WITHIN)),
            // The renewal is late.
            (_, Some(_)) => Some(now + HOUR),
            (_, None) => Some(regular),
        };
        (self.looking, self.attempts, self.problem) = (false, 0, None);
        (self.checked_at, self.seen, self.untold) = (Some(now), Some(seen), true);
        Step::put(self)
    }

    fn notified(mut self, email: Option<Email>) -> Step<Subscriptions> {
        self.untold = self.seen.as_ref().map(|seen| &seen.email) != email.as_ref();
        self.told = email;
        match self.look_owed && !self.untold && !self.looking {
            true => self.look(),
            false => Step::put(self),
        }
    }

    fn not_seen(
        mut self,
        at: &Moment<Subscriptions>,
        why: String,
        at_least: Duration,
    ) -> Step<Subscriptions> {
        let pause = BACKOFF.pause_of(at.id.unique().0, self.attempts).max(at_least).min(HOUR);
        (self.looking, self.attempts) = (false, self.attempts.saturating_add(1));
        (self.problem, self.due) = (Some(why), Some(at.now + pause));
        // The grace of a period that is over may end.
        self.untold = true;
        Step::put(self)
    }

    /// Whether the provider had this time to confirm the subscription, and never did.
    fn is_unconfirmed(&self, now: Timestamp, within: Duration) -> bool {
        self.seen.is_none() && now.since(self.created_at) >= within
    }

    pub fn status(&self) -> SubscriptionStatus {
        self.seen.as_ref().map_or(SubscriptionStatus::Incomplete, |seen| seen.status)
    }

    /// Whether the buyer may use what was paid for. A period that is over counts until the provider
    /// says whether it was renewed, for three days at most. While the provider tries a failed renewal
    /// again, the buyer may use it too.
    pub fn is_active(&self, now: Timestamp) -> bool {
        let Some(seen) = &self.seen else { return false };
        match self.status() {
            SubscriptionStatus::Incomplete | SubscriptionStatus::Ended => false,
            SubscriptionStatus::Ending => seen.period_end.is_some_and(|end| now < end),
            SubscriptionStatus::Active | SubscriptionStatus::PastDue => {
                seen.period_end.is_none_or(|end| now < end + GRACE)
            }
        }
    }
}

impl Child for Subscriptions {
    fn parent(state: &State) -> Option<AppId> {
        Some(state.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

store::entries! {
    pub enum SubscriptionIndex of Subscriptions {
        /// By the digest of the e-mail address: an address may hold what separates the parts of an
        /// entry.
        Email { app: AppId, email: String } = "email",
    }
}

impl SubscriptionIndex {
    pub fn of(app: AppId, email: &Email) -> Self {
        let email = HEXLOWER.encode(&Sha256::digest(email.key()));
        SubscriptionIndex::Email { app, email }
    }
}

store::claims! {
    pub enum SubscriptionClaim of Subscriptions {
        /// A subscription of the provider has one record in an app.
        Provider { app: AppId, provider: &'static str, id: String } = "provider",
    }
}

impl SubscriptionClaim {
    pub fn of(app: AppId, provider: PaymentProvider, id: &str) -> Self {
        SubscriptionClaim::Provider { app, provider: provider.name(), id: id.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::resource::Next;
    use ulid::Ulid;

    fn at(hours: u32) -> Moment<Subscriptions> {
        Moment { id: Id::of(Ulid(1)), now: Timestamp::from_millis(0) + HOUR * hours }
    }

    /// Whether a subscription is there after this answer of the provider, so many hours after the notice.
    fn stays(seen: Option<Subscription>, hours: u32, answer: Result<(), RemoteError>) -> bool {
        let app_id = Id::of(Ulid(2));
        let new = New { app_id, provider: PaymentProvider::Stripe, provider_id: "s".into(), seen };
        let Next::Put(state) = Subscriptions::create(&at(0), new).unwrap().next else {
            panic!("it is not created")
        };
        let answer = Outcome::Looked(Box::new(answer.map(|()| None)));
        let step = Subscriptions::on_outcome(state, &at(hours), answer);
        !matches!(step.next, Next::Remove)
    }

    #[test]
    fn a_subscription_that_the_provider_never_confirmed_goes_after_a_day() {
        let refused = || Err(RemoteError::Refused("no such key".into()));
        assert!(stays(None, 23, Ok(())) && stays(None, 23, refused()));
        assert!(!stays(None, 24, Ok(())) && stays(None, 24, refused()));
        assert!(!stays(None, 30 * 24, refused()));
        // Without an answer, it may be a real one.
        assert!(stays(None, 24, Err(RemoteError::Unclear("no answer".into()))));
        let confirmed = Subscription {
            id: "s".into(),
            plan: "PLN_a".parse().unwrap(),
            email: "ada@example.com".parse().unwrap(),
            status: SubscriptionStatus::Active,
            period_end: None,
            said: "active".into(),
            renewal_failure: None,
        };
        assert!(stays(Some(confirmed), 24, Ok(())));
    }
}
