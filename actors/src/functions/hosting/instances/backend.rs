//! The handlers of the group Backend instances, except metrics.

use super::{
    ask_instance,
    create::{NewInstance, check_resources, seal_env},
    create_instance,
};
use crate::{
    call::{authz::authorize, context::Call, lookup, platform::Platform},
    kinds::{
        hosting::{
            instances::{Command, Instances, view::view},
            templates::Templates,
        },
        people::{apps::Apps, projects::Projects},
    },
    runtime::{entries::Under, pagination},
};
use contract::{
    AppId, Fault, Operation, Page, Serves,
    apps::GetApp,
    backend_instances::{
        CreateBackendInstance, DeleteBackendInstance, DeletedInstance, GetBackendInstance,
        GetBackendInstances, RestartBackendInstance, StartBackendInstance, StopBackendInstance,
        UndeleteBackendInstance, UpdateBackendInstance,
    },
    instances::{Instance, InstanceKind, Role},
};
use store::Snapshot;

impl Serves<CreateBackendInstance> for Platform {
    async fn serve(&self, cx: &Call, p: CreateBackendInstance) -> Result<Instance, Fault> {
        let new = NewInstance {
            kind: InstanceKind::Backend,
            project_id: p.project_id,
            app_id: p.app_id,
            name: p.name.into(),
            template_id: p.template_id,
            env: p.env,
            resources: p.resources,
            engine_labels: p.engine_labels,
            from_backup: p.from_backup_id,
        };
        create_instance(self, cx, new).await
    }
}

impl Serves<GetBackendInstances> for Platform {
    async fn serve(&self, _: &Call, p: GetBackendInstances) -> Result<Page<Instance>, Fault> {
        let (store, entry) = (&self.world.store, Under::<Projects>(p.project_id));
        pagination::page::<Instances, _>(store, &entry, (p.limit, p.cursor), |id, seen| {
            let instance = &seen.state;
            let is_gone = instance.is_deleted() && instance.delete_data;
            let shown = p.kind.includes(instance.kind)
                && p.state.is_none_or(|state| instance.state == state)
                && instance.is_deleted() == p.deleted
                && !is_gone;
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
        let command = Command::Start { accept_data_loss: p.accept_data_loss };
        ask_instance(cx, p.instance_id, command, p.wait).await
    }
}

impl Serves<StopBackendInstance> for Platform {
    async fn serve(&self, cx: &Call, p: StopBackendInstance) -> Result<Instance, Fault> {
        ask_instance(cx, p.instance_id, Command::Stop, p.wait).await
    }
}

impl Serves<RestartBackendInstance> for Platform {
    async fn serve(&self, cx: &Call, p: RestartBackendInstance) -> Result<Instance, Fault> {
        ask_instance(cx, p.instance_id, Command::Restart, p.wait).await
    }
}

impl Serves<UpdateBackendInstance> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateBackendInstance) -> Result<Instance, Fault> {
        let (id, seen) = cx.ancestry.instance()?;
        p.resources
            .map(|resources| check_resources(&self.world, seen.engine, resources))
            .transpose()?;
        let env = match &p.env {
            Some(env) => {
                let server = seen.state.service(Role::Server);
                let server = server.ok_or(Fault::NotFound("server of this instance"))?;
                Some(seal_env(&self.world, id, server.live.template(), env, &server.live.env)?)
            }
            None => None,
        };
        let command = Command::Update { name: p.name.map(Into::into), resources: p.resources, env };
        ask_instance(cx, id, command, false).await
    }
}

impl Serves<UndeleteBackendInstance> for Platform {
    async fn serve(&self, cx: &Call, p: UndeleteBackendInstance) -> Result<Instance, Fault> {
        let (id, seen) = cx.ancestry.instance()?;
        let template = self.world.store.get::<Templates>(&seen.state.template_id)?;
        let template = template.ok_or_else(|| {
            Fault::NotNow("the template of this instance was deleted; download its backups".into())
        })?;
        let app = p.app_id.map(|app| receiving_app(cx, app)).transpose()?;
        ask_instance(cx, id, Command::Undelete { template, app }, false).await
    }
}

/// The app that gets a deleted instance. Authorizes the caller as for an instance that is created
/// in it.
fn receiving_app(cx: &Call, app_id: AppId) -> Result<(AppId, Snapshot<Apps>), Fault> {
    let requirement = GetApp { app_id }.requirement();
    let ancestry = lookup::find(&cx.world, &cx.caller, requirement.subject)?;
    authorize(&cx.world, &cx.caller, &requirement, &ancestry)?;
    let (id, seen) = ancestry.app()?;
    Ok((id, seen.clone()))
}

impl Serves<DeleteBackendInstance> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteBackendInstance) -> Result<DeletedInstance, Fault> {
        let id = p.instance_id;
        let command = Command::Delete { data: p.delete_data };
        cx.to::<Instances>(id).change(command, move |_| Ok(DeletedInstance { deleted: id })).await
    }
}
