//! The functions of the group Backend instances, and what both kinds of instances share.

use crate::{
    call::{context::Call, pagination},
    kinds::{
        instances::{
            Command, Instances, create::Wanted, metrics, of_app, rules::taken, view::view,
        },
        projects::Projects,
    },
    platform::Platform,
    runtime::entries::Under,
};
use contract::{
    AppId, Fault, InstanceId, Page, Serves,
    backend_instances::{
        CreateBackendInstance, DeleteBackendInstance, DeletedInstance, GetBackendInstance,
        GetBackendInstances, GetServerMetrics, RestartBackendInstance, ServerMetrics,
        StartBackendInstance, StopBackendInstance,
    },
    instances::{Instance, InstanceKind},
};
use std::time::Duration;

/// How long a call that waits for an instance to come to rest waits for it.
const WAIT: Duration = Duration::from_secs(25);
/// How far back the history of an instance goes, in minutes.
const HISTORY: u32 = 24 * 60;
/// How far it goes where nothing is said.
const USUAL_HISTORY: u32 = 60;

impl Platform {
    /// Asks an instance for something; the instance after it, or once it has come to rest.
    pub(in crate::kinds::instances) async fn ask_instance(
        &self,
        cx: &Call,
        id: InstanceId,
        command: Command,
        wait: bool,
    ) -> Result<Instance, Fault> {
        let owners = &self.owners()?.instances;
        let world = self.world.clone();
        let show =
            move |instance: &crate::kinds::instances::Instance| Ok(view(&world, id, instance));
        let reply = cx.change(&self.world, owners, id, command, show).await?;
        if !wait {
            return Ok(reply);
        }
        let settled = match owners.wait_idle(id, WAIT).await {
            Ok(Some(instance)) => view(&self.world, id, &instance),
            Ok(None) => return Err(Fault::NotFound("instance")),
            Err(_) => self.read_instance(id)?,
        };
        cx.finish(&self.world, &settled);
        Ok(settled)
    }

    fn read_instance(&self, id: InstanceId) -> Result<Instance, Fault> {
        let found = self.world.store.get::<Instances>(&id)?;
        let found = found.ok_or(Fault::NotFound("instance"))?;
        Ok(view(&self.world, id, &found.state))
    }

    /// The instance of this kind that an app has.
    pub(crate) fn instance_of(
        &self,
        app: AppId,
        kind: InstanceKind,
    ) -> Result<Option<InstanceId>, Fault> {
        of_app(&self.world.store, app, kind)
    }

    pub(in crate::kinds::instances) async fn create_instance(
        &self,
        cx: &Call,
        wanted: Wanted,
    ) -> Result<Instance, Fault> {
        if let Some(app) = wanted.app_id
            && self.instance_of(app, wanted.kind)?.is_some()
        {
            return Err(taken(wanted.kind));
        }
        let id: InstanceId = self.world.ports.random.id(cx.now);
        let creation = self.creation(cx, id, wanted)?;
        let world = self.world.clone();
        let show = move |instance: &super::super::Instance| Ok(view(&world, id, instance));
        cx.create(&self.world, &self.owners()?.instances, id, creation, show).await
    }
}

impl Serves<CreateBackendInstance> for Platform {
    async fn serve(&self, cx: &Call, p: CreateBackendInstance) -> Result<Instance, Fault> {
        let wanted = Wanted {
            kind: InstanceKind::Backend,
            project_id: p.project_id,
            app_id: p.app_id,
            name: p.name,
            template_id: p.template_id,
            env: p.env,
            resources: p.resources,
        };
        self.create_instance(cx, wanted).await
    }
}

impl Serves<GetBackendInstances> for Platform {
    async fn serve(&self, _: &Call, p: GetBackendInstances) -> Result<Page<Instance>, Fault> {
        let (store, entry) = (&self.world.store, Under::<Projects>(p.project_id));
        pagination::page::<Instances, _>(store, &entry, (p.limit, p.cursor), |id, seen| {
            let instance = &seen.state;
            let shown = !instance.is_deleted() && instance.kind == InstanceKind::Backend;
            Ok(shown.then(|| view(&self.world, id, instance)))
        })
    }
}

impl Serves<GetBackendInstance> for Platform {
    async fn serve(&self, cx: &Call, _: GetBackendInstance) -> Result<Instance, Fault> {
        let (id, seen) = cx.ancestry.instance()?;
        Ok(view(&self.world, id, &seen.state))
    }
}

impl Serves<StartBackendInstance> for Platform {
    async fn serve(&self, cx: &Call, p: StartBackendInstance) -> Result<Instance, Fault> {
        self.ask_instance(cx, p.instance_id, Command::Start, p.wait).await
    }
}

impl Serves<StopBackendInstance> for Platform {
    async fn serve(&self, cx: &Call, p: StopBackendInstance) -> Result<Instance, Fault> {
        self.ask_instance(cx, p.instance_id, Command::Stop, p.wait).await
    }
}

impl Serves<RestartBackendInstance> for Platform {
    async fn serve(&self, cx: &Call, p: RestartBackendInstance) -> Result<Instance, Fault> {
        self.ask_instance(cx, p.instance_id, Command::Restart, p.wait).await
    }
}

impl Serves<DeleteBackendInstance> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteBackendInstance) -> Result<DeletedInstance, Fault> {
        let (id, owners) = (p.instance_id, &self.owners()?.instances);
        let command = Command::Delete { data: p.delete_data };
        cx.change(&self.world, owners, id, command, move |_| Ok(DeletedInstance { deleted: id }))
            .await
    }
}

impl Serves<GetServerMetrics> for Platform {
    async fn serve(&self, cx: &Call, p: GetServerMetrics) -> Result<ServerMetrics, Fault> {
        let minutes = p.minutes.unwrap_or(USUAL_HISTORY);
        if !(1..=HISTORY).contains(&minutes) {
            return Err(Fault::invalid("minutes", format!("must be from 1 to {HISTORY}")));
        }
        let (id, seen) = cx.ancestry.instance()?;
        let current = metrics::current(&self.world, id, &seen.state).await?;
        let history = metrics::history(&self.world.store, id, cx.now, minutes)?;
        Ok(ServerMetrics { current, history })
    }
}
