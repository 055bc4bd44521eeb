//! The rules of a publication:
//! `queued → uploading → processing → inReview → live | failed | halted`.
//!
//! The owner asks the store for one step at a time, and keeps the progress before it asks for the
//! next one. The store's client looks before it does what must not be done twice.

use super::effects::Follow;
use crate::{
    kinds::{delivery::credentials::Use, world::World},
    runtime::{
        event::Event,
        resource::{Child, Moment, Resource, Retry, Step, Work},
    },
};
use app_stores::{Advanced, DesiredState, Options, Progress, RemoteError};
use contract::{
    AppId, CredentialId, Fault, Notes, PublicationId, Timestamp,
    publishing::{Language, Percent},
    releases::{Publication, PublicationState},
    retention::Retention,
    webhooks::EventType,
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use store::{Change, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Publications;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What callers see.
    pub publication: Publication,
    pub app_id: AppId,
    pub order: Ordered,
    /// What is wanted of the store now.
    pub wanted: DesiredState,
    /// What the store last did of what was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fulfilled: Option<DesiredState>,
    /// Whether the store did, or refused, what was wanted last.
    #[serde(rename = "settled")]
    pub at_rest: bool,
    pub progress: Progress,
    /// Whether the release does not know the present state.
    pub unreported: bool,
    /// When the next step is due. `None`: nothing is left to do.
    pub due: Option<Timestamp>,
    /// When the publication last made progress.
    pub moved_at: Timestamp,
    /// How many steps in a row had no clear answer.
    #[serde(default)]
    pub unclear: u32,
    /// The version of the credential whose use is in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<(CredentialId, Timestamp)>,
}

/// What the caller chose for the publication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ordered {
    pub default_notes: Option<Notes>,
    pub notes: BTreeMap<Language, Notes>,
    pub options: Options,
    /// The share of the users that get it first.
    pub rollout: Option<Percent>,
}

#[derive(Debug, Clone)]
pub struct New {
    pub publication: Publication,
    pub app_id: AppId,
    pub order: Ordered,
}

#[derive(Debug, Clone)]
pub enum Command {
    /// Publish again after a failure. The progress stays, so that nothing is sent twice.
    Again(Ordered),
    /// Let this share of the users have it.
    SetRollout(Percent),
    Halt,
    Resume,
    /// Undo what the store can undo.
    Withdraw,
    /// Offer it again, because a later version was withdrawn.
    Restore,
    /// Ask the store where the publication stands.
    Look,
    Remove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Ask the store for the next step.
    Advance,
    /// Tell the release where the publication stands.
    Report,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    /// The answer of the store, and the use of the credential unless it was told before.
    Stepped(Box<StepResult>, Option<Box<Use>>),
    /// The release knows this.
    Reported(Box<Publication>),
    /// The release is deleted.
    Orphaned,
}

/// The answer of the store to a step.
pub type StepResult = Result<Advanced, RemoteError>;

/// How long a publication may stand still before it fails.
const STANDS_AT_MOST: Duration = Duration::from_secs(48 * 3600);

impl Resource for Publications {
    const INDEX: u16 = 3;
    type New = New;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    /// One step may upload a whole file. The clients limit their requests.
    const TIME_LIMIT: Duration = Duration::from_secs(3600);

    fn create(at: &Moment<Self>, new: New) -> Result<Step<Self>, Fault> {
        Ok(Step::put(State::begin(at.now, new)))
    }

    fn on_command(state: State, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        state.on_command(at.now, command)
    }

    fn on_outcome(mut state: State, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        match outcome {
            Outcome::Stepped(result, used) => state.stepped(at, *result, used.as_deref()),
            Outcome::Reported(known) => {
                state.unreported = *known != state.publication;
                Step::put(state)
            }
            Outcome::Orphaned => Step::remove(),
        }
    }

    /// The release is told before the next step.
    fn next(state: &State) -> Option<Work<Effect>> {
        use PublicationState as S;
        let moves = match state.publication.state {
            S::Queued | S::Uploading | S::Processing => true,
            S::InReview | S::Live | S::Failed | S::Halted => false,
        };
        let until = moves.then(|| state.moved_at + STANDS_AT_MOST);
        match state.due {
            _ if state.unreported => Some(Work::now(Effect::Report).until(until)),
            Some(due) => Some(Work::at(due, Effect::Advance).until(until)),
            None => until.map(Work::wait),
        }
    }

    fn on_due(state: State, at: &Moment<Self>) -> Step<Self> {
        state.give_up(at.now)
    }

    fn retained(state: &State) -> Vec<(Retention, Timestamp)> {
        let has_ended = <Self as Resource>::next(state).is_none();
        has_ended.then_some((Retention::Releases, state.moved_at)).into_iter().collect()
    }

    fn on_retention_over(_: State, _: &Moment<Self>, _: Retention) -> Result<Step<Self>, Fault> {
        Ok(Step::remove())
    }

    /// A publication stays as long as its release.
    fn unneeded(_: PublicationId, state: &State, world: &World) -> Result<Option<Change>, Fault> {
        Ok((!world.follows(&state.publication)?).then(Change::new))
    }

    fn events(
        _: &Moment<Self>,
        before: Option<&State>,
        State { publication, app_id, .. }: &State,
        _: &World,
    ) -> Vec<Event> {
        use PublicationState as S;
        if before.is_some_and(|before| before.publication.state == publication.state) {
            return Vec::new();
        }
        let kind = match publication.state {
            S::Queued | S::Uploading | S::Processing => return Vec::new(),
            S::InReview => EventType::PublicationInReview,
            S::Live => EventType::PublicationLive,
            S::Halted => EventType::PublicationHalted,
            S::Failed => EventType::PublicationFailed,
        };
        vec![Event::new(kind, *app_id, publication)]
    }

    fn perform(
        effect: Effect,
        _: PublicationId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, kept, world))
    }
}

impl Child for Publications {
    fn parent(state: &State) -> Option<AppId> {
        Some(state.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}
