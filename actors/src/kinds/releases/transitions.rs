//! The state transitions of a release, by commands and by the answers of targets. Pure.

use super::{
    current::Current,
    rules::{Command, Draft, Effect, Offer, Releases, State, name},
};
use crate::{
    kinds::artifacts::{ArtifactRefs, ArtifactRefsDelta, Artifacts},
    ports::Published,
    runtime::resource::{Intent, Moment, Step},
};
use contract::{
    ArtifactId, Fault, Notes, Patch, PublicationId, ReleaseId, Timestamp,
    apps::Platform,
    artifacts::Artifact,
    releases::{Publication, PublicationState, Release, ReleaseState},
};
use std::collections::BTreeSet;
use store::{Change, Snapshot, Stored};

pub(super) fn create(Draft { release, by_token, artifacts }: Draft) -> Step<Releases> {
    let also = hold(release.id, &artifacts);
    Step::put(State { release, created_by_token: by_token, to_tell: Vec::new() }).also(also)
}

/// Adds references from the release to these artifacts. Stale if an artifact changed since it was
/// read.
fn hold(release: ReleaseId, artifacts: &[Snapshot<Artifacts>]) -> Change {
    artifacts.iter().fold(Change::new(), |change, seen| {
        let id = &seen.state.artifact.id;
        change.require(id, seen).merge::<ArtifactRefs>(id, ArtifactRefsDelta::Add(release))
    })
}

/// Whether users get a release in this state.
fn is_current(state: ReleaseState) -> bool {
    matches!(state, ReleaseState::Published | ReleaseState::PartiallyPublished)
}

impl State {
    /// Writes the state, with the intent to tell the next release of `to_tell`.
    pub(super) fn tell(self) -> Step<Releases> {
        let intent =
            self.to_tell.first().map_or(Intent::None, |tell| Intent::Now(Effect::Tell(*tell)));
        Step::put(self).intend(intent)
    }

    pub(super) fn on_command(
        self,
        at: &Moment<Releases>,
        command: Command,
    ) -> Result<Step<Releases>, Fault> {
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

    /// Adds artifacts of platforms that the release does not hold yet. If the release is published
    /// or publishing, the new artifacts are published to the same targets.
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

    /// Queues publications. If others are under way, these follow when the targets have answered.
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

    /// Takes the answers of the targets. A release that is published for the first time becomes the
    /// current release of its channel. A release that was superseded while it went to more targets
    /// stays superseded.
    pub(super) fn published(
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

/// The state of a release when all targets have answered.
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
            change.merge::<ArtifactRefs>(artifact, ArtifactRefsDelta::Remove(release.id))
        },
    );
    Step::remove().also(also)
}
