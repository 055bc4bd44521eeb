//! The rules of a credential: it is replaced, checked, used, and warns before it expires.

use super::expiry::{due_warning, next_warning};
use crate::{
    kinds::world::World,
    ports::sealed::Sealed,
    runtime::{
        event::Event,
        resource::{Child, Kept, Moment, Resource, Retry, Step, Unique, Work},
    },
};
use contract::{
    AppId, CredentialId, Fault, Name, Patch, Timestamp,
    credentials::{AccessCheck, Credential, CredentialKind},
    text::Currency,
    webhooks::EventType,
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use store::{Entries, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Credentials;

/// Uses within this time are noted once.
const NOTED_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What callers see.
    pub credential: Credential,
    /// A [`Secret`](crate::ports::credentials::Secret) as JSON, sealed for the credential's id.
    pub secret: Sealed,
    /// How many days before the expiry somebody was last warned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warned: Option<u32>,
    /// The warning that nobody got yet: how many days before the expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<u32>,
}

/// A credential that was opened and sealed.
#[derive(Debug, Clone)]
pub struct New {
    pub credential: Credential,
    pub secret: Sealed,
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Another file takes the place of this one.
    Replace(Box<New>),
    /// The access was checked with the secret that was stored at this time.
    Checked {
        stored_at: Timestamp,
        check: AccessCheck,
    },
    /// The secret that was stored at this time was used.
    Used {
        stored_at: Timestamp,
    },
    /// The currency of checkouts that name none changes.
    Currency(Patch<Currency>),
    /// The provider told the currency of the account to which the secret belongs that was stored at
    /// this time.
    AccountCurrency {
        stored_at: Timestamp,
        currency: Currency,
    },
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Tell the owner and the admins that the credential expires in this many days.
    Warn(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Warned,
}

impl Resource for Credentials {
    const INDEX: u16 = 3;
    type New = New;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(at: &Moment<Self>, new: New) -> Result<Step<Self>, Fault> {
        Ok(Step::put(State::of(at.now, new)))
    }

    fn on_command(
        mut state: State,
        at: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        Ok(match command {
            Command::Replace(new) => {
                let Credential { created_at, id, currency, .. } = state.credential;
                let mut state = State::of(at.now, *new);
                (state.credential.created_at, state.credential.id) = (created_at, id);
                state.credential.currency = state.credential.currency.or(currency);
                Step::put(state)
            }
            // The answer is about a secret that was replaced meanwhile: it is checked again.
            Command::Checked { stored_at, .. } if stored_at != state.credential.updated_at => {
                return Err(Fault::Stale);
            }
            Command::Checked { check, .. } => {
                state.credential.check = Some(check);
                state.credential.last_used_at = Some(at.now);
                state.credential.account_currency = None;
                Step::put(state)
            }
            Command::Currency(currency) => {
                currency.apply(&mut state.credential.currency);
                Step::put(state)
            }
            Command::AccountCurrency { stored_at, currency }
                if stored_at == state.credential.updated_at =>
            {
                state.credential.account_currency = Some(currency);
                Step::put(state)
            }
            Command::AccountCurrency { .. } => Step::keep(),
            Command::Used { stored_at } if stored_at != state.credential.updated_at => Step::keep(),
            Command::Used { .. } => match state.credential.last_used_at {
                Some(last) if at.now < last + NOTED_EVERY => Step::keep(),
                _ => {
                    state.credential.last_used_at = Some(at.now);
                    Step::put(state)
                }
            },
            Command::Remove => Step::remove(),
        })
    }

    fn on_outcome(state: State, _: &Moment<Self>, Outcome::Warned: Outcome) -> Step<Self> {
        Step::put(State { untold: None, ..state })
    }

    fn next(state: &State) -> Option<Work<Effect>> {
        let next = next_warning(state.credential.expires_at, state.warned).map(|(_, at)| at);
        match state.untold {
            Some(days) => Some(Work::now(Effect::Warn(days)).until(next)),
            None => next.map(Work::wait),
        }
    }

    fn on_due(mut state: State, at: &Moment<Self>) -> Step<Self> {
        let due = due_warning(state.credential.expires_at, at.now);
        let Some(days) = due.filter(|days| state.warned.is_none_or(|last| *days < last)) else {
            return Step::keep();
        };
        (state.warned, state.untold) = (Some(days), Some(days));
        Step::put(state)
    }

    fn adopt(kept: &mut Kept<Self>, intent: &Value) {
        kept.state.untold = intent.get("Warn").and_then(|days| u32::deserialize(days).ok());
    }

    fn index(state: &State) -> Entries<Self> {
        Entries::default().and_all(state.warned.is_some().then_some(CredentialIndex::Expiring))
    }

    /// `Stale`: the call is decided again, and replaces the credential that exists.
    fn claims(state: &State) -> Vec<Unique<Self>> {
        vec![Unique::new(CredentialClaim::of(&state.credential), || Fault::Stale)]
    }

    fn events(
        _: &Moment<Self>,
        before: Option<&State>,
        State { credential, warned, .. }: &State,
        _: &World,
    ) -> Vec<Event> {
        let is_new = before.is_none_or(|b| b.credential.updated_at != credential.updated_at);
        let is_warned = before.is_some_and(|b| b.warned != *warned);
        let was_checked = before.is_some_and(|b| b.credential.check != credential.check);
        let is_refused = credential.check.as_ref().is_some_and(|check| !check.ok);
        let kind = match (is_new, is_warned, was_checked && is_refused) {
            (true, ..) => EventType::CredentialStored,
            (_, true, _) => EventType::CredentialExpiring,
            (.., true) => EventType::CredentialCheckFailed,
            _ => return Vec::new(),
        };
        vec![Event::new(kind, credential.app_id, credential)]
    }

    fn perform(
        effect: Effect,
        _: CredentialId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, kept, world))
    }
}

impl State {
    /// Who stores a credential sees when it expires, so only later warnings are sent.
    fn of(now: Timestamp, New { credential, secret }: New) -> State {
        let warned = due_warning(credential.expires_at, now);
        State { credential, secret, warned, untold: None }
    }
}

impl Child for Credentials {
    const NEEDED_TO_THE_END: bool = true;

    fn parent(state: &State) -> Option<AppId> {
        Some(state.credential.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

store::entries! {
    pub enum CredentialIndex of Credentials {
        /// Credentials of whose expiry somebody was warned, and those that were stored that late.
        Expiring = "expiring",
    }
}

store::claims! {
    pub enum CredentialClaim of Credentials {
        /// An app has one credential of a kind and name.
        Name { app: AppId, kind: &'static str, name: Name } = "name",
    }
}

impl CredentialClaim {
    pub fn named(app: AppId, kind: CredentialKind, name: &Name) -> Self {
        CredentialClaim::Name { app, kind: kind.name(), name: name.clone() }
    }

    fn of(credential: &Credential) -> Self {
        CredentialClaim::named(credential.app_id, credential.kind, &credential.name)
    }
}
