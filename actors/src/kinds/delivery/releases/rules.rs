//! The rules of a release:
//! `draft → publishing → published | partiallyPublished | failed`, `superseded`, `rolledBack`.

use super::{
    current::Current,
    transitions::{create, remove_unneeded},
};
use crate::{
    kinds::{delivery::artifacts::Artifacts, people::apps::Apps, world::World},
    runtime::{
        entries::InState,
        event::Event,
        resource::{Child, Moment, Resource, Retry, Step, Unique, Work},
    },
};
use contract::{
    AppId, ArtifactId, Channel, Fault, Notes, Patch, PublicationId, ReleaseId, Timestamp, TokenId,
    VersionName,
    apps::Platform,
    publishing::{Percent, StoreOptions},
    releases::{Publication, Release, ReleaseState, Target},
    retention::Retention,
    webhooks::EventType,
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, sync::Arc};
use store::{Change, Entries, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Releases;

/// How many releases of a channel that users got stay beyond their retention.
const LATEST_OF_CHANNEL: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What callers see.
    pub release: Release,
    /// The deploy token that created the release. The scope `release:create` lets this token
    /// publish the release too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by_token: Option<TokenId>,
    /// Releases of the channel that do not know yet that the pointer moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_tell: Vec<ReleaseId>,
    /// Queued publications in stores that no owner has yet.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unsent: BTreeSet<PublicationId>,
    /// What a rollback still has to ask of publications.
    #[serde(default, rename = "wishes", skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<PublicationRequest>,
    /// The share of the users that the stores begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Percent>,
    /// When somebody last asked for its publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
}

/// What a rollback asks of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PublicationRequest {
    /// Undo it as far as the store can.
    Withdraw(PublicationId),
    /// Offer it again.
    Restore(PublicationId),
}

/// A release to create. Its artifacts must be unchanged since they were read.
#[derive(Clone)]
pub struct Draft {
    pub release: Release,
    /// The deploy token that creates it.
    pub by_token: Option<TokenId>,
    pub artifacts: Vec<Snapshot<Artifacts>>,
    /// The publications to make at once. Nobody sees the release as a draft then.
    pub wanted: Vec<Offer>,
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draft").field("release", &self.release).finish_non_exhaustive()
    }
}

#[derive(Clone)]
pub enum Command {
    /// Add artifacts to the release, and change its notes.
    Update {
        /// The artifacts that the release held when it was read, each with its platform.
        held: Vec<(ArtifactId, Platform)>,
        /// The artifacts to add.
        joining: Vec<Snapshot<Artifacts>>,
        /// The possible publications of the artifacts to add.
        offers: Vec<Offer>,
        notes: Patch<Notes>,
    },
    /// Add an artifact to the release, and publish the release.
    Bring {
        /// The artifacts that the release held when it was read, each with its platform.
        held: Vec<(ArtifactId, Platform)>,
        /// The artifact, unless the release held it.
        joining: Vec<Snapshot<Artifacts>>,
        /// The possible publications of the artifact.
        offers: Vec<Offer>,
        /// The publications to make.
        wanted: Vec<Offer>,
        /// Whether the caller may publish to targets that the release is not published to.
        may_publish: bool,
    },
    Publish {
        /// The artifacts that the release held when it was read.
        held: Vec<ArtifactId>,
        /// The publications to make.
        wanted: Vec<Offer>,
        /// `None` leaves the notes.
        notes: Option<Notes>,
        /// `None`: all users at once.
        rollout: Option<Percent>,
        /// `None` leaves the choices.
        options: Option<StoreOptions>,
    },
    /// A publication in a store tells where it stands.
    Report {
        publication: Box<Publication>,
        /// The channel's pointer as it was read.
        current: Option<Snapshot<Current>>,
    },
    /// Delete a draft or a failed release.
    Delete,
    /// The channel's pointer moved: become current or superseded, as the pointer says. Stale if the
    /// pointer changed since it was read.
    Follow(Snapshot<Current>),
    /// Roll this release back, and make another release current.
    RollBack {
        /// Unchanged since it was read.
        to: Snapshot<Releases>,
        /// The channel's pointer as it was read.
        current: Snapshot<Current>,
        /// The publications of the release `to` that are offered again.
        restore: Vec<PublicationId>,
    },
    /// Take a release back, with none in its place. Without a pointer, no user may have got it yet.
    Withdraw(Option<Snapshot<Current>>),
    /// Delete the release because its app is deleted.
    Remove,
}

/// A possible publication of an artifact to a target.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// The id that the publication gets.
    pub id: PublicationId,
    pub artifact_id: ArtifactId,
    pub target: Target,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Command::Update { .. } => "Update",
            Command::Bring { .. } => "Bring",
            Command::Publish { .. } => "Publish",
            Command::Delete => "Delete",
            Command::Follow(_) => "Follow",
            Command::Report { .. } => "Report",
            Command::RollBack { .. } => "RollBack",
            Command::Withdraw(_) => "Withdraw",
            Command::Remove => "Remove",
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Hand every queued publication to its target.
    Publish,
    /// Ask this of a publication.
    Ask(PublicationRequest),
    /// Tell this release that the channel's pointer moved.
    Tell(ReleaseId),
}

#[derive(Debug, Clone)]
pub enum Outcome {
    /// The answers of the targets, and the channel's pointer as it was read after them.
    Published(Vec<(PublicationId, TargetReply)>, Option<Snapshot<Current>>),
    /// The publication knows this request, or does not exist.
    Asked(PublicationRequest),
    /// This release knows where the pointer points, or does not exist.
    Told(ReleaseId),
}

/// The answer of a target to a publication.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetReply {
    /// Users can get the artifact on this page.
    Live { url: String },
    /// The publication has an owner, which reports where it stands.
    Begun,
    /// The target refuses the publication, for this reason.
    Refused(String),
}

impl Resource for Releases {
    const INDEX: u16 = 4;
    type New = Draft;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(at: &Moment<Self>, draft: Draft) -> Result<Step<Self>, Fault> {
        Ok(create(at.now, draft))
    }

    fn on_command(state: State, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        state.on_command(at, command)
    }

    fn on_outcome(mut state: State, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        match outcome {
            Outcome::Published(results, current) => {
                state.published(at, &results, current.as_deref())
            }
            Outcome::Asked(request) => {
                state.requests.retain(|waiting| *waiting != request);
                Step::put(state)
            }
            Outcome::Told(other) => {
                state.to_tell.retain(|waiting| *waiting != other);
                Step::put(state)
            }
        }
    }

    fn next(state: &State) -> Option<Work<Effect>> {
        state.next().map(Work::now)
    }

    fn retained(state: &State) -> Vec<(Retention, Timestamp)> {
        let release = &state.release;
        let has_ended = match release.state {
            ReleaseState::Superseded | ReleaseState::RolledBack | ReleaseState::Failed => {
                state.next().is_none()
            }
            ReleaseState::Draft
            | ReleaseState::Publishing
            | ReleaseState::Published
            | ReleaseState::PartiallyPublished => false,
        };
        let ended = release.published_at.unwrap_or(release.created_at);
        has_ended.then_some((Retention::Releases, ended)).into_iter().collect()
    }

    fn on_retention_over(
        state: State,
        _: &Moment<Self>,
        _: Retention,
    ) -> Result<Step<Self>, Fault> {
        Ok(remove_unneeded(&state.release))
    }

    /// The current release of a channel stays, and so do the latest that users got, so that a rollback has where
    /// to go.
    fn unneeded(id: ReleaseId, state: &State, world: &World) -> Result<Option<Change>, Fault> {
        let release = &state.release;
        let key = Current::key(release.app_id, &release.channel);
        let current = world.store.get::<Current>(&key)?;
        if current.as_ref().is_some_and(|current| current.release == id) {
            return Ok(None);
        }
        let mut latest = 0;
        for found in world.store.newest(&ReleaseIndex::of_channel(release), None) {
            let (other, seen) = found?;
            latest += usize::from(seen.release.published_at.is_some());
            match latest {
                _ if other == id && release.published_at.is_some() => return Ok(None),
                LATEST_OF_CHANNEL => break,
                _ => {}
            }
        }
        Ok(Some(match current {
            Some(current) => Change::new().require::<Current>(&key, &current),
            None => Change::new().require_absent::<Current>(&key),
        }))
    }

    fn index(State { release, .. }: &State) -> Entries<Self> {
        Entries::default()
            .and(ReleaseIndex::of_channel(release))
            .and(InState::<Apps>::new(release.app_id, release.state))
    }

    fn claims(State { release, .. }: &State) -> Vec<Unique<Self>> {
        let taken = || {
            Fault::Exists(
                "this channel has a release of this version already; add an artifact of another \
                 platform to it with svc_updateRelease, or use another version or channel"
                    .into(),
            )
        };
        let claim = ReleaseClaim::of(release.app_id, &release.channel, &release.version);
        vec![Unique::new(claim, taken)]
    }

    fn events(
        _: &Moment<Self>,
        before: Option<&State>,
        State { release, .. }: &State,
        _: &World,
    ) -> Vec<Event> {
        if before.is_some_and(|before| before.release.state == release.state) {
            return Vec::new();
        }
        let kind = match release.state {
            ReleaseState::Draft | ReleaseState::Publishing => return Vec::new(),
            ReleaseState::Published => EventType::ReleasePublished,
            ReleaseState::PartiallyPublished => EventType::ReleasePartiallyPublished,
            ReleaseState::Failed => EventType::ReleaseFailed,
            ReleaseState::Superseded => EventType::ReleaseSuperseded,
            ReleaseState::RolledBack => EventType::ReleaseRolledBack,
        };
        vec![Event::new(kind, release.app_id, release)]
    }

    fn perform(
        effect: Effect,
        id: ReleaseId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, kept, world))
    }
}

impl Child for Releases {
    fn parent(state: &State) -> Option<AppId> {
        Some(state.release.app_id)
    }

    fn delete() -> Command {
        Command::Remove
    }
}

store::entries! {
    pub enum ReleaseIndex of Releases {
        Channel { app: AppId, channel: Channel } = "channel",
    }
}

store::claims! {
    pub enum ReleaseClaim of Releases {
        Version { app: AppId, channel: Channel, version: VersionName } = "version",
    }
}

impl ReleaseClaim {
    /// A channel has at most one release of a version.
    pub fn of(app: AppId, channel: &Channel, version: &VersionName) -> Self {
        ReleaseClaim::Version { app, channel: channel.clone(), version: version.clone() }
    }
}

impl ReleaseIndex {
    /// The releases of the same channel.
    pub fn of_channel(release: &Release) -> Self {
        ReleaseIndex::Channel { app: release.app_id, channel: release.channel.clone() }
    }
}

/// Names a state in error messages.
pub fn name(state: ReleaseState) -> &'static str {
    match state {
        ReleaseState::Draft => "a draft",
        ReleaseState::Publishing => "being published",
        ReleaseState::Published => "published",
        ReleaseState::PartiallyPublished => "partially published",
        ReleaseState::Failed => "failed",
        ReleaseState::Superseded => "superseded",
        ReleaseState::RolledBack => "rolled back",
    }
}
