//! The handlers of the group Market-server instances.

use super::{
    ask_instance,
    create::{NewInstance, additional_service, seal_env},
    create_instance,
};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        hosting::instances::{
            Command, Instances, Service, ServiceChange, instance_of_app, secrets::missing_secrets,
            view::view,
        },
        world::World,
    },
};
use contract::{
    AppId, Fault, InstanceId, Name, Serves,
    env::Env,
    instances::{Instance, InstanceKind, Role},
    market_instances::{
        DeployMarketDashboard, DeployMarketServer, DeployMarketStorefront, GetMarketServerStatus,
        MarketServerStatus, RestartMarketServer, StartMarketServer, StopMarketServer,
    },
};
use std::{collections::BTreeMap, time::Duration};
use store::Snapshot;

/// How long a new dashboard or storefront may take to become healthy.
const DEPLOY_WITHIN: Duration = Duration::from_secs(10 * 60);

fn market(world: &World, app: AppId) -> Result<(InstanceId, Snapshot<Instances>), Fault> {
    let missing = || Fault::NotFound("market server of this app");
    let id = instance_of_app(&world.store, app, InstanceKind::Market)?.ok_or_else(missing)?;
    Ok((id, world.store.get::<Instances>(&id)?.ok_or_else(missing)?))
}

/// Adds a service to a market server. An existing one is replaced without downtime.
async fn deploy_service(
    cx: &Call,
    app: AppId,
    role: Role,
    env: Option<Env>,
) -> Result<Instance, Fault> {
    let world = &cx.world;
    let (id, seen) = market(world, app)?;
    let instance = &seen.state;
    let command = match instance.service(role) {
        None => {
            let env = env.unwrap_or_default();
            let service = Box::new(additional_service(world, id, instance, role, &env)?);
            let secrets = missing_secrets(world, id, instance, service.live.template())?;
            Command::AddService { service, secrets }
        }
        Some(Service { live, .. }) => {
            let env =
                env.map(|env| seal_env(world, id, live.template(), &env, &live.env)).transpose()?;
            let change = Box::new(ServiceChange { env, ..ServiceChange::default() });
            let secrets = BTreeMap::new();
            Command::Replace { role, change, secrets, deployment: None, within: DEPLOY_WITHIN }
        }
    };
    ask_instance(cx, id, command, false).await
}

impl Serves<DeployMarketServer> for Platform {
    async fn serve(&self, cx: &Call, p: DeployMarketServer) -> Result<Instance, Fault> {
        let name: Name = match p.name {
            Some(name) => name.into(),
            None => "Market server".parse().map_err(|_| Fault::Internal)?,
        };
        let new = NewInstance {
            kind: InstanceKind::Market,
            project_id: p.project_id,
            app_id: p.app_id,
            name,
            template_id: p.template_id,
            env: p.env,
            resources: p.resources,
            engine_labels: p.engine_labels,
            from_backup: p.from_backup_id,
        };
        create_instance(self, cx, new).await
    }
}

impl Serves<DeployMarketDashboard> for Platform {
    async fn serve(&self, cx: &Call, p: DeployMarketDashboard) -> Result<Instance, Fault> {
        deploy_service(cx, p.app_id, Role::Dashboard, p.env).await
    }
}

impl Serves<DeployMarketStorefront> for Platform {
    async fn serve(&self, cx: &Call, p: DeployMarketStorefront) -> Result<Instance, Fault> {
        deploy_service(cx, p.app_id, Role::Storefront, p.env).await
    }
}

impl Serves<StartMarketServer> for Platform {
    async fn serve(&self, cx: &Call, p: StartMarketServer) -> Result<Instance, Fault> {
        let command = Command::Start { accept_data_loss: p.accept_data_loss };
        ask_instance(cx, market(&self.world, p.app_id)?.0, command, p.wait).await
    }
}

impl Serves<StopMarketServer> for Platform {
    async fn serve(&self, cx: &Call, p: StopMarketServer) -> Result<Instance, Fault> {
        ask_instance(cx, market(&self.world, p.app_id)?.0, Command::Stop, p.wait).await
    }
}

impl Serves<RestartMarketServer> for Platform {
    async fn serve(&self, cx: &Call, p: RestartMarketServer) -> Result<Instance, Fault> {
        ask_instance(cx, market(&self.world, p.app_id)?.0, Command::Restart, p.wait).await
    }
}

impl Serves<GetMarketServerStatus> for Platform {
    async fn serve(&self, _: &Call, p: GetMarketServerStatus) -> Result<MarketServerStatus, Fault> {
        let (id, seen) = market(&self.world, p.app_id)?;
        let instance = view(&self.world, id, &seen.state);
        let services = instance.services.clone();
        Ok(MarketServerStatus { instance, services })
    }
}
