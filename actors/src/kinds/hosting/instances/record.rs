//! The record of an instance: what was asked for, and what was observed last.

use super::service::{Revision, Service};
use crate::ports::sealed::Sealed;
use contract::{
    AppId, BackupId, EngineId, Name, OrganizationId, ProjectId, Sha256, TemplateId, Timestamp,
    backups::BackupKind,
    instances::{DesiredState, InstanceKind, InstanceState, Resources, Role},
    templates::SemanticVersion,
    text::CronExpression,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    pub project_id: ProjectId,
    pub app_id: AppId,
    pub kind: InstanceKind,
    pub name: Name,
    /// The engine that has its containers and volumes. `None`: that of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineId>,
    /// The move to another engine that is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving: Option<Move>,
    /// Why the last move did not come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_moved: Option<String>,
    /// What it left at other engines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<LeftBehind>,
    pub template_id: TemplateId,
    /// The template version of the server that serves.
    pub template_version: SemanticVersion,
    /// The limits of the server. The template sets those of the other services.
    pub resources: Resources,
    /// Generated secrets, by the names that the template gives them.
    pub secrets: BTreeMap<String, Sealed>,
    /// In the order in which they start.
    #[serde(rename = "parts")]
    pub services: Vec<Service>,
    /// Schedules of an earlier version, until they are carried over to records of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub schedules: BTreeMap<BackupKind, EarlierSchedule>,
    /// The backup that is restored before the server starts for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_restore: Option<InitialRestore>,
    pub desired: DesiredState,
    pub state: InstanceState,
    /// When a transient state must have ended. For `failed`: when the instance is started again.
    /// For `deleted`: when its volumes are removed.
    pub deadline: Option<Timestamp>,
    /// Tells the two halves of `restarting` apart: it has stopped and is starting.
    pub coming_up: bool,
    /// With `deleting` and `deleted`: the volumes are removed too.
    pub delete_data: bool,
    /// With `deleting` and `deleted`: the app was deleted, and this organization may bring the data
    /// back into another app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_to: Option<OrganizationId>,
    /// The crashes of the last ten minutes.
    pub crashes: Vec<Timestamp>,
    /// Since when the engine is unreachable. Deadlines stand still meanwhile.
    #[serde(rename = "away_since")]
    pub unreachable_since: Option<Timestamp>,
    /// Whether an instance that is in no transition is to be compared with its containers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observing: bool,
    /// The security advisories that members were told of: those that concerned the images when they were
    /// looked at last.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub advised: BTreeSet<String>,
    /// What the volumes and the containers held on the disk when they were measured last, in bytes.
    /// `None`: that was not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Why the instance may not run: the instances of its organization hold too much on the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// Whether the instance may not run because it grew while the disk was nearly full. It may when there is room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits_room: bool,
    pub last_error: Option<String>,
    /// The last output of the container that failed.
    pub last_log: Vec<String>,
    pub created_at: Timestamp,
    /// When the state last changed.
    pub updated_at: Timestamp,
}

/// A move to another engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// `None`: the engine of the settings.
    pub to: Option<EngineId>,
    /// The services whose images are there.
    pub prepared: BTreeSet<Role>,
    /// The services whose volumes are there.
    pub copied: BTreeSet<Role>,
    /// The service whose volume is being copied.
    pub copying: Option<Role>,
    /// How often the step at hand failed.
    pub failures: u32,
}

/// The volumes of an instance at an engine that it left, or that it did not get to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftBehind {
    /// `None`: the engine of the settings.
    pub engine: Option<EngineId>,
    /// When their time is over. `None`: it is, so they are removed.
    pub until: Option<Timestamp>,
}

/// A backup schedule as earlier versions stored it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EarlierSchedule {
    /// In UTC.
    pub cron: CronExpression,
    /// How many backups are kept.
    pub keep: u32,
    /// Whether each backup is verified.
    #[serde(default)]
    pub verify: bool,
    pub next_at: Timestamp,
}

/// The restore of the backup that an instance was created from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InitialRestore {
    pub backup: BackupId,
    /// The hash of the backup's file.
    pub sha256: Sha256,
    /// The database that the backup is restored into.
    pub role: Role,
    /// Whether the database is up and the restore has its deadline.
    pub begun: bool,
    /// Attempts that failed since the instance was started.
    pub failures: u32,
}

impl Instance {
    /// The state as a word in lower case, for messages.
    pub fn state_name(&self) -> String {
        format!("{:?}", self.state).to_lowercase()
    }

    /// Members do not see a deleted instance. Its volumes may be kept for a while.
    pub fn is_deleted(&self) -> bool {
        matches!(self.state, InstanceState::Deleting | InstanceState::Deleted)
    }

    pub fn service(&self, role: Role) -> Option<&Service> {
        self.services.iter().find(|service| service.role == role)
    }

    pub fn service_mut(&mut self, role: Role) -> Option<&mut Service> {
        self.services.iter_mut().find(|service| service.role == role)
    }

    pub fn revision_mut(&mut self, role: Role, generation: u32) -> Option<&mut Revision> {
        self.service_mut(role)?.revision_mut(generation)
    }

    /// Whether the image of a live revision is being built.
    pub fn awaits_build(&self) -> bool {
        self.services.iter().any(|service| service.live.image.build.is_some())
    }

    /// Whether the state is transient, a service is being replaced, or the instance is moved.
    pub fn is_in_transition(&self) -> bool {
        use InstanceState as S;
        let replacing =
            |service: &Service| service.candidate.is_some() || !service.retired.is_empty();
        self.services.iter().any(replacing)
            || self.moving.is_some()
            || [S::Provisioning, S::Starting, S::Stopping, S::Restarting, S::Deleting]
                .contains(&self.state)
    }

    /// How long stopping all services may take.
    pub fn stop_within(&self) -> Duration {
        self.services.iter().map(Service::grace).sum::<Duration>() + Duration::from_secs(15)
    }
}
