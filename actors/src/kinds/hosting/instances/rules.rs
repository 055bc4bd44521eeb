//! Instances as a kind of resource: their effect, outcomes, index and claims. A command (`commands.rs`)
//! changes what is desired (`transitions.rs`); an outcome changes what is (`reconcile/apply.rs`).

use super::{
    commands::{Command, Creation, ForApp},
    container_spec, database,
    history::DeploymentHistory,
    reconcile::{apply::apply, observe::Observation, plan::Action},
    record::Instance,
    view::view,
};
use crate::{
    installation::{This, engine::OwnDrained},
    kinds::{
        hosting::{engines::Engines, templates::Templates},
        people::{
            apps::{self, Apps},
            organizations::Organizations,
            projects::Projects,
        },
        world::World,
    },
    runtime::{
        entries::{SortedMoment, Under},
        event::Event,
        ref_count::{RefCount, RefCountDelta},
        resource::{Child, Kept, Moment, Resource, Retry, Step, Unique, Work},
        store::Store,
        uses::Uses,
    },
};
use contract::{
    AppId, EngineId, Fault, InstanceId, JobId, OrganizationId,
    instances::{InstanceKind, InstanceState, Role},
    webhooks::EventType,
};
use futures_util::future::LocalBoxFuture;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use store::{Change, Entries, Snapshot};

#[derive(Debug, Clone, Copy)]
pub struct Instances;

/// How long creating the containers may take, pulling their images included.
pub const PROVISION_WITHIN: Duration = Duration::from_secs(10 * 60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Observe the containers, and execute the next action.
    Reconcile,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    /// Nothing can be done until this comes, for a person.
    Waits(&'static str),
    /// Its turn at the container engine did not come in time.
    NoTurn,
    Reconciled {
        observation: Observation,
        action: Action,
        /// The image that the action resolved, if any; or why the engine refused the action.
        result: Result<Option<ResolvedImage>, String>,
        /// The last output of a container that failed.
        log: Vec<String>,
    },
    /// The image of this revision is still being built.
    Building { observation: Observation, role: Role, generation: u32, job: JobId, progress: u8 },
}

/// The image of a revision, by its digest.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedImage {
    pub role: Role,
    pub generation: u32,
    pub reference: String,
}

store::entries! {
    pub enum InstanceIndex of Instances {
        All = "all",
        /// Instances that need an engine on which they are not placed.
        Elsewhere { engine: EngineId } = "elsewhere",
        /// Instances with schedules of an earlier version, by the time of the next backup. The
        /// spelling is that of the earlier version.
        EarlierSchedules { at: SortedMoment } = "backup",
    }
}

store::claims! {
    /// An app has at most one instance of each kind.
    pub enum InstanceClaim of Instances {
        Backend { app: AppId } = "backend",
        Market { app: AppId } = "market",
    }
}

impl InstanceClaim {
    pub fn of(app: AppId, kind: InstanceKind) -> Self {
        match kind {
            InstanceKind::Backend => InstanceClaim::Backend { app },
            InstanceKind::Market => InstanceClaim::Market { app },
        }
    }
}

/// The app has an instance of this kind.
pub(crate) fn app_has_one(kind: InstanceKind) -> Fault {
    Fault::Exists(match kind {
        InstanceKind::Backend => "this app has a backend instance already; change that one, or leave out appId for a new app"
            .into(),
        InstanceKind::Market => "this app has a market server already; change that one, or leave out appId for a new app"
            .into(),
    })
}

impl Resource for Instances {
    const INDEX: u16 = 2;
    const TIME_LIMIT: Duration = Duration::from_secs(database::WITHIN.as_secs() + 60);
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
            return instance.on_command_when_deleted(at, command);
        }
        instance.on_command(at, command)
    }

    fn on_outcome(instance: Instance, at: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        apply(at.id, &instance, outcome, at.now)
    }

    fn is_deleted(instance: &Instance) -> bool {
        instance.is_deleted()
    }

    fn accepts_deleted(command: &Command) -> bool {
        matches!(
            command,
            Command::Delete { .. }
                | Command::Leave(..)
                | Command::Undelete { .. }
                | Command::Observe { .. }
                | Command::LoseEngine(..)
                | Command::Measure(..)
                | Command::Release
                | Command::FindRoom
        )
    }

    fn reports(command: &Command) -> bool {
        matches!(command, Command::Measure(..))
    }

    fn index(instance: &Instance) -> Entries<Self> {
        let next = instance.schedules.values().map(|schedule| schedule.next_at).min();
        let next = next.filter(|_| !instance.is_deleted());
        Entries::default()
            .and(Under::<Projects>(instance.project_id))
            .and(Under::<Templates>(instance.template_id))
            .and(InstanceIndex::All)
            .and_all(instance.engine.map(Under::<Engines>))
            .and_all(instance.engines_elsewhere().map(|engine| InstanceIndex::Elsewhere { engine }))
            .and_all(next.map(|at| InstanceIndex::EarlierSchedules { at: SortedMoment(at) }))
    }

    fn uses(instance: &Instance) -> Uses {
        container_spec::uses(instance)
    }

    /// The engine that it moves to keeps room for it.
    fn machines(instance: &Instance) -> Vec<Option<EngineId>> {
        let moving = instance.moving.iter().map(|moving| moving.to);
        [instance.engine].into_iter().chain(moving).collect()
    }

    fn engines_elsewhere(instance: &Instance) -> Vec<EngineId> {
        instance.engines_elsewhere().collect()
    }

    fn uses_when_deleted(instance: &Instance) -> Uses {
        match instance.delete_data {
            true => Uses::default(),
            false => container_spec::uses_of_disk(instance),
        }
    }

    fn claims(instance: &Instance) -> Vec<Unique<Self>> {
        if instance.is_deleted() {
            return vec![];
        }
        let taken = match instance.kind {
            InstanceKind::Backend => || app_has_one(InstanceKind::Backend),
            InstanceKind::Market => || app_has_one(InstanceKind::Market),
        };
        vec![Unique::new(InstanceClaim::of(instance.app_id, instance.kind), taken)]
    }

    /// Deadlines stand still while the engine is unreachable.
    fn next(instance: &Instance) -> Option<Work<Effect>> {
        let deadline = instance.deadline.filter(|_| instance.unreachable_since.is_none());
        match instance.is_in_transition() || instance.observing {
            true => Some(Work::now(Effect::Reconcile).until(deadline)),
            false => deadline.or(instance.forgets_at()).map(Work::wait),
        }
    }

    fn on_due(instance: Instance, at: &Moment<Self>) -> Step<Self> {
        instance.overdue(at.now)
    }

    fn adopt(kept: &mut Kept<Self>, _: &Value) {
        kept.state.observing = !kept.state.is_in_transition();
    }

    fn expires(instance: &Instance) -> bool {
        let forgets = instance.deadline.is_none() && instance.forgets_at().is_some();
        instance.state == InstanceState::Deleted || forgets
    }

    fn events(
        at: &Moment<Self>,
        before: Option<&Instance>,
        after: &Instance,
        world: &World,
    ) -> Vec<Event> {
        let entered = match after.state {
            state if before.is_some_and(|before| before.state == state) => None,
            InstanceState::Provisioning
            | InstanceState::Starting
            | InstanceState::Stopping
            | InstanceState::Restarting
            | InstanceState::Deleting => None,
            InstanceState::Running => Some(EventType::InstanceRunning),
            InstanceState::Degraded => Some(EventType::InstanceDegraded),
            InstanceState::Stopped => Some(EventType::InstanceStopped),
            InstanceState::Failed => Some(EventType::InstanceFailed),
            InstanceState::Deleted => Some(EventType::InstanceDeleted),
        };
        let is_news = before.is_some_and(|before| !after.advised.is_subset(&before.advised));
        let advised = is_news.then_some(EventType::InstanceOutdated);
        let told = entered.into_iter().chain(advised);
        told.map(|kind| Event::new(kind, after.app_id, &view(world, at.id, after))).collect()
    }

    fn perform(
        Effect::Reconcile: Effect,
        id: InstanceId,
        kept: Snapshot<Self>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::reconcile::execute::reconcile(id, kept, world))
    }
}

impl Child for Instances {
    /// None once the app is gone.
    fn parent(instance: &Instance) -> Option<AppId> {
        instance.left_to.is_none().then_some(instance.app_id)
    }

    fn delete() -> Command {
        Command::Delete { data: true }
    }

    /// Leaves an instance to the organization, which can bring its data back for a while. That of an
    /// organization that is deleted too is a child like others.
    fn delete_under(app: AppId, world: &World) -> Result<Command, Fault> {
        Ok(organization_that_stays(app, &world.store)?.map_or(Instances::delete(), Command::Leave))
    }
}

/// The organization of an app, unless it is being deleted.
fn organization_that_stays(app: AppId, store: &Store) -> Result<Option<OrganizationId>, Fault> {
    let Some(app) = store.get::<Apps>(&app)? else { return Ok(None) };
    let Some(project) = store.get::<Projects>(&app.project_id)? else { return Ok(None) };
    let organization = store.get::<Organizations>(&project.organization_id)?;
    let stays = organization.is_some_and(|found| !found.deleting);
    Ok(stays.then_some(project.organization_id))
}

impl Instances {
    /// Removes the record, and the deployment history of its services.
    pub(super) fn removed(id: InstanceId) -> Step<Instances> {
        Step::remove().also(Instances::without_history(id))
    }

    /// Forgets what was deployed to the services.
    pub(super) fn without_history(id: InstanceId) -> Change {
        DeploymentHistory::keys(id).fold(Change::new(), |change, service| {
            change.merge::<DeploymentHistory>(&service, None)
        })
    }
}

fn create(creation: Creation) -> Step<Instances> {
    let Creation { instance, template, images, engine, app } = creation;
    let key = instance.template_id;
    let used = Change::new().require(&key, &template);
    let mut also = used.merge::<RefCount>(&key.to_string(), RefCountDelta::Add(1));
    for (id, seen) in images {
        also = also.require(&id, &seen);
    }
    // An engine that is drained or removed meanwhile gets no instance.
    also = match engine {
        Some((id, seen)) => also.require(&id, &seen),
        None => also.require_absent::<OwnDrained>(&This),
    };
    match app {
        ForApp::Existing(seen) => {
            let also = also.require(&instance.app_id, &seen);
            Step::put(instance).also(also)
        }
        ForApp::New(app) => {
            let (id, uses) = (instance.app_id, Apps::uses(&app));
            Step::put(instance).also(also).also_creates(apps::creation(id, *app), &uses)
        }
    }
}
