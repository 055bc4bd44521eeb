//! A service of an instance, with the revisions of its container.

use crate::ports::sealed::Sealed;
use contract::{
    DeploymentId, ImageId, JobId, Timestamp, VersionName,
    instances::{Role, ServiceHealth, ServiceState},
    templates::{SemanticVersion, TemplateService},
    text::{EnvName, Slug},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// A service of an instance, with the revisions of its container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Service {
    pub role: Role,
    /// The revision that serves.
    pub live: Revision,
    /// The revision that replaces the live one once it is healthy.
    pub candidate: Option<Candidate>,
    /// Earlier revisions that still finish requests.
    pub retired: Vec<RetiredRevision>,
    /// The last candidate that failed. The next switch clears it.
    #[serde(rename = "given_up")]
    pub rejected: Option<RejectedRevision>,
    /// The highest generation in use.
    pub generation: u32,
    /// Starts of the live revision since it was last healthy.
    pub attempts: u32,
    /// The instance runs without the service: it did not come up, or is being added. Only a service
    /// that is not essential is left out.
    #[serde(default)]
    pub left_out: bool,
    /// Why it did not come up, while it is left out for that. Earlier versions did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_because: Option<String>,
    /// Restarts after crashes.
    pub restarts: u32,
    #[serde(default, skip_serializing_if = "VolumeUse::is_none")]
    pub volume: VolumeUse,
}

/// Whether the volume of a service holds data. A volume that does is never made anew by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VolumeUse {
    /// No container has run with it, or the service has none.
    #[default]
    None,
    /// A container ran with it.
    Data,
    /// A container ran with it, and it is not there any more.
    Gone,
}

impl VolumeUse {
    fn is_none(&self) -> bool {
        *self == VolumeUse::None
    }
}

/// A service as one version of the instance's template defines it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    pub template_version: SemanticVersion,
    pub service: TemplateService,
}

/// One container of a service: its configuration, and what was observed last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Revision {
    /// Counts the revisions of a service. The container's name contains it.
    pub generation: u32,
    pub definition: Definition,
    pub image: ServiceImage,
    /// Variables that callers set in addition to the template's.
    pub env: BTreeMap<EnvName, Sealed>,
    /// The deployment that created the revision.
    pub deployment: Option<DeploymentId>,
    pub state: ServiceState,
    pub health: ServiceHealth,
    /// Consecutive observations that found the container healthy, counted up to
    /// [`PASSES`](super::reconcile::plan::PASSES).
    pub passes: u8,
    /// The port on the loopback address.
    pub port: Option<u16>,
    pub started_at: Option<Timestamp>,
}

/// The image of a revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceImage {
    /// The registered image. `None`: a deployment built it.
    pub image_id: Option<ImageId>,
    pub name: Slug,
    pub version: VersionName,
    /// The reference with a digest, once it is resolved. It names the same bytes forever.
    pub reference: Option<String>,
    /// The job that builds the image from its recipe. The revision waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<JobId>,
}

/// What the next revision of a service changes. Everything else is taken from the live revision.
#[derive(Debug, Clone, Default)]
pub struct ServiceChange {
    pub definition: Option<Definition>,
    pub image: Option<ServiceImage>,
    pub env: Option<BTreeMap<EnvName, Sealed>>,
}

/// A revision that is to replace the live one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    #[serde(rename = "next")]
    pub revision: Revision,
    /// When the candidate must be healthy.
    pub deadline: Timestamp,
    /// Why the candidate failed, and its last output. Its container is being removed.
    pub failed: Option<(String, Vec<String>)>,
}

/// A candidate that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RejectedRevision {
    pub deployment: Option<DeploymentId>,
    pub why: String,
    /// The last output of its container.
    pub log: Vec<String>,
}

/// A revision that served until `since`. Its container is removed when it has drained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetiredRevision {
    pub generation: u32,
    pub since: Timestamp,
}

impl Revision {
    /// A revision whose container does not exist yet.
    pub fn new(
        generation: u32,
        definition: Definition,
        image: ServiceImage,
        env: BTreeMap<EnvName, Sealed>,
    ) -> Self {
        Revision {
            generation,
            definition,
            image,
            env,
            deployment: None,
            state: ServiceState::Missing,
            health: ServiceHealth::Unknown,
            passes: 0,
            port: None,
            started_at: None,
        }
    }

    pub fn template(&self) -> &TemplateService {
        &self.definition.service
    }

    pub fn is_healthy(&self) -> bool {
        self.state == ServiceState::Running && self.health == ServiceHealth::Healthy
    }
}

impl ServiceImage {
    /// A registered image that is not resolved yet.
    pub fn registered(image_id: ImageId, name: Slug, version: VersionName) -> ServiceImage {
        ServiceImage { image_id: Some(image_id), name, version, reference: None, build: None }
    }

    /// The digest of the resolved image. An image that a deployment built has an id instead.
    pub fn digest(&self) -> Option<&str> {
        let reference = self.reference.as_deref()?;
        Some(reference.rsplit('@').next().unwrap_or(reference))
    }
}

impl Candidate {
    pub fn is_of(&self, deployment: DeploymentId) -> bool {
        self.revision.deployment == Some(deployment)
    }
}

impl Service {
    pub fn new(live: Revision) -> Service {
        Service {
            role: live.template().role,
            generation: live.generation,
            live,
            candidate: None,
            retired: Vec::new(),
            rejected: None,
            attempts: 0,
            left_out: false,
            left_out_because: None,
            restarts: 0,
            volume: VolumeUse::None,
        }
    }

    /// The live revision and the candidate.
    fn current(&self) -> impl Iterator<Item = &Revision> {
        let candidate = self.candidate.as_ref().map(|candidate| &candidate.revision);
        std::iter::once(&self.live).chain(candidate)
    }

    /// The live revision or the candidate, whichever this deployment created.
    pub fn created_by(&self, deployment: DeploymentId) -> Option<&Revision> {
        self.current().find(|revision| revision.deployment == Some(deployment))
    }

    /// The live revision or the candidate, whichever has this generation.
    pub fn revision(&self, generation: u32) -> Option<&Revision> {
        self.current().find(|revision| revision.generation == generation)
    }

    /// See [`Service::revision`].
    pub fn revision_mut(&mut self, generation: u32) -> Option<&mut Revision> {
        let candidate = self.candidate.as_mut().map(|candidate| &mut candidate.revision);
        let mut current = std::iter::once(&mut self.live).chain(candidate);
        current.find(|revision| revision.generation == generation)
    }

    /// The generations of all containers that the service may have.
    pub fn generations(&self) -> impl Iterator<Item = u32> {
        let retired = self.retired.iter().map(|retired| retired.generation);
        self.current().map(|revision| revision.generation).chain(retired)
    }

    /// The revision that follows the live one.
    pub fn next_revision(
        &mut self,
        change: ServiceChange,
        deployment: Option<DeploymentId>,
    ) -> Revision {
        self.generation += 1;
        let live = &self.live;
        let definition = change.definition.unwrap_or_else(|| live.definition.clone());
        let image = change.image.unwrap_or_else(|| live.image.clone());
        let env = change.env.unwrap_or_else(|| live.env.clone());
        let revision = Revision::new(self.generation, definition, image, env);
        Revision { deployment, ..revision }
    }

    /// The instance runs, and the first container of the service starts.
    pub fn is_being_added(&self) -> bool {
        self.left_out && self.candidate.is_some()
    }

    /// What members see of the service: its container, or that which is to be its first one. The first
    /// one gets no requests until it is live, so it is starting until then.
    pub fn shown(&self) -> (ServiceState, ServiceHealth) {
        match &self.candidate {
            Some(Candidate { revision, .. }) if self.left_out => match revision.health {
                ServiceHealth::Healthy => (revision.state, ServiceHealth::Starting),
                health => (revision.state, health),
            },
            _ => (self.live.state, self.live.health),
        }
    }

    /// Ends that the instance runs without the service.
    pub fn bring_in(&mut self) {
        (self.left_out, self.left_out_because) = (false, None);
    }

    /// An instance fails when an essential service does not come up.
    pub fn is_essential(&self) -> bool {
        !matches!(self.role, Role::Dashboard | Role::Storefront)
    }

    /// How long a container may take to stop before it is killed.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(if self.role.is_database() { 60 } else { 30 })
    }
}
