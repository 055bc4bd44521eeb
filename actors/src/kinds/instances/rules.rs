//! The rules of an instance:
//! `provisioning → starting → running ⇄ degraded → stopping → stopped`, `restarting`, `failed`,
//! `deleting → deleted`. What is asked for changes what is desired; what is seen changes what is.

use super::{
    reconcile::apply::fold,
    reconcile::plan::{Act, Look},
    record::{Instance, Next, Part},
};
use crate::{
    call::lookup::Seen,
    kinds::{
        apps::{self, App, Apps},
        backups::Schedule,
        deployments::Served,
        images::Images,
        templates::Templates,
    },
    ports::sealed::Sealed,
    runtime::{
        deadline::{due, moment},
        ref_count::{Uses, UsesDelta},
        resource::{Input, Intent, Kept, Moment, Resource, Retry, Step},
    },
    world::World,
};
use contract::{
    AppId, DeploymentId, Fault, ImageId, InstanceId, Timestamp,
    backups::BackupKind,
    instances::{InstanceKind, Role},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use store::Change;

/// The instances.
#[derive(Debug, Clone, Copy)]
pub struct Instances;

/// How long making the containers may take: images may have to be pulled.
pub const PROVISION_WITHIN: Duration = Duration::from_secs(10 * 60);

/// What can be asked of an instance.
#[derive(Clone)]
pub enum Command {
    /// Make it, of what was read.
    Create(Box<Creation>),
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
    /// Dump a database again and again, or not any more.
    Schedule(BackupKind, Option<Schedule>),
    /// A backup was made on schedule: the next one is due then. Nothing, where the schedule is not
    /// the one that was due.
    Advance {
        /// Of which database.
        database: BackupKind,
        /// When it was due.
        from: Timestamp,
        /// When it is due next.
        to: Timestamp,
    },
    /// A deployment does not want its candidate any more.
    Withdraw(DeploymentId, String),
}

/// An instance to be made.
#[derive(Clone)]
pub struct Creation {
    /// What it is.
    pub instance: Instance,
    /// The template.
    pub template: Seen<Templates>,
    /// The images of its services.
    pub images: Vec<(ImageId, Seen<Images>)>,
    /// The app that it is for.
    pub app: ForApp,
}

/// The app that an instance is made for.
#[derive(Clone)]
pub enum ForApp {
    /// It is there, as it was read.
    Known(Seen<Apps>),
    /// It is made together with the instance.
    New(Box<App>),
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Command::Create(_) => "Create",
            Command::Start => "Start",
            Command::Stop => "Stop",
            Command::Restart => "Restart",
            Command::Delete { .. } => "Delete",
            Command::Look(_) => "Look",
            Command::Overdue => "Overdue",
            Command::Extend { .. } => "Extend",
            Command::Replace { .. } => "Replace",
            Command::Schedule(..) => "Schedule",
            Command::Advance { .. } => "Advance",
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

/// The claim of an app's instance.
pub fn app_claim(app: AppId, kind: InstanceKind) -> String {
    match kind {
        InstanceKind::Backend => format!("backend/{app}"),
        InstanceKind::Market => format!("market/{app}"),
    }
}

impl Resource for Instances {
    const KIND: &'static str = "instance";
    const TIME_LIMIT: Duration = Duration::from_secs(11 * 60);
    type Id = InstanceId;
    type State = Instance;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn step(
        at: &Moment<Self>,
        state: Option<&Instance>,
        input: Input<Self>,
    ) -> Result<Step<Self>, Fault> {
        match (state, input) {
            (None, Input::Command(Command::Create(creation))) => Ok(create(*creation)),
            (None, Input::Command(_)) => Err(Fault::NotFound("instance")),
            (None, Input::Outcome(_)) => Ok(Step::keep()),
            (Some(instance), Input::Command(command)) => {
                if instance.is_there() {
                    instance.clone().take(at, command)
                } else {
                    instance.clone().take_when_going(at, command)
                }
            }
            (Some(instance), Input::Outcome(outcome)) => Ok(fold(at.id, instance, outcome, at.now)),
        }
    }

    fn index(instance: &Instance) -> Vec<String> {
        let mut entries = vec![
            format!("app/{}", instance.app_id),
            format!("project/{}", instance.project_id),
            format!("template/{}", instance.template_id),
            "all".into(),
        ];
        let deadline = instance.deadline.filter(|_| instance.away_since.is_none());
        entries.extend(deadline.map(due));
        if instance.is_there() {
            let next = instance.schedules.values().map(|schedule| schedule.next_at).min();
            entries.extend(next.map(|at| format!("backup/{}", moment(at))));
        }
        entries
    }

    fn claims(instance: &Instance) -> Vec<String> {
        if instance.is_there() { vec![app_claim(instance.app_id, instance.kind)] } else { vec![] }
    }

    fn taken(claim: &str) -> Fault {
        Fault::Exists(if claim.starts_with("market/") {
            "this app has a market server already".into()
        } else {
            "this app has a backend instance already".into()
        })
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
    let key = instance.template_id.to_string();
    let mut also = Change::new().require(&key, &template).merge::<Uses>(&key, UsesDelta::More(1));
    for (id, seen) in images {
        also = also.require(&id.to_string(), &seen);
    }
    also = match app {
        ForApp::Known(seen) => also.require(&instance.app_id.to_string(), &seen),
        ForApp::New(app) => also.and(apps::creation(instance.app_id, *app)),
    };
    Step::put(instance).intend(Intent::Now(Effect::Reconcile)).also(also)
}
