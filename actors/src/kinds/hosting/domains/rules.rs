//! The rules of a domain: `pending → verified`, or `failed` when the record was not there for a week. Of the
//! domains with one name, the last that was proven has it; the one before is `taken`.

use crate::{
    kinds::{people::apps::Apps, world::World},
    runtime::{
        backoff::Backoff,
        resource::{Child, Moment, Resource, Retry, Step, Unique, Work},
        uses::Uses,
    },
};
use contract::{
    AppId, DomainId, Fault, Id, Timestamp,
    certificates::{HostName, ServerCertificate},
    domains::{Domain, DomainState},
    instances::Role,
    quotas::Quota,
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use store::Snapshot;

#[derive(Debug, Clone, Copy)]
pub struct Domains;

/// The pauses between two looks. People write the record after they have read its text.
const PAUSES: Backoff =
    Backoff { first: Duration::from_secs(60), longest: Duration::from_secs(3600) };
/// How long the service looks for the record.
const LOOKS_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// What stands before the name, in the name of the record.
const RECORD: &str = "_svc-domain";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub app_id: AppId,
    pub host_name: HostName,
    pub service: Role,
    /// What the record must say.
    pub token: String,
    pub state: DomainState,
    pub created_at: Timestamp,
    /// When the looks began.
    pub looks_since: Timestamp,
    #[serde(default)]
    pub looks: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_look_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A domain to prove.
#[derive(Debug, Clone)]
pub struct New {
    pub app_id: AppId,
    pub host_name: HostName,
    pub service: Role,
    pub token: String,
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Look for the record at once, and then for another week.
    Look,
    /// Another app has proven the name. From now on this token proves it for this app: the record of before
    /// may still be there.
    GiveUp {
        token: String,
    },
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Look,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Proven,
    /// The reason, in words for people.
    NotProven(String),
}

store::claims! {
    pub enum DomainClaim of Domains {
        /// An app has a name once.
        OfApp { app: AppId, name: String } = "ofApp",
        /// One domain of a name is proven.
        Verified { name: String } = "verified",
    }
}

impl State {
    pub fn record_name(&self) -> String {
        format!("{RECORD}.{}", self.host_name)
    }

    pub fn record_text(&self) -> String {
        format!("svc-domain={}", self.token)
    }

    /// What requests to the name go to, as paths name it.
    pub fn target(&self) -> String {
        match self.service {
            Role::Server => self.app_id.to_string(),
            other => format!("{}~{}", self.app_id, other.label()),
        }
    }

    /// What members see, with the certificate of the name.
    pub fn view(&self, id: DomainId, certificate: Option<&ServerCertificate>) -> Domain {
        Domain {
            id,
            app_id: self.app_id,
            host_name: self.host_name.clone(),
            service: self.service,
            state: self.state,
            record_name: self.record_name(),
            record_text: self.record_text(),
            verified_at: self.verified_at,
            error: self.error.clone(),
            certificate_state: certificate.map(|it| it.state),
            certificate_error: certificate.and_then(|it| it.error.clone()),
            next_look_at: self.next_look_at.filter(|_| self.state == DomainState::Pending),
            created_at: self.created_at,
        }
    }
}

impl Resource for Domains {
    type New = New;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(at: &Moment<Self>, new: New) -> Result<Step<Self>, Fault> {
        let New { app_id, host_name, service, token } = new;
        Ok(Step::put(State {
            app_id,
            host_name,
            service,
            token,
            state: DomainState::Pending,
            created_at: at.now,
            looks_since: at.now,
            looks: 0,
            next_look_at: Some(at.now + PAUSES.first),
            verified_at: None,
            error: None,
        }))
    }

    fn on_command(
        mut state: State,
        at: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        match command {
            Command::Remove => return Ok(Step::remove()),
            Command::GiveUp { token } => {
                state.token = token;
                (state.state, state.verified_at) = (DomainState::Taken, None);
                state.error = Some("another app has proven this name since".into());
            }
            Command::Look if state.state == DomainState::Verified => return Ok(Step::keep()),
            Command::Look => {
                state.state = DomainState::Pending;
                (state.looks_since, state.looks, state.next_look_at) = (at.now, 0, None);
            }
        }
        Ok(Step::put(state))
    }

    fn on_outcome(mut state: State, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        match outcome {
            // The outcome of an overtaken look.
            _ if state.state != DomainState::Pending => return Step::keep(),
            Outcome::Proven => {
                (state.state, state.verified_at) = (DomainState::Verified, Some(at.now));
                state.error = None;
            }
            Outcome::NotProven(why) => {
                state.error = Some(why);
                let pause = PAUSES.pause_of(at.id.unique().0, state.looks);
                state.looks = state.looks.saturating_add(1);
                state.next_look_at = Some(at.now + pause);
                if at.now.since(state.looks_since) >= LOOKS_FOR {
                    state.state = DomainState::Failed;
                }
            }
        }
        Step::put(state)
    }

    fn next(state: &State) -> Option<Work<Effect>> {
        let looks = state.state == DomainState::Pending;
        looks.then_some(Work { at: state.next_look_at, ..Work::now(Effect::Look) })
    }

    fn uses(_: &State) -> Uses {
        Uses::one(Quota::Domains)
    }

    fn claims(state: &State) -> Vec<Unique<Self>> {
        let name = || state.host_name.as_str().to_owned();
        let twice = || Fault::Exists("the app has this domain already".into());
        let taken = || Fault::Exists("another app has proven this name".into());
        let of_app = DomainClaim::OfApp { app: state.app_id, name: name() };
        let mut claims = vec![Unique::new(of_app, twice)];
        if state.state == DomainState::Verified {
            claims.push(Unique::new(DomainClaim::Verified { name: name() }, taken));
        }
        claims
    }

    fn perform(
        Effect::Look: Effect,
        id: DomainId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::look(id, kept, world))
    }
}

impl Child for Domains {
    fn parent(state: &State) -> Option<<Apps as store::Record>::Key> {
        Some(state.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::resource::{Input, Kept, Next, step};
    use ulid::Ulid;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000_000_000);

    fn at(now: Timestamp) -> Moment<Domains> {
        Moment { id: Id::of(Ulid(1)), now }
    }

    fn put(kept: Option<&Kept<Domains>>, now: Timestamp, input: Input<Domains>) -> Kept<Domains> {
        match step(&at(now), kept, input).unwrap().next {
            Next::Put(state) => Kept::at_rest(state),
            other => panic!("{other:?}"),
        }
    }

    fn new() -> Kept<Domains> {
        let new = New {
            app_id: Id::of(Ulid(7)),
            host_name: "shop.example.com".parse().unwrap(),
            service: Role::Storefront,
            token: "t0k3n".into(),
        };
        put(None, NOW, Input::Create(Box::new(new)))
    }

    fn claimed(kept: &Kept<Domains>) -> usize {
        <Domains as Resource>::claims(kept).len()
    }

    #[test]
    fn a_proven_name_is_held_until_another_proves_it() {
        let pending = new();
        assert_eq!((claimed(&pending), pending.target().ends_with("~storefront")), (1, true));
        let proven = put(Some(&pending), NOW, Input::Outcome(Outcome::Proven));
        assert_eq!((proven.state.state, claimed(&proven)), (DomainState::Verified, 2));
        assert_eq!(Domains::next(&proven), None);
        let taken =
            put(Some(&proven), NOW, Input::Command(Command::GiveUp { token: "an0ther".into() }));
        assert_eq!((taken.state.state, claimed(&taken)), (DomainState::Taken, 1));
        assert_ne!(taken.record_text(), proven.record_text(), "the old record proves nothing");
        let again = put(Some(&taken), NOW, Input::Command(Command::Look));
        assert_eq!(Domains::next(&again), Some(Work::now(Effect::Look)));
    }

    #[test]
    fn the_record_is_looked_for_with_growing_pauses_for_a_week() {
        let (mut kept, mut now, mut looks) = (new(), NOW, 0);
        while let Some(work) = Domains::next(&kept) {
            now = work.at.unwrap_or(now);
            let missing = Outcome::NotProven("there is no record".into());
            kept = put(Some(&kept), now, Input::Outcome(missing));
            looks += 1;
        }
        assert_eq!(kept.state.state, DomainState::Failed);
        assert!(now.since(NOW) >= LOOKS_FOR && now.since(NOW) < LOOKS_FOR * 2);
        assert!((100..300).contains(&looks), "{looks} looks");
    }
}
