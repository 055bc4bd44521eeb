//! What the replies of targets and the reports of publications mean for their release, and how a
//! release is rolled back. Pure.

use crate::{
    kinds::delivery::releases::{
        current::Current,
        rules::{PublicationRequest, Releases, State, TargetReply, name},
    },
    runtime::resource::{Moment, Step},
};
use contract::{
    Fault, PublicationId, Timestamp,
    releases::{Publication, PublicationState as S, ReleaseState, Target},
};
use store::{Change, Stored};

/// Whether users get a release in this state.
pub(super) fn is_current(state: ReleaseState) -> bool {
    matches!(state, ReleaseState::Published | ReleaseState::PartiallyPublished)
}

/// The state of a release with these publications, if it is neither superseded nor rolled back.
pub(super) fn overall(publications: &[Publication]) -> ReleaseState {
    let count = |states: &[S]| publications.iter().filter(|p| states.contains(&p.state)).count();
    let live = count(&[S::Live, S::Halted]);
    let under_way = count(&[S::Queued, S::Uploading, S::Processing, S::InReview]);
    match (live, under_way) {
        (0, 0) => ReleaseState::Failed,
        (0, _) => ReleaseState::Publishing,
        (n, _) if n == publications.len() => ReleaseState::Published,
        _ => ReleaseState::PartiallyPublished,
    }
}

impl State {
    /// Takes the replies of the targets.
    pub(in crate::kinds::delivery::releases) fn published(
        mut self,
        at: &Moment<Releases>,
        results: &[(PublicationId, TargetReply)],
        current: Option<&Stored<Current>>,
    ) -> Step<Releases> {
        for (id, reply) in results {
            let publications = &mut self.release.publications;
            let queued = publications.iter_mut().find(|p| p.id == *id && p.state == S::Queued);
            let Some(publication) = queued else { continue };
            self.unsent.remove(id);
            if *reply == TargetReply::Begun {
                continue;
            }
            publication.updated_at = at.now;
            (publication.state, publication.url, publication.error) = match reply {
                TargetReply::Live { url } => (S::Live, Some(url.clone()), None),
                TargetReply::Refused(why) => (S::Failed, None, Some(why.clone())),
                TargetReply::Begun => continue,
            };
        }
        self.follow_publications(at.now, current)
    }

    /// Takes the report of a publication in a store. One that is being handed over reports again:
    /// what it tells may be from before.
    pub(super) fn report(
        mut self,
        now: Timestamp,
        reported: Publication,
        current: Option<&Stored<Current>>,
    ) -> Result<Step<Releases>, Fault> {
        if self.unsent.contains(&reported.id) {
            return Err(Fault::Stale);
        }
        let known = self.release.publications.iter_mut().find(|p| p.id == reported.id);
        match known.filter(|known| **known != reported) {
            Some(known) => *known = reported,
            None => return Ok(Step::keep()),
        }
        Ok(self.follow_publications(now, current))
    }

    /// Follows the states of the publications. A release that users get for the first time becomes
    /// the current release of its channel, unless a later one became current since somebody asked
    /// for it. A release that was superseded while it went to more targets stays superseded.
    fn follow_publications(
        mut self,
        now: Timestamp,
        current: Option<&Stored<Current>>,
    ) -> Step<Releases> {
        let is_waiting = self.waiting().next().is_some();
        let release = &mut self.release;
        if matches!(release.state, ReleaseState::Superseded | ReleaseState::RolledBack) {
            return Step::put(self);
        }
        release.state =
            if is_waiting { ReleaseState::Publishing } else { overall(&release.publications) };
        let before = current.map(|c| c.release);
        if !is_current(release.state) || before == Some(release.id) {
            return Step::put(self);
        }
        let is_overtaken = current.is_some_and(|c| self.asked_at.is_some_and(|at| c.since > at));
        let key = Current::key(release.app_id, &release.channel);
        if release.published_at.is_some() || is_overtaken {
            release.published_at = release.published_at.or(Some(now));
            release.state = ReleaseState::Superseded;
            // A rollback may have moved the pointer to this release since it was read.
            let unchanged = match current {
                Some(current) => Change::new().require::<Current>(&key, current),
                None => Change::new().require_absent::<Current>(&key),
            };
            return Step::put(self).also(unchanged);
        }
        release.published_at = Some(now);
        let pointer = Current { release: release.id, since: now };
        let also = Change::new().replace::<Current>(&key, current, pointer);
        self.to_tell.extend(before);
        Step::put(self).also(also)
    }

    pub(super) fn roll_back(
        mut self,
        now: Timestamp,
        to: &Stored<Releases>,
        current: &Stored<Current>,
        restore: &[PublicationId],
    ) -> Result<Step<Releases>, Fault> {
        self.is_current(current)?;
        self.is_handed_over()?;
        let key = Current::key(self.release.app_id, &self.release.channel);
        let id = to.state.release.id;
        let pointer = Current { release: id, since: now };
        let also = Change::new().replace::<Current>(&key, Some(current), pointer);
        let also = also.require::<Releases>(&id, to);
        self.take_back();
        self.release.rolled_back_to = Some(id);
        self.close_install_page(now);
        self.requests.extend(restore.iter().map(|id| PublicationRequest::Restore(*id)));
        self.to_tell.push(id);
        Ok(Step::put(self).also(also))
    }

    /// Takes back what users have, and leaves its channel without a release.
    pub(super) fn withdraw(
        mut self,
        now: Timestamp,
        current: &Stored<Current>,
    ) -> Result<Step<Releases>, Fault> {
        self.is_current(current)?;
        self.is_handed_over()?;
        let key = Current::key(self.release.app_id, &self.release.channel);
        let also = Change::new().remove::<Current>(&key, current);
        self.take_back();
        self.close_install_page(now);
        Ok(Step::put(self).also(also))
    }

    /// Takes back what no user has got yet.
    pub(super) fn withdraw_unseen(mut self) -> Result<Step<Releases>, Fault> {
        self.is_handed_over()?;
        if self.release.published_at.is_some() {
            return Err(Fault::Stale);
        }
        self.take_back();
        Ok(Step::put(self))
    }

    fn is_current(&self, current: &Stored<Current>) -> Result<(), Fault> {
        match current.release == self.release.id {
            true => Ok(()),
            false => Err(Fault::NotNow(
                "this is not the current release of its channel; only that one can be rolled back"
                    .into(),
            )),
        }
    }

    fn close_install_page(&mut self, now: Timestamp) {
        for publication in &mut self.release.publications {
            if publication.target == Target::Ota && publication.state == S::Live {
                (publication.state, publication.updated_at) = (S::Halted, now);
            }
        }
    }

    /// A publication that its target does not know yet cannot be withdrawn.
    fn is_handed_over(&self) -> Result<(), Fault> {
        match self.waiting().next() {
            None => Ok(()),
            Some(_) => Err(Fault::NotNow(format!(
                "this release is {}; try again in a moment",
                name(ReleaseState::Publishing)
            ))),
        }
    }

    fn take_back(&mut self) {
        self.release.state = ReleaseState::RolledBack;
        let in_stores = self.release.publications.iter().filter(|p| p.target != Target::Ota);
        let withdrawn = in_stores.filter(|p| p.state != S::Failed);
        self.requests.extend(withdrawn.map(|p| PublicationRequest::Withdraw(p.id)));
    }
}
