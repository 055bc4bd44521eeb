//! What is kept of an instance: what was asked for, and what was seen last.

use crate::{kinds::backups::Schedule, ports::sealed::Sealed};
use contract::{
    AppId, DeploymentId, ImageId, Name, ProjectId, TemplateId, Timestamp, VersionName,
    backups::BackupKind,
    instances::{
        DesiredState, InstanceKind, InstanceState, Resources, Role, ServiceHealth, ServiceState,
    },
    templates::{SemanticVersion, TemplateService},
    text::{EnvName, Slug},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// What is kept of an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// Where it belongs.
    pub project_id: ProjectId,
    /// Whose it is.
    pub app_id: AppId,
    /// What it is for.
    pub kind: InstanceKind,
    /// Shown to people.
    pub name: Name,
    /// What it was made of.
    pub template_id: TemplateId,
    /// Which version its server is of.
    pub template_version: SemanticVersion,
    /// What its server may use.
    pub resources: Resources,
    /// Its own secrets, by the names that its template gives them.
    pub secrets: BTreeMap<String, Sealed>,
    /// Its services, in the order in which they start.
    pub parts: Vec<Part>,
    /// When its databases are dumped.
    #[serde(default)]
    pub schedules: BTreeMap<BackupKind, Schedule>,
    /// What was asked for.
    pub desired: DesiredState,
    /// What it is.
    pub state: InstanceState,
    /// The end of a state that must end; of one that failed for the time being, when to try again.
    pub deadline: Option<Timestamp>,
    /// With `restarting`: it is on its way up again.
    pub coming_up: bool,
    /// With `deleting` and `deleted`: the volumes go too.
    pub delete_data: bool,
    /// When services came to their end by themselves, of the last while.
    pub crashes: Vec<Timestamp>,
    /// Since when the engine does not answer.
    pub away_since: Option<Timestamp>,
    /// Why it is not as it should be.
    pub last_error: Option<String>,
    /// The last output of what failed.
    pub last_log: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
}

/// A service of an instance, and its containers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What it is in the instance.
    pub role: Role,
    /// The one that serves.
    pub live: Incarnation,
    /// The one that is to serve, once it is well.
    pub candidate: Option<Candidate>,
    /// Those that served before, until nobody is in the middle of something with them.
    pub retired: Vec<Retired>,
    /// The candidate that would not do, until another one serves.
    pub given_up: Option<GivenUp>,
    /// The number of the newest container.
    pub generation: u32,
    /// How often it was started since it was last well.
    pub attempts: u32,
    /// It did not come up, and the instance goes on without it. Of a service that others can do
    /// without only.
    #[serde(default)]
    pub left_out: bool,
    /// How often it came to its end by itself and was started again.
    pub restarts: u32,
}

/// What a service is, as a version of the instance's template says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Which version.
    pub template_version: SemanticVersion,
    /// What it says. Which image runs is a matter of each container.
    pub service: TemplateService,
}

/// One container of a service: what it is to be, and what was seen of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incarnation {
    /// Which one.
    pub generation: u32,
    /// What it is.
    pub definition: Definition,
    /// What it runs.
    pub image: Source,
    /// What was set for it beyond the template.
    pub env: BTreeMap<EnvName, Sealed>,
    /// The deployment that it came with.
    pub deployment: Option<DeploymentId>,
    /// Whether it runs.
    pub state: ServiceState,
    /// Whether it is well.
    pub health: ServiceHealth,
    /// How often in a row its health check passed, up to what is needed.
    pub passes: u8,
    /// Where it is reached on the loopback address.
    pub port: Option<u16>,
    /// When it was last started.
    pub started_at: Option<Timestamp>,
}

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The registered image; none for one that a deployment built.
    pub image_id: Option<ImageId>,
    /// What it is called.
    pub name: Slug,
    /// Which version of it.
    pub version: VersionName,
    /// What the engine is asked for, once it is settled. It names one image for ever.
    pub reference: Option<String>,
}

/// What is to change about a service with its next container. Everything else stays as it is when the
/// container is made.
#[derive(Debug, Clone, Default)]
pub struct Next {
    /// What the service is.
    pub definition: Option<Definition>,
    /// What it runs.
    pub image: Option<Source>,
    /// What is set for it beyond the template.
    pub env: Option<BTreeMap<EnvName, Sealed>>,
}

/// A container that is to serve once it is well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// What it is.
    pub next: Incarnation,
    /// Until when it must be well.
    pub deadline: Timestamp,
    /// Why it will not serve, and its last output. It is being removed.
    pub failed: Option<(String, Vec<String>)>,
}

/// A candidate that would not do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenUp {
    /// Who wanted it.
    pub deployment: Option<DeploymentId>,
    /// Why it would not do.
    pub why: String,
    /// Its last output.
    pub log: Vec<String>,
}

/// A container that served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retired {
    /// Which one.
    pub generation: u32,
    /// Since when it gets no new requests.
    pub since: Timestamp,
}

impl Incarnation {
    /// One that nobody has seen yet.
    pub fn new(
        generation: u32,
        definition: Definition,
        image: Source,
        env: BTreeMap<EnvName, Sealed>,
    ) -> Self {
        Incarnation {
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

    /// What it is.
    pub fn service(&self) -> &TemplateService {
        &self.definition.service
    }

    /// Whether it runs and is well.
    pub fn is_well(&self) -> bool {
        self.state == ServiceState::Running && self.health == ServiceHealth::Healthy
    }
}

impl Candidate {
    /// Whether this deployment wants it.
    pub fn is_of(&self, deployment: DeploymentId) -> bool {
        self.next.deployment == Some(deployment)
    }
}

impl Part {
    /// One of a service that is new: what it is to be, and nothing seen of it yet.
    pub fn new(live: Incarnation) -> Part {
        Part {
            role: live.service().role,
            generation: live.generation,
            live,
            candidate: None,
            retired: Vec::new(),
            given_up: None,
            attempts: 0,
            left_out: false,
            restarts: 0,
        }
    }

    /// The container that this deployment brought, as long as it is there.
    pub fn made_by(&self, deployment: DeploymentId) -> Option<&Incarnation> {
        let candidate = self.candidate.as_ref().map(|candidate| &candidate.next);
        [Some(&self.live), candidate]
            .into_iter()
            .flatten()
            .find(|made| made.deployment == Some(deployment))
    }

    /// The next container of it, which takes over from the one that serves.
    pub fn succeed(&mut self, next: Next, deployment: Option<DeploymentId>) -> Incarnation {
        self.generation += 1;
        let live = &self.live;
        let definition = next.definition.unwrap_or_else(|| live.definition.clone());
        let image = next.image.unwrap_or_else(|| live.image.clone());
        let env = next.env.unwrap_or_else(|| live.env.clone());
        let made = Incarnation::new(self.generation, definition, image, env);
        Incarnation { deployment, ..made }
    }

    /// What it is in the instance.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether the instance is nothing without it.
    pub fn is_essential(&self) -> bool {
        !matches!(self.role(), Role::Dashboard | Role::Storefront)
    }

    /// How long it may take to end by itself.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(if self.role().is_database() { 60 } else { 30 })
    }
}

impl Instance {
    /// Whether people no longer see it. Its volumes may be kept for a while.
    pub fn is_deleted(&self) -> bool {
        matches!(self.state, InstanceState::Deleting | InstanceState::Deleted)
    }

    /// The service of this role.
    pub fn part(&self, role: Role) -> Option<&Part> {
        self.parts.iter().find(|part| part.role() == role)
    }

    /// The service of this role.
    pub fn part_mut(&mut self, role: Role) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| part.role() == role)
    }

    /// Whether something of it is on its way.
    pub fn is_at_work(&self) -> bool {
        use InstanceState as S;
        let parts = self.parts.iter().any(|p| p.candidate.is_some() || !p.retired.is_empty());
        let passing = [S::Provisioning, S::Starting, S::Stopping, S::Restarting, S::Deleting]
            .contains(&self.state);
        parts || passing
    }

    /// How long it may take to stop, whole.
    pub fn stop_within(&self) -> Duration {
        self.parts.iter().map(Part::grace).sum::<Duration>() + Duration::from_secs(15)
    }
}
