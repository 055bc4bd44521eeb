//! The rules of a release:
//! `draft → publishing → published | partiallyPublished | failed`, `superseded`, `rolledBack`.

use super::current::Current;
use crate::{
    artifacts::{Hold, HoldDelta},
    authority::Seen,
    ports::Published,
    runtime::resource::{Input, Intent, Kept, Moment, Resource, Retry, Step},
    world::World,
};
use contract::{
    ArtifactId, Fault, Notes, PublicationId, ReleaseId, Timestamp,
    releases::{Publication, PublicationState, Release, ReleaseState, Target},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::{Change, Stored};

/// The releases.
#[derive(Debug, Clone, Copy)]
pub struct Releases;

/// What is kept of a release: what is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What is shown.
    pub release: Release,
}

/// What can be asked of a release.
#[derive(Clone)]
pub enum Command {
    /// Make it, of artifacts as they were read.
    Create(Box<Release>, Vec<(ArtifactId, Seen<crate::artifacts::Artifacts>)>),
    /// Publish it.
    Publish {
        /// Which artifact to which target, under which id.
        wanted: Vec<(PublicationId, ArtifactId, Target)>,
        /// Replaces the notes.
        notes: Option<Notes>,
    },
    /// Another release of the channel became current.
    Supersede,
    /// Take it back; the other becomes current.
    RollBack {
        /// The other.
        to: ReleaseId,
        /// The channel's pointer as it was read.
        current: Arc<Stored<Current>>,
    },
    /// It is current again.
    Reinstate,
    /// Remove it with its app.
    Remove,
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Command::Create(..) => "Create",
            Command::Publish { .. } => "Publish",
            Command::Supersede => "Supersede",
            Command::RollBack { .. } => "RollBack",
            Command::Reinstate => "Reinstate",
            Command::Remove => "Remove",
        })
    }
}

/// What a release does outside of its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// Hand every waiting publication to its target.
    Publish,
    /// Tell the release that was current before.
    Supersede(ReleaseId),
    /// Tell the release that is current again.
    Reinstate(ReleaseId),
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// How the targets took it, and the channel's pointer as it was read after that.
    Published(Vec<(PublicationId, Published)>, Option<Arc<Stored<Current>>>),
    /// The other release knows.
    Told,
}

impl Resource for Releases {
    const KIND: &'static str = "release";
    type Id = ReleaseId;
    type State = State;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn step(
        at: &Moment<Self>,
        state: Option<&State>,
        input: Input<Self>,
    ) -> Result<Step<Self>, Fault> {
        match (state, input) {
            (None, Input::Command(Command::Create(release, artifacts))) => {
                Ok(create(*release, &artifacts))
            }
            (None, Input::Command(_)) => Err(Fault::NotFound("release")),
            (None, Input::Outcome(_)) => Ok(Step::keep()),
            // the same id is the same release
            (Some(_), Input::Command(Command::Create(..))) => Ok(Step::keep()),
            (Some(state), Input::Command(command)) => state.release.clone().take(at, command),
            (Some(state), Input::Outcome(Outcome::Published(results, current))) => {
                Ok(state.release.clone().published(at, &results, current.as_deref()))
            }
            (Some(_), Input::Outcome(Outcome::Told)) => Ok(Step::keep().intend(Intent::None)),
        }
    }

    fn index(State { release }: &State) -> Vec<String> {
        vec![format!("app/{}", release.app_id), channel_entry(release)]
    }

    fn claims(State { release }: &State) -> Vec<String> {
        vec![format!("version/{}/{}/{}", release.app_id, release.channel, release.version)]
    }

    fn taken(_: &str) -> Fault {
        Fault::Exists(
            "this channel has a release of this version already; use another version or channel"
                .into(),
        )
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

/// The index entry of a channel's releases.
pub fn channel_entry(release: &Release) -> String {
    format!("channel/{}/{}", release.app_id, release.channel)
}

/// A new release holds its artifacts, which must still be as they were read.
fn create(
    release: Release,
    artifacts: &[(ArtifactId, Seen<crate::artifacts::Artifacts>)],
) -> Step<Releases> {
    let also = artifacts.iter().fold(Change::new(), |change, (id, seen)| {
        let key = id.to_string();
        change.require(&key, seen).merge::<Hold>(&key, HoldDelta::Take(release.id))
    });
    Step::put(State { release }).also(also)
}

/// The rules are of the record that is shown.
trait Rules: Sized {
    fn take(self, at: &Moment<Releases>, command: Command) -> Result<Step<Releases>, Fault>;
    fn published(
        self,
        at: &Moment<Releases>,
        results: &[(PublicationId, Published)],
        current: Option<&Stored<Current>>,
    ) -> Step<Releases>;
}

/// Whether users get it.
pub fn is_current(state: ReleaseState) -> bool {
    matches!(state, ReleaseState::Published | ReleaseState::PartiallyPublished)
}

impl Rules for Release {
    fn take(mut self, at: &Moment<Releases>, command: Command) -> Result<Step<Releases>, Fault> {
        use ReleaseState as S;
        match (self.state, command) {
            (_, Command::Create(..)) => Ok(Step::keep()),
            (_, Command::Remove) => Ok(remove(&self)),
            (S::Draft | S::Failed | S::Published | S::PartiallyPublished, Command::Publish { wanted, notes }) => {
                publish(self, at.now, wanted, notes)
            }
            (S::Publishing, Command::Publish { .. }) => Err(Fault::NotNow("this release is being published; wait for it to end".into())),
            (S::Superseded, Command::Publish { .. }) => {
                Err(Fault::NotNow("a later release superseded this one; make it current with svc_rollbackRelease, or create a new release".into()))
            }
            (S::RolledBack, Command::Publish { .. }) => {
                Err(Fault::NotNow("this release was rolled back; create a new release".into()))
            }
            (S::Published | S::PartiallyPublished, Command::Supersede) => {
                self.state = S::Superseded;
                Ok(Step::put(State { release: self }))
            }
            (_, Command::Supersede) => Ok(Step::keep()),
            (S::Superseded, Command::Reinstate) => {
                self.state = settled_state(&self.publications);
                Ok(Step::put(State { release: self }))
            }
            (_, Command::Reinstate) => Ok(Step::keep()),
            (S::Published | S::PartiallyPublished, Command::RollBack { to, current }) => {
                if current.record.release != self.id {
                    return Err(Fault::NotNow("this is not the current release of its channel; only that one can be rolled back".into()));
                }
                let key = Current::key(self.app_id, &self.channel);
                let also = Change::new().replace(&key, Some(current.as_ref()), &Current { release: to, since: at.now });
                self.state = S::RolledBack;
                self.rolled_back_to = Some(to);
                for publication in self.publications.iter_mut().filter(|p| p.state == PublicationState::Live) {
                    publication.state = PublicationState::Halted;
                    publication.updated_at = at.now;
                }
                Ok(Step::put(State { release: self }).intend(Intent::Now(Effect::Reinstate(to))).also(also))
            }
            (state, Command::RollBack { .. }) => {
                Err(Fault::NotNow(format!("this release is {}; only the current release of a channel can be rolled back", name(state))))
            }
        }
    }

    fn published(
        mut self,
        at: &Moment<Releases>,
        results: &[(PublicationId, Published)],
        current: Option<&Stored<Current>>,
    ) -> Step<Releases> {
        if self.state != ReleaseState::Publishing {
            return Step::keep();
        }
        for (id, result) in results {
            if let Some(publication) = self.publications.iter_mut().find(|p| p.id == *id) {
                note(publication, result, at.now);
            }
        }
        self.state = settled_state(&self.publications);
        if !is_current(self.state) {
            return Step::put(State { release: self }).intend(Intent::None);
        }
        self.published_at = self.published_at.or(Some(at.now));
        let before = current.map(|c| c.record.release);
        if before == Some(self.id) {
            return Step::put(State { release: self }).intend(Intent::None);
        }
        let key = Current::key(self.app_id, &self.channel);
        let also =
            Change::new().replace(&key, current, &Current { release: self.id, since: at.now });
        let intent = before.map_or(Intent::None, |before| Intent::Now(Effect::Supersede(before)));
        Step::put(State { release: self }).intend(intent).also(also)
    }
}

fn publish(
    mut release: Release,
    now: Timestamp,
    wanted: Vec<(PublicationId, ArtifactId, Target)>,
    notes: Option<Notes>,
) -> Result<Step<Releases>, Fault> {
    let is_live = |artifact: ArtifactId, target: Target| {
        release.publications.iter().any(|p| {
            p.artifact_id == artifact && p.target == target && p.state == PublicationState::Live
        })
    };
    let new: Vec<_> =
        wanted.into_iter().filter(|(_, artifact, target)| !is_live(*artifact, *target)).collect();
    if new.is_empty() && notes.is_none() {
        return Ok(Step::keep());
    }
    for (id, artifact_id, target) in new {
        release.publications.retain(|p| !(p.artifact_id == artifact_id && p.target == target));
        release.publications.push(Publication {
            id,
            release_id: release.id,
            artifact_id,
            target,
            state: PublicationState::Queued,
            remote_id: None,
            url: None,
            error: None,
            log: Vec::new(),
            updated_at: now,
        });
    }
    release.notes = notes.or(release.notes);
    release.state = ReleaseState::Publishing;
    Ok(Step::put(State { release }).intend(Intent::Now(Effect::Publish)))
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
    let also = release.artifact_ids.iter().fold(
        Change::new().merge::<Current>(&key, release.id),
        |change, artifact| {
            change.merge::<Hold>(&artifact.to_string(), HoldDelta::Release(release.id))
        },
    );
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
