//! The rules of a release:
//! `draft → publishing → published | partiallyPublished | failed`, `superseded`, `rolledBack`.

use super::{current::Current, transitions::create};
use crate::{
    kinds::artifacts::Artifacts,
    ports::Published,
    runtime::resource::{Child, Kept, Moment, Resource, Retry, Step, Unique},
    world::World,
};
use contract::{
    AppId, ArtifactId, Channel, Fault, Notes, Patch, PublicationId, ReleaseId, TokenId,
    VersionName,
    apps::Platform,
    releases::{Release, ReleaseState, Target},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::{Entries, Snapshot};

/// The releases.
#[derive(Debug, Clone, Copy)]
pub struct Releases;

/// What is kept of a release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What is shown.
    pub release: Release,
    /// The deploy token that created it. With `release:create`, that one may publish it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by_token: Option<TokenId>,
    /// Releases of the channel that have yet to be told that the pointer moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_tell: Vec<ReleaseId>,
}

/// A release to be made, of artifacts as they were read.
#[derive(Clone)]
pub struct Draft {
    pub release: Release,
    /// The deploy token that creates it.
    pub by_token: Option<TokenId>,
    pub artifacts: Vec<Snapshot<Artifacts>>,
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draft").field("release", &self.release).finish_non_exhaustive()
    }
}

/// What can be asked of a release.
#[derive(Clone)]
pub enum Command {
    /// Add artifacts to it, and change its notes.
    Update {
        /// The artifacts that it held when they were read, each with its platform.
        held: Vec<(ArtifactId, Platform)>,
        /// Those to add, as they were read.
        joining: Vec<Snapshot<Artifacts>>,
        /// Where those to add could be published.
        offers: Vec<Offer>,
        /// Changes the notes.
        notes: Patch<Notes>,
    },
    /// Publish it.
    Publish {
        /// The artifacts that it held when they were read.
        held: Vec<ArtifactId>,
        /// Where they are to be published.
        wanted: Vec<Offer>,
        /// Replaces the notes.
        notes: Option<Notes>,
    },
    /// Delete it, where users never got it.
    Delete,
    /// The channel's pointer moved: be what it says, as long as it says so.
    Follow(Snapshot<Current>),
    /// Take it back; the other becomes current.
    RollBack {
        /// The other.
        to: ReleaseId,
        /// The channel's pointer as it was read.
        current: Snapshot<Current>,
    },
    /// Remove it with its app.
    Remove,
}

/// An artifact, a target that takes it, and the id that its publication there would have.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// The id.
    pub id: PublicationId,
    /// The artifact.
    pub artifact_id: ArtifactId,
    /// The target.
    pub target: Target,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Command::Update { .. } => "Update",
            Command::Publish { .. } => "Publish",
            Command::Delete => "Delete",
            Command::Follow(_) => "Follow",
            Command::RollBack { .. } => "RollBack",
            Command::Remove => "Remove",
        })
    }
}

/// What a release does outside of its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// Hand every waiting publication to its target.
    Publish,
    /// Tell this release that the channel's pointer moved.
    Tell(ReleaseId),
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// How the targets took it, and the channel's pointer as it was read after that.
    Published(Vec<(PublicationId, Published)>, Option<Snapshot<Current>>),
    /// This release knows.
    Told(ReleaseId),
}

impl Resource for Releases {
    type New = Draft;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(_: &Moment<Self>, draft: Draft) -> Result<Step<Self>, Fault> {
        Ok(create(draft))
    }

    fn on_command(state: State, at: &Moment<Self>, command: Command) -> Result<Step<Self>, Fault> {
        state.on_command(at, command)
    }

    fn on_outcome(mut state: State, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        match outcome {
            Outcome::Published(results, current) => {
                state.published(at, &results, current.as_deref())
            }
            Outcome::Told(other) => {
                state.to_tell.retain(|waiting| *waiting != other);
                state.tell()
            }
        }
    }

    fn is_deleted(_: &State) -> bool {
        false
    }

    fn index(State { release, .. }: &State) -> Entries<Self> {
        Entries::default().and(ReleaseIndex::of_channel(release))
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

    fn perform(
        effect: Effect,
        id: ReleaseId,
        kept: Arc<Kept<Self>>,
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
    /// What releases are found by.
    pub enum ReleaseIndex of Releases {
        Channel { app: AppId, channel: Channel } = "channel",
    }
}

store::claims! {
    /// What no two releases have in common.
    pub enum ReleaseClaim of Releases {
        Version { app: AppId, channel: Channel, version: VersionName } = "version",
    }
}

impl ReleaseClaim {
    /// What the release of a version claims in its channel.
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

/// The name of a state for people.
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
