//! The rules of a certificate: ordered, issued, and ordered again after two thirds of its lifetime. The
//! present one serves until the next one is there. A certificate whose name leads to nothing of this server
//! any more is removed when it would be renewed.

use crate::{
    kinds::world::World,
    ports::{certificate_authority::NotIssued, sealed::Sealed},
    runtime::{
        backoff::Backoff,
        resource::{Moment, Resource, Retry, Step, Work},
    },
};
use contract::{
    CertificateId, Fault, Id, Timestamp,
    certificates::{CertificateState, HostName, ServerCertificate},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use store::Snapshot;

#[derive(Debug, Clone, Copy)]
pub struct Certificates;

/// The pauses after failures. Five fit into an hour, which is what Let's Encrypt allows for one name
/// (<https://letsencrypt.org/docs/rate-limits/>, "Authorization Failures per Identifier per Account").
const AFTER_FAILURES: Backoff =
    Backoff { first: Duration::from_secs(150), longest: Duration::from_secs(4 * 3600) };

/// The shortest pause after the authority said that there were too many requests. Its limits are counted by
/// hours and by weeks.
const AFTER_TOO_MANY: Duration = Duration::from_secs(3600);

/// The shortest pause after a failure if somebody asks for an attempt who does not rule this server.
const BEFORE_ASKED: Duration = Duration::from_secs(15 * 60);

/// The failures after which an order is given up that another attempt could complete. The authority may have
/// forgotten it.
const MOST_WITH_ONE_ORDER: u32 = 3;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub name: HostName,
    pub created_at: Timestamp,
    /// The order under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// The certificate that serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued: Option<Issued>,
    /// How many attempts have failed since the last one that succeeded.
    #[serde(default)]
    pub failures: u32,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<Timestamp>,
    /// When the next attempt begins. `None`: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
}

/// An order at an authority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The authority that has it.
    pub authority: String,
    pub url: String,
    /// The private key that the certificate will have.
    pub key: Sealed,
}

/// A certificate that was issued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// The certificate and those that sign it (PEM).
    pub chain: String,
    /// Its private key (PKCS #8, PEM).
    pub key: Sealed,
    pub valid_from: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct New {
    pub name: HostName,
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Obtain a certificate anew, at once.
    Renew,
    /// The owner of a name says that it leads here now. After a failure, the next attempt begins soon.
    TrySoon,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The next step: an order, or its end.
    Advance,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Ordered(Order),
    Issued(Issued),
    Failed(NotIssued),
    /// The name leads to nothing of this server any more.
    Unneeded,
}

impl Issued {
    /// When the next certificate is ordered. Not at once, also if the clock of this machine is ahead: each one
    /// would be due when it arrives.
    fn renewal(&self, now: Timestamp) -> Timestamp {
        let lifetime = self.expires_at.since(self.valid_from);
        (self.expires_at - lifetime / 3).max(now + lifetime / 12)
    }
}

impl State {
    fn failed(mut self, at: &Moment<Certificates>, why: NotIssued) -> State {
        let pause = AFTER_FAILURES.pause_of(at.id.unique().0, self.failures);
        let pause = match &why {
            NotIssued::Unavailable(_) => pause,
            NotIssued::TooMany(_) => pause.max(AFTER_TOO_MANY),
            NotIssued::Refused(_) => {
                self.order = None;
                pause
            }
            // Another account may succeed at once.
            NotIssued::NoAccount(_) => {
                self.order = None;
                if self.failures == 0 { Duration::ZERO } else { pause }
            }
        };
        self.failures = self.failures.saturating_add(1);
        if self.failures >= MOST_WITH_ONE_ORDER {
            self.order = None;
        }
        (self.error, self.failed_at) = (Some(why.to_string()), Some(at.now));
        self.next_attempt_at = Some(at.now + pause);
        self
    }

    /// What operators see.
    pub fn view(&self, id: CertificateId, now: Timestamp) -> ServerCertificate {
        let is_valid = self.issued.as_ref().is_some_and(|issued| issued.expires_at > now);
        ServerCertificate {
            id,
            host_name: self.name.clone(),
            state: match (is_valid, self.failures) {
                (true, 0) => CertificateState::Valid,
                (true, _) => CertificateState::RenewalFailing,
                (false, 0) => CertificateState::Ordering,
                (false, _) => CertificateState::Failing,
            },
            valid_from: self.issued.as_ref().map(|issued| issued.valid_from),
            expires_at: self.issued.as_ref().map(|issued| issued.expires_at),
            next_attempt_at: self.next_attempt_at.filter(|next| *next > now),
            failures: self.failures,
            error: self.error.clone(),
            created_at: self.created_at,
        }
    }
}

impl Resource for Certificates {
    /// Longer than a step takes with the wait for its turn, which end by themselves.
    const TIME_LIMIT: Duration = Duration::from_secs(450);
    type New = New;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(at: &Moment<Self>, New { name }: New) -> Result<Step<Self>, Fault> {
        Ok(Step::put(State {
            name,
            created_at: at.now,
            order: None,
            issued: None,
            failures: 0,
            error: None,
            failed_at: None,
            next_attempt_at: None,
        }))
    }

    fn on_command(state: State, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        // An attempt under way goes on: the authority counts those that end without their proof.
        let Some(next) = state.next_attempt_at.filter(|next| *next > at.now) else {
            return Ok(Step::keep());
        };
        let failed_at = state.failed_at.filter(|_| state.failures > 0);
        Ok(match (command, failed_at) {
            (Command::Renew, _) => Step::put(State { next_attempt_at: None, order: None, ..state }),
            (Command::TrySoon, None) => Step::keep(),
            (Command::TrySoon, Some(failed_at)) => {
                let soon = (failed_at + BEFORE_ASKED).max(at.now).min(next);
                Step::put(State { next_attempt_at: Some(soon), ..state })
            }
        })
    }

    fn on_outcome(mut state: State, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        match outcome {
            Outcome::Unneeded => return Step::remove(),
            Outcome::Failed(why) => return Step::put(state.failed(at, why)),
            Outcome::Ordered(order) => state.order = Some(order),
            Outcome::Issued(issued) => {
                state.next_attempt_at = Some(issued.renewal(at.now));
                (state.order, state.issued) = (None, Some(issued));
                (state.failures, state.error) = (0, None);
            }
        }
        Step::put(state)
    }

    fn next(state: &State) -> Option<Work<Effect>> {
        Some(Work { at: state.next_attempt_at, ..Work::now(Effect::Advance) })
    }

    fn perform(
        Effect::Advance: Effect,
        id: CertificateId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::advance(id, kept, world))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ports::sealed::Sealer,
        runtime::resource::{Input, Kept, Next, step},
    };
    use ulid::Ulid;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000_000);
    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn at(now: Timestamp) -> Moment<Certificates> {
        Moment { id: Id::of(Ulid(1)), now }
    }

    fn put(kept: Option<&Kept<Certificates>>, now: Timestamp, input: Input<Certificates>) -> State {
        match step(&at(now), kept, input).unwrap().next {
            Next::Put(state) => state,
            other => panic!("{other:?}"),
        }
    }

    fn new() -> Kept<Certificates> {
        let name = "shop.example.com".parse().unwrap();
        Kept::at_rest(put(None, NOW, Input::Create(Box::new(New { name }))))
    }

    fn sealed() -> Sealed {
        Sealer::new([7; 32]).seal("crt_1", "a key").unwrap()
    }

    fn ordered() -> Outcome {
        let (authority, url) = ("https://ca".to_owned(), "https://ca/1".to_owned());
        Outcome::Ordered(Order { authority, url, key: sealed() })
    }

    fn issued() -> Issued {
        let expires_at = NOW + 90 * DAY;
        Issued { chain: "PEM".into(), key: sealed(), valid_from: NOW, expires_at }
    }

    fn begins_at(state: &State) -> Option<Timestamp> {
        Certificates::next(state).and_then(|work| work.at)
    }

    #[test]
    fn a_certificate_is_ordered_issued_and_renewed_after_two_thirds_of_its_lifetime() {
        let state = put(Some(&new()), NOW, Input::Outcome(ordered()));
        assert_eq!((state.order.is_some(), begins_at(&state)), (true, None));
        let kept = Kept::at_rest(state);
        let state = put(Some(&kept), NOW, Input::Outcome(Outcome::Issued(issued())));
        assert_eq!((state.order.is_some(), begins_at(&state)), (false, Some(NOW + 60 * DAY)));
        // The present one serves while the next one is ordered.
        let state = put(Some(&Kept::at_rest(state)), NOW, Input::Command(Command::Renew));
        assert_eq!(begins_at(&state), None);
        let under_way = Kept::at_rest(state.clone());
        let renewed = step(&at(NOW), Some(&under_way), Input::Command(Command::Renew)).unwrap();
        assert_eq!(renewed.next, Next::Keep, "the attempt goes on");
        let state = put(Some(&Kept::at_rest(state)), NOW, Input::Outcome(ordered()));
        assert_eq!(state.issued.map(|it| it.valid_from), Some(NOW));
    }

    #[test]
    fn a_clock_that_is_ahead_orders_no_certificate_at_once() {
        let kept = Kept::at_rest(put(Some(&new()), NOW, Input::Outcome(ordered())));
        let ahead = NOW + 100 * DAY;
        let state = put(Some(&kept), ahead, Input::Outcome(Outcome::Issued(issued())));
        assert!(begins_at(&state).unwrap() > ahead + 7 * DAY);
    }

    #[test]
    fn an_order_survives_what_may_pass_and_not_what_was_refused() {
        let kept = Kept::at_rest(put(Some(&new()), NOW, Input::Outcome(ordered())));
        let after = |why: fn(String) -> NotIssued| {
            let state = put(Some(&kept), NOW, Input::Outcome(Outcome::Failed(why("no".into()))));
            assert_eq!((state.failures, state.error.as_deref()), (1, Some("no")));
            let pause = begins_at(&state).unwrap().since(NOW);
            (state.order.is_some(), pause)
        };
        let (keeps, pause) = after(NotIssued::Unavailable);
        assert!(keeps && pause >= AFTER_FAILURES.first * 4 / 5);
        let (keeps, pause) = after(NotIssued::TooMany);
        assert!(keeps && pause >= AFTER_TOO_MANY);
        assert!(!after(NotIssued::Refused).0);
        // An order that nobody can complete is given up in the end.
        let (mut kept, unavailable) = (kept.clone(), NotIssued::Unavailable("no".into()));
        for _ in 0..MOST_WITH_ONE_ORDER {
            assert!(kept.order.is_some());
            let failed = Input::Outcome(Outcome::Failed(unavailable.clone()));
            kept = Kept::at_rest(put(Some(&kept), NOW, failed));
        }
        assert!(kept.order.is_none());
        assert_eq!(after(NotIssued::NoAccount), (false, Duration::ZERO));
    }

    #[test]
    fn a_name_is_not_tried_six_times_in_an_hour() {
        let mut kept = new();
        let (mut now, mut within_hour) = (NOW, 0);
        for _ in 0..20 {
            let failed = Outcome::Failed(NotIssued::Refused("no".into()));
            let state = put(Some(&kept), now, Input::Outcome(failed));
            within_hour += u32::from(now.since(NOW) < Duration::from_secs(3600));
            now = begins_at(&state).unwrap();
            kept = Kept::at_rest(state);
        }
        assert!((3..=5).contains(&within_hour), "{within_hour} attempts");
        assert_eq!(kept.view(Id::of(Ulid(1)), now).state, CertificateState::Failing);
    }

    #[test]
    fn who_owns_a_name_has_it_tried_again_and_not_too_often() {
        let mut kept = new();
        for _ in 0..10 {
            let failed = Outcome::Failed(NotIssued::Refused("no".into()));
            kept = Kept::at_rest(put(Some(&kept), NOW, Input::Outcome(failed)));
        }
        let asked = |kept: &Kept<Certificates>, now| {
            begins_at(&put(Some(kept), now, Input::Command(Command::TrySoon)))
        };
        assert!(begins_at(&kept).unwrap() > NOW + Duration::from_secs(3 * 3600));
        assert_eq!(asked(&kept, NOW), Some(NOW + BEFORE_ASKED));
        let later = NOW + Duration::from_secs(3600);
        assert_eq!(asked(&kept, later), Some(later));
        // One that is valid waits for its renewal.
        let valid = put(Some(&kept), NOW, Input::Outcome(Outcome::Issued(issued())));
        let valid = Kept::at_rest(valid);
        let step = step(&at(NOW), Some(&valid), Input::Command(Command::TrySoon)).unwrap();
        assert_eq!(step.next, Next::Keep);
    }

    #[test]
    fn a_name_that_leads_to_nothing_any_more_is_removed() {
        let left = step(&at(NOW), Some(&new()), Input::Outcome(Outcome::Unneeded)).unwrap();
        assert_eq!(left.next, Next::Remove);
    }
}
