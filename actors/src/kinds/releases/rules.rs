//! The rules of a release:
//! `draft → publishing → published | partiallyPublished | failed`, `superseded`, `rolledBack`.

use super::current::Current;
use crate::{
    kinds::artifacts::{Artifacts, Hold, HoldDelta},
    ports::Published,
    runtime::resource::{Child, Intent, Kept, Moment, Resource, Retry, Step, Unique},
    world::World,
};
use contract::{
    AppId, ArtifactId, Channel, Fault, Notes, Patch, PublicationId, ReleaseId, Timestamp, TokenId,
    VersionName,
    apps::Platform,
    artifacts::Artifact,
    releases::{Publication, PublicationState, Release, ReleaseState, Target},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, sync::Arc};
use store::{Change, Entries, Snapshot, Stored};

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

fn create(Draft { release, by_token, artifacts }: Draft) -> Step<Releases> {
    let also = hold(release.id, &artifacts);
    Step::put(State { release, created_by_token: by_token, to_tell: Vec::new() }).also(also)
}

/// The release holds these artifacts, which must still be as they were read.
fn hold(release: ReleaseId, artifacts: &[Snapshot<Artifacts>]) -> Change {
    artifacts.iter().fold(Change::new(), |change, seen| {
        let id = &seen.state.artifact.id;
        change.require(id, seen).merge::<Hold>(id, HoldDelta::Take(release))
    })
}

/// Whether users get it.
fn is_current(state: ReleaseState) -> bool {
    matches!(state, ReleaseState::Published | ReleaseState::PartiallyPublished)
}

impl State {
    /// Written, and then the next other release is told, where there is one to tell.
    fn tell(self) -> Step<Releases> {
        let intent =
            self.to_tell.first().map_or(Intent::None, |tell| Intent::Now(Effect::Tell(*tell)));
        Step::put(self).intend(intent)
    }

    fn on_command(self, at: &Moment<Releases>, command: Command) -> Result<Step<Releases>, Fault> {
        use ReleaseState as S;
        let refused = |why: &str| Err(Fault::NotNow(why.into()));
        match (self.release.state, command) {
            (_, Command::Remove) => Ok(remove(&self.release)),
            (_, Command::Update { held, joining, offers, notes }) => {
                self.update(at.now, &held, joining, offers, notes)
            }
            (S::Draft | S::Failed, Command::Delete) => Ok(remove(&self.release)),
            (state, Command::Delete) => Err(Fault::NotNow(format!(
                "this release is {}; only drafts and failed releases can be deleted",
                name(state)
            ))),
            (
                S::Draft | S::Failed | S::Publishing | S::Published | S::PartiallyPublished,
                Command::Publish { held, wanted, notes },
            ) => self.publish(at.now, &held, wanted, notes),
            (S::Superseded, Command::Publish { .. }) => refused(
                "a later release superseded this one; make it current with svc_rollbackRelease, or create a new release",
            ),
            (S::RolledBack, Command::Publish { .. }) => {
                refused("this release was rolled back; create a new release")
            }
            (S::Published | S::PartiallyPublished | S::Superseded, Command::Follow(current)) => {
                Ok(self.follow(&current))
            }
            (_, Command::Follow(_)) => Ok(Step::keep()),
            (S::Published | S::PartiallyPublished, Command::RollBack { to, current }) => {
                self.roll_back(at.now, to, &current)
            }
            (state, Command::RollBack { .. }) => Err(Fault::NotNow(format!(
                "this release is {}; only the current release of a channel can be rolled back",
                name(state)
            ))),
        }
    }

    /// Artifacts of a platform that the release does not hold yet join it. Where it is published,
    /// or on its way, they go to the same targets.
    fn update(
        mut self,
        now: Timestamp,
        held: &[(ArtifactId, Platform)],
        mut joining: Vec<Snapshot<Artifacts>>,
        offers: Vec<Offer>,
        notes: Patch<Notes>,
    ) -> Result<Step<Releases>, Fault> {
        let State { release, .. } = &mut self;
        let before = release.notes.clone();
        notes.apply(&mut release.notes);
        joining.retain(|seen| !release.artifact_ids.contains(&seen.state.artifact.id));
        if joining.is_empty() {
            let is_same = release.notes == before;
            return Ok(if is_same { Step::keep() } else { Step::put(self) });
        }
        if matches!(release.state, ReleaseState::Superseded | ReleaseState::RolledBack) {
            return Err(Fault::NotNow(format!(
                "this release is {} and takes no more artifacts; create a new one",
                name(release.state)
            )));
        }
        if !held.iter().map(|(id, _)| id).eq(&release.artifact_ids) {
            return Err(Fault::Stale);
        }
        for seen in &joining {
            let Artifact { id, platform, .. } = &seen.state.artifact;
            if let Some((other, _)) = held.iter().find(|(_, of)| of == platform) {
                return Err(Fault::Exists(format!(
                    "the release {} holds {other} for {} already, so {id} cannot join it; use \
                     another version or channel",
                    release.id,
                    platform.name()
                )));
            }
        }
        release.artifact_ids.extend(joining.iter().map(|seen| seen.state.artifact.id));
        release.artifact_ids.sort();
        let also = hold(release.id, &joining);
        let goes_out = is_current(release.state) || release.state == ReleaseState::Publishing;
        let targets: BTreeSet<_> = release.publications.iter().map(|p| p.target).collect();
        let offers = offers.into_iter().filter(|o| goes_out && targets.contains(&o.target));
        Ok(self.queue(now, offers.collect()).also(also))
    }

    fn publish(
        mut self,
        now: Timestamp,
        held: &[ArtifactId],
        wanted: Vec<Offer>,
        notes: Option<Notes>,
    ) -> Result<Step<Releases>, Fault> {
        let State { release, .. } = &mut self;
        if held != release.artifact_ids {
            return Err(Fault::Stale);
        }
        let is_same = notes.is_none() || notes == release.notes;
        let is_done = |offer: &Offer| {
            release.publications.iter().any(|p| {
                is_of(p, offer)
                    && matches!(p.state, PublicationState::Live | PublicationState::Queued)
            })
        };
        let wanted: Vec<_> = wanted.into_iter().filter(|offer| !is_done(offer)).collect();
        if wanted.is_empty() && is_same {
            return Ok(Step::keep());
        }
        release.notes = notes.or(release.notes.take());
        Ok(self.queue(now, wanted))
    }

    /// These publications wait for their targets. Where others are on their way, these go after
    /// them.
    fn queue(mut self, now: Timestamp, wanted: Vec<Offer>) -> Step<Releases> {
        if wanted.is_empty() {
            return Step::put(self);
        }
        let release = &mut self.release;
        for offer in wanted {
            release.publications.retain(|p| !is_of(p, &offer));
            release.publications.push(Publication {
                id: offer.id,
                release_id: release.id,
                artifact_id: offer.artifact_id,
                target: offer.target,
                state: PublicationState::Queued,
                remote_id: None,
                url: None,
                error: None,
                log: Vec::new(),
                updated_at: now,
            });
        }
        if release.state == ReleaseState::Publishing {
            return Step::put(self);
        }
        release.state = ReleaseState::Publishing;
        Step::put(self).intend(Intent::Now(Effect::Publish))
    }

    /// The targets have answered. A release that users get for the first time becomes the current
    /// one of its channel; one that was overtaken while it went to more targets stays overtaken.
    fn published(
        mut self,
        at: &Moment<Releases>,
        results: &[(PublicationId, Published)],
        current: Option<&Stored<Current>>,
    ) -> Step<Releases> {
        let release = &mut self.release;
        if release.state != ReleaseState::Publishing {
            return Step::keep();
        }
        for (id, result) in results {
            if let Some(publication) = release.publications.iter_mut().find(|p| p.id == *id) {
                note(publication, result, at.now);
            }
        }
        if release.publications.iter().any(|p| p.state == PublicationState::Queued) {
            return Step::put(self).intend(Intent::Now(Effect::Publish));
        }
        release.state = settled_state(&release.publications);
        let before = current.map(|c| c.release);
        if !is_current(release.state) || before == Some(release.id) {
            return self.tell();
        }
        if release.published_at.is_some() {
            release.state = ReleaseState::Superseded;
            return self.tell();
        }
        release.published_at = Some(at.now);
        let key = Current::key(release.app_id, &release.channel);
        let also = Change::new().replace::<Current>(
            &key,
            current,
            Current { release: release.id, since: at.now },
        );
        self.to_tell.extend(before);
        self.tell().also(also)
    }

    fn follow(mut self, current: &Stored<Current>) -> Step<Releases> {
        let release = &mut self.release;
        release.state = if current.release == release.id {
            settled_state(&release.publications)
        } else {
            ReleaseState::Superseded
        };
        let key = Current::key(release.app_id, &release.channel);
        let also = Change::new().require::<Current>(&key, current);
        Step::put(self).also(also)
    }

    fn roll_back(
        mut self,
        now: Timestamp,
        to: ReleaseId,
        current: &Stored<Current>,
    ) -> Result<Step<Releases>, Fault> {
        let release = &mut self.release;
        if current.release != release.id {
            return Err(Fault::NotNow(
                "this is not the current release of its channel; only that one can be rolled back"
                    .into(),
            ));
        }
        let key = Current::key(release.app_id, &release.channel);
        let also = Change::new().replace::<Current>(
            &key,
            Some(current),
            Current { release: to, since: now },
        );
        release.state = ReleaseState::RolledBack;
        release.rolled_back_to = Some(to);
        for publication in &mut release.publications {
            if publication.state == PublicationState::Live {
                publication.state = PublicationState::Halted;
                publication.updated_at = now;
            }
        }
        self.to_tell.push(to);
        Ok(self.tell().also(also))
    }
}

fn is_of(publication: &Publication, offer: &Offer) -> bool {
    publication.artifact_id == offer.artifact_id && publication.target == offer.target
}

/// The state of a release whose targets have all answered.
fn settled_state(publications: &[Publication]) -> ReleaseState {
    let live = publications
        .iter()
        .filter(|p| matches!(p.state, PublicationState::Live | PublicationState::Halted))
        .count();
    match live {
        0 => ReleaseState::Failed,
        n if n == publications.len() => ReleaseState::Published,
        _ => ReleaseState::PartiallyPublished,
    }
}

fn note(publication: &mut Publication, result: &Published, now: Timestamp) {
    publication.updated_at = now;
    match result {
        Published::Live { url } => {
            publication.state = PublicationState::Live;
            publication.url = url.clone();
            publication.error = None;
        }
        Published::Refused(why) => {
            publication.state = PublicationState::Failed;
            publication.error = Some(why.clone());
        }
    }
}

fn remove(release: &Release) -> Step<Releases> {
    let key = Current::key(release.app_id, &release.channel);
    let also = release
        .artifact_ids
        .iter()
        .fold(Change::new().merge::<Current>(&key, release.id), |change, artifact| {
            change.merge::<Hold>(artifact, HoldDelta::Release(release.id))
        });
    Step::remove().also(also)
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
