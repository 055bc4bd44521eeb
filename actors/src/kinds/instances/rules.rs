//! The rules of an instance:
//! `provisioning → starting → running ⇄ degraded → stopping → stopped`, `restarting`, `failed`,
//! `deleting → deleted`. What is asked for changes what is desired; what is seen changes what is.

use super::{
    reconcile::apply::fold,
    reconcile::plan::{Act, Look},
    record::{Instance, Next, Part},
};
use crate::{
    kinds::{
        apps::{self, App, Apps},
        deployments::Served,
        images::Images,
        projects::Projects,
        templates::Templates,
    },
    ports::sealed::Sealed,
    runtime::{
        entries::{SortedMoment, Under},
        ref_count::{Uses, UsesDelta},
        resource::{Child, Intent, Kept, Moment, Resource, Retry, Step, Unique},
    },
    world::World,
};
use contract::{
    AppId, DeploymentId, Fault, ImageId, InstanceId, Timestamp,
    instances::{InstanceKind, Role},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use store::{Change, Entries, Snapshot};

/// The instances.
#[derive(Debug, Clone, Copy)]
pub struct Instances;

/// How long making the containers may take: images may have to be pulled.
pub const PROVISION_WITHIN: Duration = Duration::from_secs(10 * 60);

/// What can be asked of an instance.
#[derive(Clone)]
pub enum Command {
    /// Have it run.
    Start,
    /// Have it stopped.
    Stop,
    /// Stop it and start it again.
    Restart,
    /// Remove it; with its data, or without.
    Delete {
        /// The volumes go too.
        data: bool,
    },
    /// Something about its containers may have changed. The containers of these services are
    /// known not to be where the record says: nobody is sent there any more.
    Look(Vec<Role>),
    /// A state that must end has not.
    Overdue,
    /// Add a service that was not there before.
    Extend {
        /// What it is.
        part: Box<Part>,
        /// New secrets that it asks for. Those that the instance has already stay.
        secrets: BTreeMap<String, Sealed>,
    },
    /// Have a new container of a service take the place of the one that serves.
    Replace {
        /// Of which service.
        role: Role,
        /// What is to change with it.
        next: Box<Next>,
        /// New secrets that it asks for. Those that the instance has already stay.
        secrets: BTreeMap<String, Sealed>,
        /// Who wants it.
        deployment: Option<DeploymentId>,
        /// How long it may take to become well.
        within: Duration,
    },
    /// A deployment does not want its candidate any more.
    Withdraw(DeploymentId, String),
}

/// An instance to be made, of what was read.
#[derive(Clone)]
pub struct Creation {
    /// What it is.
    pub instance: Instance,
    /// The template.
    pub template: Snapshot<Templates>,
    /// The images of its services.
    pub images: Vec<(ImageId, Snapshot<Images>)>,
    /// The app that it is for.
    pub app: ForApp,
}

impl std::fmt::Debug for Creation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Creation").field("instance", &self.instance).finish_non_exhaustive()
    }
}

/// The app that an instance is made for.
#[derive(Clone)]
pub enum ForApp {
    /// It is there, as it was read.
    Known(Snapshot<Apps>),
    /// It is made together with the instance.
    New(Box<App>),
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Command::Start => "Start",
            Command::Stop => "Stop",
            Command::Restart => "Restart",
            Command::Delete { .. } => "Delete",
            Command::Look(_) => "Look",
            Command::Overdue => "Overdue",
            Command::Extend { .. } => "Extend",
            Command::Replace { .. } => "Replace",
            Command::Withdraw(..) => "Withdraw",
        })
    }
}

/// What an instance does outside of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Look at its containers, and do the next thing.
    Reconcile,
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The engine does not answer.
    Away(String),
    /// The containers were looked at, and this was done.
    Looked {
        /// What was seen.
        look: Look,
        /// What was to be done after that.
        act: Act,
        /// Which image was settled by that, where one was; or why it cannot be done.
        done: Result<Option<(Role, u32, String)>, String>,
        /// The last output of a container that came to its end.
        log: Vec<String>,
    },
}

store::entries! {
    /// What instances are found by.
    pub enum InstanceIndex of Instances {
        All = "all",
        /// It holds schedules of an earlier version. The spelling is theirs: they are due then.
        EarlierSchedules { at: SortedMoment } = "backup",
    }
}

store::claims! {
    /// What no two instances have in common.
    pub enum InstanceClaim of Instances {
        /// Being the backend of an app.
        Backend { app: AppId } = "backend",
        /// Being the market server of an app.
        Market { app: AppId } = "market",
    }
}

impl InstanceClaim {
    /// Being an app's instance of this kind.
    pub fn of(app: AppId, kind: InstanceKind) -> Self {
        match kind {
            InstanceKind::Backend => InstanceClaim::Backend { app },
            InstanceKind::Market => InstanceClaim::Market { app },
        }
    }
}

/// What is said where an app has an instance of this kind.
pub(super) fn taken(kind: InstanceKind) -> Fault {
    Fault::Exists(match kind {
        InstanceKind::Backend => "this app has a backend instance already".into(),
        InstanceKind::Market => "this app has a market server already".into(),
    })
}

impl Resource for Instances {
    const TIME_LIMIT: Duration = Duration::from_secs(11 * 60);
    type New = Creation;
    type State = Instance;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(_: &Moment<Self>, creation: Creation) -> Result<Step<Self>, Fault> {
        Ok(create(creation))
    }

    fn on_command(
        instance: Instance,
        at: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        if instance.is_deleted() {
            return Ok(instance.on_command_when_deleted(at, command));
        }
        instance.on_command(at, command)
    }

    fn on_outcome(instance: Instance, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        fold(at.id, &instance, outcome, at.now)
    }

    fn is_deleted(instance: &Instance) -> bool {
        instance.is_deleted()
    }

    fn accepts_deleted(command: &Command) -> bool {
        matches!(command, Command::Delete { .. } | Command::Overdue | Command::Look(_))
    }

    fn index(instance: &Instance) -> Entries<Self> {
        let next = instance.schedules.values().map(|schedule| schedule.next_at).min();
        let next = next.filter(|_| !instance.is_deleted());
        Entries::default()
            .and(Under::<Projects>(instance.project_id))
            .and(Under::<Templates>(instance.template_id))
            .and(InstanceIndex::All)
            .and_all(next.map(|at| InstanceIndex::EarlierSchedules { at: SortedMoment(at) }))
    }

    fn claims(instance: &Instance) -> Vec<Unique<Self>> {
        if instance.is_deleted() {
            return vec![];
        }
        let taken = match instance.kind {
            InstanceKind::Backend => || taken(InstanceKind::Backend),
            InstanceKind::Market => || taken(InstanceKind::Market),
        };
        vec![Unique::new(InstanceClaim::of(instance.app_id, instance.kind), taken)]
    }

    /// Time limits stand still while the engine is unreachable.
    fn deadline(instance: &Instance) -> Option<(Timestamp, Command)> {
        let deadline = instance.deadline.filter(|_| instance.away_since.is_none());
        deadline.map(|at| (at, Command::Overdue))
    }

    fn perform(
        Effect::Reconcile: Effect,
        id: InstanceId,
        kept: Arc<Kept<Self>>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::reconcile::execute::reconcile(id, kept, world))
    }
}

impl Child for Instances {
    fn parent(instance: &Instance) -> Option<AppId> {
        Some(instance.app_id)
    }

    fn delete() -> Command {
        Command::Delete { data: true }
    }
}

impl Instances {
    /// The end of an instance: nothing can be gone back to any more.
    pub(super) fn removed(id: InstanceId) -> Step<Instances> {
        let mut also = Change::new();
        for service in Served::keys(id) {
            also = also.merge::<Served>(&service, None);
        }
        Step::remove().also(also)
    }
}

fn create(creation: Creation) -> Step<Instances> {
    let Creation { instance, template, images, app } = creation;
    let key = instance.template_id;
    let used = Change::new().require(&key, &template);
    let mut also = used.merge::<Uses>(&key.to_string(), UsesDelta::More(1));
    for (id, seen) in images {
        also = also.require(&id, &seen);
    }
    also = match app {
        ForApp::Known(seen) => also.require(&instance.app_id, &seen),
        ForApp::New(app) => also.and(apps::creation(instance.app_id, *app)),
    };
    Step::put(instance).intend(Intent::Now(Effect::Reconcile)).also(also)
}
