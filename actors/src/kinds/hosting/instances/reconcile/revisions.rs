//! What becomes of the revisions of an instance's services: they are observed and pinned to their images;
//! candidates become live or are rejected; a service that cannot run is left out. Pure.

use super::{
    observe::{Observation, ObservedContainer},
    plan::PASSES,
};
use crate::kinds::hosting::instances::{
    record::Instance,
    rules::{PROVISION_WITHIN, ResolvedImage},
    service::{Candidate, RejectedRevision, RetiredRevision, Revision, VolumeUse},
};
use contract::{
    Timestamp,
    instances::{Role, ServiceHealth, ServiceState},
};

impl Instance {
    pub(super) fn apply_observation(&mut self, observation: &Observation) {
        for service in &mut self.services {
            let role = service.role;
            let candidate = service.candidate.as_mut().map(|candidate| &mut candidate.revision);
            for revision in std::iter::once(&mut service.live).chain(candidate) {
                revision.apply_observation(observation.get(role, revision.generation));
            }
            if observation.without_volume.contains(&role) {
                service.volume = VolumeUse::Gone;
            } else if service.live.template().volume.is_some()
                && service.live.state == ServiceState::Running
            {
                service.volume = VolumeUse::Data;
            }
        }
    }

    /// Pins the revision to exactly this image. The time of a build is no part of the deadlines.
    pub(super) fn pin_image(&mut self, image: ResolvedImage, now: Timestamp) {
        let Some(service) = self.service_mut(image.role) else { return };
        let Some(revision) = service.revision_mut(image.generation) else { return };
        revision.image.reference = Some(image.reference);
        if revision.image.build.take().is_none() {
            return;
        }
        self.last_error = self.left_out_because();
        let later = |deadline: Timestamp| deadline.max(now + PROVISION_WITHIN);
        let service = self.service_mut(image.role);
        match service.and_then(|service| service.candidate.as_mut()) {
            Some(candidate) if candidate.revision.generation == image.generation => {
                candidate.deadline = later(candidate.deadline);
            }
            _ => self.deadline = self.deadline.map(later),
        }
    }

    pub(super) fn reject(&mut self, role: Role, why: String, log: Vec<String>) {
        if let Some(candidate) = self.service_mut(role).and_then(|s| s.candidate.as_mut()) {
            candidate.failed.get_or_insert((why, log));
        }
    }

    pub(super) fn dismiss(&mut self, role: Role) {
        if let Some(service) = self.service_mut(role)
            && let Some(Candidate { revision, failed: Some((why, log)), .. }) =
                service.candidate.take()
        {
            let deployment = revision.deployment;
            let left_out = service.left_out.then(|| log.clone());
            if left_out.is_some() {
                service.left_out_because = Some(why.clone());
            }
            service.rejected = Some(RejectedRevision { deployment, why, log });
            if let Some(log) = left_out {
                self.last_error = self.left_out_because();
                self.last_log = log;
            }
        }
    }

    /// Leaves out a service that is not essential. `false`: the service is essential.
    pub(super) fn leave_out(&mut self, role: Role, why: &str, log: &[String]) -> bool {
        let Some(service) = self.service_mut(role).filter(|s| !s.is_essential()) else {
            return false;
        };
        (service.left_out, service.left_out_because) = (true, Some(why.to_owned()));
        self.last_error = self.left_out_because();
        self.last_log = log.to_vec();
        true
    }

    /// What is wrong with an instance that comes up without a service: why the first one is left out.
    pub(super) fn left_out_because(&self) -> Option<String> {
        let mut left_out = self.services.iter().filter(|service| service.left_out);
        left_out.find_map(|service| {
            let why = service.left_out_because.as_ref()?;
            Some(format!("{}: {why}; it is left out", service.role.label()))
        })
    }

    /// Makes a revision the live one and retires the one before.
    pub(in crate::kinds::hosting::instances) fn make_live(
        &mut self,
        role: Role,
        revision: Revision,
        now: Timestamp,
    ) {
        let Some(service) = self.service_mut(role) else { return };
        let before = std::mem::replace(&mut service.live, revision);
        service.retired.push(RetiredRevision { generation: before.generation, since: now });
        service.bring_in();
        (service.attempts, service.rejected) = (0, None);
        let version = service.live.definition.template_version.clone();
        if role == Role::Server {
            self.template_version = version;
        }
    }

    /// A candidate of an instance that stops has no live revision to replace.
    pub(in crate::kinds::hosting::instances) fn fail_candidates(&mut self, why: &str) {
        for candidate in self.services.iter_mut().filter_map(|s| s.candidate.as_mut()) {
            candidate.failed.get_or_insert_with(|| (why.to_owned(), Vec::new()));
        }
    }
}

impl Revision {
    fn apply_observation(&mut self, observed: Option<&ObservedContainer>) {
        let Some(observed) = observed else {
            (self.state, self.health) = (ServiceState::Missing, ServiceHealth::Unknown);
            (self.port, self.passes) = (None, 0);
            return;
        };
        let restarted = self.started_at != observed.started_at;
        (self.state, self.health) = (observed.state, observed.health);
        (self.port, self.started_at) = (observed.port, observed.started_at);
        self.passes = match observed.health {
            ServiceHealth::Healthy if restarted => 1,
            ServiceHealth::Healthy => (self.passes + 1).min(PASSES),
            _ => 0,
        };
    }
}
