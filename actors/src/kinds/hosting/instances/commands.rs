//! What may be asked of an instance.

use super::{
    record::{InitialRestore, Instance},
    service::{Service, ServiceChange},
};
use crate::{
    kinds::{
        hosting::{engines::Engines, images::Images, templates::Templates},
        people::apps::{App, Apps},
    },
    ports::sealed::Sealed,
};
use contract::{
    AppId, DeploymentId, EngineId, ImageId, Name, OrganizationId,
    instances::{Resources, Role},
    text::EnvName,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use store::Snapshot;

#[derive(Clone)]
pub enum Command {
    Start {
        /// Make an empty volume where one with data is gone.
        accept_data_loss: bool,
    },
    Stop,
    /// Stop the instance, then start it again.
    Restart,
    Delete {
        /// Remove the volumes too.
        data: bool,
    },
    /// The app is deleted. The volumes are kept as long as those of a deleted instance, for this
    /// organization.
    Leave(OrganizationId),
    /// Bring a deleted instance back, with its volumes.
    Undelete {
        /// Its template, which must still exist when this is written.
        template: Snapshot<Templates>,
        /// The app that gets it, as it was read. `None`: its own app.
        app: Option<(AppId, Snapshot<Apps>)>,
    },
    /// Move to another engine.
    Move {
        /// The engine, which must still take instances when this is written. `None`: that of the settings.
        to: Option<(EngineId, Snapshot<Engines>)>,
    },
    /// Begin anew at another engine, from a backup, because its own is lost.
    Recover {
        /// See [`Command::Move`].
        to: Option<(EngineId, Snapshot<Engines>)>,
        restore: InitialRestore,
    },
    /// This engine is gone for good, with what the instance has there.
    LoseEngine(EngineId),
    /// Change the name, or the server's resources and variables. `None` keeps what was set.
    Update {
        name: Option<Name>,
        resources: Option<Resources>,
        env: Option<BTreeMap<EnvName, Sealed>>,
    },
    /// Reconcile an instance at rest: its containers may have changed.
    Observe {
        /// Services whose container left the recorded port. No requests are sent there any more.
        lost: Vec<Role>,
    },
    /// These security advisories concern the images of the live revisions.
    Advise(BTreeSet<String>),
    /// The volumes and containers hold so many bytes on the disk.
    Measure(u64),
    /// Stop the instance for this reason, and refuse to start it.
    Hold(String),
    /// The reason is gone.
    Release,
    /// Stop the instance, which grew while the disk was nearly full, and refuse to start it.
    AwaitRoom,
    /// The disk has room again.
    FindRoom,
    AddService {
        service: Box<Service>,
        /// Secrets that the service needs. Existing secrets are kept.
        secrets: BTreeMap<String, Sealed>,
    },
    /// Replace the live revision of a service without downtime.
    Replace {
        role: Role,
        change: Box<ServiceChange>,
        /// Secrets that the revision needs. Existing secrets are kept.
        secrets: BTreeMap<String, Sealed>,
        deployment: Option<DeploymentId>,
        /// How long the new revision may take to become healthy.
        within: Duration,
    },
    /// Reject the candidate of this deployment, for this reason.
    Withdraw(DeploymentId, String),
}

/// A new instance, with everything that was read to create it: none of it may have changed when
/// the instance is written.
#[derive(Clone)]
pub struct Creation {
    pub instance: Instance,
    pub template: Snapshot<Templates>,
    /// The images of its services.
    pub images: Vec<(ImageId, Snapshot<Images>)>,
    /// The engine that it was placed on. `None`: that of the settings.
    pub engine: Option<(EngineId, Snapshot<Engines>)>,
    pub app: ForApp,
}

impl std::fmt::Debug for Creation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Creation").field("instance", &self.instance).finish_non_exhaustive()
    }
}

/// The app of a new instance.
#[derive(Clone)]
pub enum ForApp {
    Existing(Snapshot<Apps>),
    /// The app is created together with the instance.
    New(Box<App>),
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Command::Start { .. } => "Start",
            Command::Stop => "Stop",
            Command::Restart => "Restart",
            Command::Move { .. } => "Move",
            Command::Recover { .. } => "Recover",
            Command::LoseEngine(..) => "LoseEngine",
            Command::Delete { .. } => "Delete",
            Command::Leave(..) => "Leave",
            Command::Undelete { .. } => "Undelete",
            Command::Update { .. } => "Update",
            Command::Observe { .. } => "Observe",
            Command::Advise(..) => "Advise",
            Command::Measure(..) => "Measure",
            Command::Hold(..) => "Hold",
            Command::Release => "Release",
            Command::AwaitRoom => "AwaitRoom",
            Command::FindRoom => "FindRoom",
            Command::AddService { .. } => "AddService",
            Command::Replace { .. } => "Replace",
            Command::Withdraw(..) => "Withdraw",
        })
    }
}
