//! The state transitions of a release, by commands and by the answers of targets. Pure.

mod publications;

use super::{
    current::Current,
    notes::check_size,
    rules::{Command, Draft, Effect, Offer, Releases, State, name},
};
use crate::{
    kinds::delivery::artifacts::{ArtifactRefs, ArtifactRefsDelta, Artifacts},
    runtime::resource::{Moment, Step},
};
use contract::{
    ArtifactId, Fault, Notes, Patch, ReleaseId, Scope, Timestamp, TokenId,
    apps::Platform,
    artifacts::Artifact,
    publishing::{Percent, StoreOptions},
    releases::{Publication, PublicationState as S, Release, ReleaseState, Target},
};
use publications::{is_current, overall};
use std::collections::BTreeSet;
use store::{Change, Snapshot, Stored};

pub(super) fn create(now: Timestamp, draft: Draft) -> Step<Releases> {
    let Draft { release, by_token, artifacts, wanted } = draft;
    let also = hold(release.id, &artifacts);
    State::new(release, by_token).queue(now, wanted).also(also)
}

/// Adds references from the release to these artifacts. Stale if an artifact changed since it was
/// read.
fn hold(release: ReleaseId, artifacts: &[Snapshot<Artifacts>]) -> Change {
    artifacts.iter().fold(Change::new(), |change, seen| {
        let id = &seen.state.artifact.id;
        change.require(id, seen).merge::<ArtifactRefs>(id, ArtifactRefsDelta::Add(release))
    })
}

impl State {
    pub fn new(release: Release, created_by_token: Option<TokenId>) -> State {
        State {
            release,
            created_by_token,
            to_tell: Vec::new(),
            unsent: BTreeSet::new(),
            requests: Vec::new(),
            rollout: None,
            asked_at: None,
        }
    }

    pub(super) fn on_command(
        self,
        at: &Moment<Releases>,
        command: Command,
    ) -> Result<Step<Releases>, Fault> {
        use ReleaseState as R;
        match (self.release.state, command) {
            (_, Command::Remove) => Ok(remove(&self.release)),
            (_, Command::Update { held, joining, offers, notes }) => {
                self.update(at.now, &held, joining, offers, notes)
            }
            (_, Command::Bring { held, joining, offers, wanted, may_publish }) => {
                self.bring(at.now, &held, joining, offers, wanted, may_publish)
            }
            (R::Draft | R::Failed, Command::Delete) => Ok(remove(&self.release)),
            (state, Command::Delete) => Err(Fault::NotNow(format!(
                "this release is {}; only drafts and failed releases can be deleted",
                name(state)
            ))),
            (
                R::Draft | R::Failed | R::Publishing | R::Published | R::PartiallyPublished,
                Command::Publish { held, wanted, notes, rollout, options },
            ) => self.publish(at.now, &held, wanted, notes, rollout, options),
            (R::Superseded | R::RolledBack, Command::Publish { .. }) => Err(self.is_over()),
            (R::Published | R::PartiallyPublished | R::Superseded, Command::Follow(current)) => {
                Ok(self.follow(&current))
            }
            (_, Command::Follow(_)) => Ok(Step::keep()),
            (_, Command::Report { publication, current }) => {
                self.report(at.now, *publication, current.as_deref())
            }
            (
                R::Published | R::PartiallyPublished | R::Publishing,
                Command::RollBack { to, current, restore },
            ) => self.roll_back(at.now, &to, &current, &restore),
            (R::Publishing, Command::Withdraw(None)) => self.withdraw_unseen(),
            (
                R::Published | R::PartiallyPublished | R::Publishing,
                Command::Withdraw(Some(current)),
            ) => self.withdraw(at.now, &current),
            (R::RolledBack, Command::Withdraw(_)) => Ok(Step::keep()),
            (_, Command::Withdraw(_)) => Err(Fault::Stale),
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
        let before = self.release.notes.clone();
        notes.apply(&mut self.release.notes);
        if self.release.notes != before {
            check_size(self.release.notes.as_ref(), &self.release.options)?;
        }
        joining.retain(|seen| !self.release.artifact_ids.contains(&seen.state.artifact.id));
        if joining.is_empty() {
            let is_same = self.release.notes == before;
            return Ok(if is_same { Step::keep() } else { Step::put(self) });
        }
        let (also, offers) = self.join(held, &joining, offers)?;
        Ok(self.queue(now, offers).also(also))
    }

    /// Adds an artifact, and publishes the release to the targets of `wanted`. Those that it is
    /// published to need no permission. Publications that exist are not repeated.
    fn bring(
        mut self,
        now: Timestamp,
        held: &[(ArtifactId, Platform)],
        mut joining: Vec<Snapshot<Artifacts>>,
        offers: Vec<Offer>,
        mut wanted: Vec<Offer>,
        may_publish: bool,
    ) -> Result<Step<Releases>, Fault> {
        let is_done = |offer: &Offer| {
            self.release.publications.iter().any(|p| is_of(p, offer) && p.state != S::Failed)
        };
        wanted.retain(|offer| !is_done(offer));
        joining.retain(|seen| !self.release.artifact_ids.contains(&seen.state.artifact.id));
        if wanted.is_empty() && joining.is_empty() {
            return Ok(Step::keep());
        }
        if matches!(self.release.state, ReleaseState::Superseded | ReleaseState::RolledBack) {
            return Err(self.is_over());
        }
        if !held.iter().map(|(id, _)| id).eq(&self.release.artifact_ids) {
            return Err(Fault::Stale);
        }
        let targets = targets_of(&self.release);
        if !may_publish && wanted.iter().any(|offer| !targets.contains(&offer.target)) {
            return Err(Fault::MissingScope(Scope::ReleasePublish));
        }
        let (also, mut queued) = match joining.is_empty() {
            true => (Change::new(), Vec::new()),
            false => self.join(held, &joining, offers)?,
        };
        let is_same = |a: &Offer, b: &Offer| (a.artifact_id, a.target) == (b.artifact_id, b.target);
        wanted.retain(|offer| !queued.iter().any(|other| is_same(offer, other)));
        queued.extend(wanted);
        Ok(self.queue(now, queued).also(also))
    }

    /// Why a release that users no longer get is not published again.
    fn is_over(&self) -> Fault {
        let why = match self.release.state {
            ReleaseState::Superseded => {
                "a later release superseded this one; make it current with svc_rollbackRelease, or \
                 create a new release"
            }
            _ => "this release was rolled back; create a new release",
        };
        Fault::NotNow(why.into())
    }

    /// Adds artifacts. Returns the change that ties them to the release, and those of the offers
    /// whose targets the release is published to.
    fn join(
        &mut self,
        held: &[(ArtifactId, Platform)],
        joining: &[Snapshot<Artifacts>],
        mut offers: Vec<Offer>,
    ) -> Result<(Change, Vec<Offer>), Fault> {
        let State { release, .. } = self;
        if matches!(release.state, ReleaseState::Superseded | ReleaseState::RolledBack) {
            return Err(Fault::NotNow(format!(
                "this release is {} and takes no more artifacts; create a new one",
                name(release.state)
            )));
        }
        if !held.iter().map(|(id, _)| id).eq(&release.artifact_ids) {
            return Err(Fault::Stale);
        }
        for seen in joining {
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
        let targets = targets_of(release);
        offers.retain(|offer| targets.contains(&offer.target));
        Ok((hold(release.id, joining), offers))
    }

    fn publish(
        mut self,
        now: Timestamp,
        held: &[ArtifactId],
        wanted: Vec<Offer>,
        notes: Option<Notes>,
        rollout: Option<Percent>,
        options: Option<StoreOptions>,
    ) -> Result<Step<Releases>, Fault> {
        let State { release, .. } = &mut self;
        if held != release.artifact_ids {
            return Err(Fault::Stale);
        }
        let notes = notes.or_else(|| release.notes.clone());
        let options = merged(&release.options, options);
        let is_same = notes == release.notes && options == release.options;
        // A halted publication in a store is resumed, not published again.
        let is_over = |p: &Publication| {
            p.state == S::Failed || p.state == S::Halted && p.target == Target::Ota
        };
        let is_done =
            |offer: &Offer| release.publications.iter().any(|p| is_of(p, offer) && !is_over(p));
        let wanted: Vec<_> = wanted.into_iter().filter(|offer| !is_done(offer)).collect();
        if wanted.is_empty() && is_same {
            return Ok(Step::keep());
        }
        if !is_same {
            check_size(notes.as_ref(), &options)?;
        }
        (release.notes, release.options, self.rollout) = (notes, options, rollout);
        Ok(self.queue(now, wanted))
    }

    /// Queues publications.
    fn queue(mut self, now: Timestamp, wanted: Vec<Offer>) -> Step<Releases> {
        if wanted.is_empty() {
            return Step::put(self);
        }
        self.asked_at = Some(now);
        for offer in wanted {
            let publication = self.queued(now, offer);
            if offer.target != Target::Ota {
                self.unsent.insert(publication.id);
            }
            self.release.publications.push(publication);
        }
        self.release.state = ReleaseState::Publishing;
        Step::put(self)
    }

    /// Takes a publication out of the list, and queues it again. One in a store that failed keeps
    /// its id, so that its owner goes on where it stopped.
    fn queued(&mut self, now: Timestamp, offer: Offer) -> Publication {
        let publications = &mut self.release.publications;
        let before = publications.iter().position(|p| is_of(p, &offer));
        let before = before.map(|at| publications.remove(at));
        let goes_on = |p: &Publication| p.state == S::Failed && p.target != Target::Ota;
        match before.filter(goes_on) {
            Some(before) => {
                Publication { state: S::Queued, error: None, updated_at: now, ..before }
            }
            None => Publication {
                id: offer.id,
                release_id: self.release.id,
                artifact_id: offer.artifact_id,
                target: offer.target,
                state: S::Queued,
                rollout: None,
                store_state: None,
                remote_id: None,
                url: None,
                error: None,
                log: Vec::new(),
                updated_at: now,
            },
        }
    }

    fn follow(mut self, current: &Stored<Current>) -> Step<Releases> {
        let release = &mut self.release;
        release.state = if current.release == release.id {
            overall(&release.publications)
        } else {
            ReleaseState::Superseded
        };
        let key = Current::key(release.app_id, &release.channel);
        let also = Change::new().require::<Current>(&key, current);
        Step::put(self).also(also)
    }

    /// The publications that are queued and wait for their target.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Publication> {
        let is_unsent = |p: &&Publication| p.target == Target::Ota || self.unsent.contains(&p.id);
        self.release.publications.iter().filter(|p| p.state == S::Queued).filter(is_unsent)
    }

    /// Publications are handed over first, then the stores are asked to withdraw or restore some, and
    /// then the other releases of the channel are told.
    pub(super) fn next(&self) -> Option<Effect> {
        let publish = self.waiting().next().map(|_| Effect::Publish);
        let ask = || self.requests.first().map(|request| Effect::Ask(*request));
        let tell = || self.to_tell.first().map(|other| Effect::Tell(*other));
        publish.or_else(ask).or_else(tell)
    }
}

/// The targets that a release is published to, or is being published to.
pub(crate) fn targets_of(release: &Release) -> BTreeSet<Target> {
    let goes_out = is_current(release.state) || release.state == ReleaseState::Publishing;
    release.publications.iter().filter(|_| goes_out).map(|p| p.target).collect()
}

fn is_of(publication: &Publication, offer: &Offer) -> bool {
    publication.artifact_id == offer.artifact_id && publication.target == offer.target
}

/// The choices after somebody chose again.
pub(crate) fn merged(before: &StoreOptions, chosen: Option<StoreOptions>) -> StoreOptions {
    let before = before.clone();
    let Some(chosen) = chosen else { return before };
    StoreOptions {
        notes: if chosen.notes.is_empty() { before.notes } else { chosen.notes },
        google_play: chosen.google_play.or(before.google_play),
        app_store: chosen.app_store.or(before.app_store),
        testflight: chosen.testflight.or(before.testflight),
        firebase: chosen.firebase.or(before.firebase),
    }
}

fn remove(release: &Release) -> Step<Releases> {
    let key = Current::key(release.app_id, &release.channel);
    remove_unneeded(release).also(Change::new().merge::<Current>(&key, release.id))
}

/// Removes a release that is not current.
pub(super) fn remove_unneeded(release: &Release) -> Step<Releases> {
    let let_go = |change: Change, artifact| {
        change.merge::<ArtifactRefs>(artifact, ArtifactRefsDelta::Remove(release.id))
    };
    Step::remove().also(release.artifact_ids.iter().fold(Change::new(), let_go))
}
