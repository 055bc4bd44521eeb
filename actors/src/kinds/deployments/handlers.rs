//! The functions of the group Deployments.

use super::{Command, Deployments, Served, State};
use crate::{
    call::{context::Call, pagination},
    kinds::{
        apps::Apps,
        images,
        instances::{Definition, Instance, Instances, Source},
    },
    platform::Platform,
    ports::sealed::Sealed,
    runtime::{
        entries::Under,
        progress_log::{Line, LineIndex},
    },
};
use contract::{
    AppId, Cursor, DeploymentId, Fault, InstanceId, Page, Serves, VersionName,
    deployments::{
        CancelDeployment, Deployment, DeploymentLine, DeploymentLogs, DeploymentSource,
        DeploymentState, DeploymentStep, DeploymentTarget, GetDeployment, GetDeploymentLogs,
        ListDeployments, RollbackDeployment, StepName, StepState, TriggerDeployment,
    },
    instances::{DesiredState, InstanceKind, Role},
    text::{EnvName, Slug},
};
use std::collections::BTreeMap;
use store::Snapshot;

/// Lines of one page.
const PAGE: usize = 500;

const STEPS: [StepName; 6] = [
    StepName::Queue,
    StepName::Build,
    StepName::Start,
    StepName::Health,
    StepName::Switch,
    StepName::Drain,
];

/// The service that a target names.
fn place(target: DeploymentTarget) -> (InstanceKind, Role) {
    match target {
        DeploymentTarget::Backend => (InstanceKind::Backend, Role::Server),
        DeploymentTarget::MarketServer => (InstanceKind::Market, Role::Server),
        DeploymentTarget::MarketDashboard => (InstanceKind::Market, Role::Dashboard),
        DeploymentTarget::MarketStorefront => (InstanceKind::Market, Role::Storefront),
    }
}

/// What is to be deployed, once all of it is found.
struct Plan {
    app: AppId,
    instance: InstanceId,
    target: DeploymentTarget,
    source: DeploymentSource,
    definition: Option<Definition>,
    image: Source,
    env: Option<BTreeMap<EnvName, Sealed>>,
    rollback_of: Option<DeploymentId>,
}

impl Platform {
    fn deployment(&self, id: DeploymentId) -> Result<Snapshot<Deployments>, Fault> {
        let found = self.world.store.get::<Deployments>(&id)?;
        found.ok_or(Fault::NotFound("deployment"))
    }

    /// The service of an app that is meant: the one that was named, or the server of its only
    /// instance.
    fn target(
        &self,
        app: AppId,
        named: Option<DeploymentTarget>,
    ) -> Result<(DeploymentTarget, InstanceId, Snapshot<Instances>), Fault> {
        let target = match named {
            Some(target) => target,
            None => {
                let backend = self.instance_of(app, InstanceKind::Backend)?.is_some();
                let market = self.instance_of(app, InstanceKind::Market)?.is_some();
                match (backend, market) {
                    (true, true) => {
                        return Err(Fault::invalid(
                            "target",
                            "is needed: the app has two instances",
                        ));
                    }
                    (false, true) => DeploymentTarget::MarketServer,
                    _ => DeploymentTarget::Backend,
                }
            }
        };
        let (kind, role) = place(target);
        let id = self.instance_of(app, kind)?.ok_or(Fault::NotFound("instance of this app"))?;
        let found = self.world.store.get::<Instances>(&id)?;
        let found = found.ok_or(Fault::NotFound("instance of this app"))?;
        let instance = &found.state;
        if instance.part(role).is_none() {
            return Err(Fault::NotFound("service of this instance"));
        }
        if instance.desired != DesiredState::Running {
            return Err(Fault::NotNow("this instance is stopped; start it, then deploy".into()));
        }
        Ok((target, id, found))
    }

    async fn deploy(&self, cx: &Call, plan: Plan) -> Result<Deployment, Fault> {
        let id: DeploymentId = self.world.ports.random.id(cx.now);
        let step = |name| {
            let first = name == StepName::Queue;
            let state = if first { StepState::Running } else { StepState::Pending };
            DeploymentStep { name, state, started_at: first.then_some(cx.now), finished_at: None }
        };
        let state = State {
            deployment: Deployment {
                id,
                app_id: plan.app,
                instance_id: plan.instance,
                target: plan.target,
                source: plan.source,
                state: DeploymentState::Queued,
                image_ref: plan.image.reference.clone(),
                previous_deployment_id: None,
                rollback_of: plan.rollback_of,
                started_by: cx.caller.user.as_ref().map(|user| user.id),
                steps: STEPS.map(step).to_vec(),
                error: None,
                created_at: cx.now,
                finished_at: None,
            },
            role: place(plan.target).1,
            env: plan.env,
            definition: plan.definition,
            image: plan.image,
            deadline: None,
            in_lane: true,
            removing: false,
        };
        let show = |state: &State| Ok(state.deployment.clone());
        cx.create(&self.world, &self.owners()?.deployments, id, state, show).await
    }

    /// The image of a source, where it may be used; and what the service becomes, where the source
    /// says that.
    fn sourced(
        &self,
        source: &DeploymentSource,
        instance: &Instance,
        role: Role,
    ) -> Result<(Source, Option<Definition>), Fault> {
        if source.git.is_some() {
            // Its version is the commit, which is not known yet.
            let version: VersionName = "git".parse().map_err(|_| Fault::Internal)?;
            let name: Slug = "git".parse().map_err(|_| Fault::Internal)?;
            return Ok((Source { image_id: None, name, version, reference: None }, None));
        }
        let (id, version, definition) =
            match (&source.image_id, &source.version, &source.template_version) {
                (Some(id), Some(version), None) => (*id, version.clone(), None),
                (None, None, Some(wanted)) => {
                    let definition = self.definition(instance, wanted, role)?;
                    let definition =
                        definition.ok_or(Fault::NotFound("service of this template version"))?;
                    let service = &definition.service;
                    (service.image_id, service.image_version.clone(), Some(definition))
                }
                _ => return Err(Fault::Invalid(source.problem().into_iter().collect())),
            };
        let name = images::usable(&self.world.store, id, &version)?.state.name.clone();
        Ok((Source { image_id: Some(id), name, version, reference: None }, definition))
    }
}

impl Serves<TriggerDeployment> for Platform {
    async fn serve(&self, cx: &Call, p: TriggerDeployment) -> Result<Deployment, Fault> {
        if let Some(problem) = p.source.problem() {
            return Err(Fault::Invalid(vec![problem]));
        }
        let (target, id, seen) = self.target(p.app_id, p.target)?;
        let (instance, role) = (&seen.state, place(target).1);
        let (image, definition) = self.sourced(&p.source, instance, role)?;
        let part = instance.part(role).ok_or(Fault::NotFound("service of this instance"))?;
        let becomes = definition.as_ref().unwrap_or(&part.live.definition);
        let env = p.env.as_ref().map(|env| self.seal_env(id, &becomes.service, env)).transpose()?;
        let plan = Plan {
            app: p.app_id,
            instance: id,
            target,
            source: p.source,
            definition,
            image,
            env,
            rollback_of: None,
        };
        self.deploy(cx, plan).await
    }
}

impl Serves<GetDeployment> for Platform {
    async fn serve(&self, cx: &Call, _: GetDeployment) -> Result<Deployment, Fault> {
        Ok(cx.ancestry.deployment()?.1.state.deployment.clone())
    }
}

impl Serves<ListDeployments> for Platform {
    async fn serve(&self, _: &Call, p: ListDeployments) -> Result<Page<Deployment>, Fault> {
        let (store, entry) = (&self.world.store, Under::<Apps>(p.app_id));
        pagination::page::<Deployments, _>(store, &entry, (p.limit, p.cursor), |_, seen| {
            let deployment = &seen.state.deployment;
            let wanted = p.state.is_none_or(|state| deployment.state == state);
            Ok(wanted.then(|| deployment.clone()))
        })
    }
}

impl Serves<CancelDeployment> for Platform {
    async fn serve(&self, cx: &Call, p: CancelDeployment) -> Result<Deployment, Fault> {
        let owners = &self.owners()?.deployments;
        let show = |state: &State| Ok(state.deployment.clone());
        cx.change(&self.world, owners, p.deployment_id, Command::Cancel, show).await
    }
}

impl Serves<RollbackDeployment> for Platform {
    async fn serve(&self, cx: &Call, p: RollbackDeployment) -> Result<Deployment, Fault> {
        let (app, named) = match (p.app_id, p.deployment_id) {
            (None, None) => {
                return Err(Fault::invalid("appId", "give appId or deploymentId"));
            }
            (Some(app), None) => (app, p.target),
            (app, Some(id)) => {
                let of = &self.deployment(id)?.state.deployment.clone();
                if app.is_some_and(|app| app != of.app_id) {
                    return Err(Fault::NotFound("deployment of this app"));
                }
                (of.app_id, Some(of.target))
            }
        };
        let (target, instance, seen) = self.target(app, named)?;
        let served = self.world.store.get::<Served>(&Served::key(instance, target))?;
        let served = served.map(|served| served.latest.clone()).unwrap_or_default();
        let nothing =
            |why: &str| Fault::NotNow(format!("{why}; listDeployments shows what there is"));
        let serves = served.front().copied();
        let serves = serves.ok_or_else(|| nothing("nothing was deployed to this service yet"))?;
        if p.deployment_id.is_some_and(|id| id != serves) {
            return Err(nothing("this deployment is not the one that serves"));
        }
        // Where what serves came by no deployment that did, the last one that did is gone back to.
        let live = seen.state.part(place(target).1).and_then(|part| part.live.deployment);
        let mut earlier = served.iter().skip(usize::from(live == Some(serves)));
        let to = match p.to_deployment_id {
            Some(to) => earlier.find(|id| **id == to).copied(),
            None => earlier.next().copied(),
        };
        let to = to.ok_or_else(|| {
            nothing("there is no earlier deployment; deploy a version of its template instead")
        })?;
        let to = self.deployment(to)?.state.clone();
        let plan = Plan {
            app,
            instance,
            target,
            source: to.deployment.source,
            definition: to.definition,
            image: to.image,
            env: to.env,
            rollback_of: Some(serves),
        };
        self.deploy(cx, plan).await
    }
}

impl Serves<GetDeploymentLogs> for Platform {
    async fn serve(&self, cx: &Call, p: GetDeploymentLogs) -> Result<DeploymentLogs, Fault> {
        let (id, seen) = cx.ancestry.deployment()?;
        // Before the lines are read: what is written in between is on the next page.
        let done = seen.state.is_decided() && seen.intent.is_none();
        let after = p.cursor.as_ref().map(pagination::position::<Line>).transpose()?;
        let keys = self.world.store.oldest::<Line>(&LineIndex::of(id), after.as_ref(), PAGE)?;
        let mut lines = Vec::with_capacity(keys.len());
        for key in &keys {
            if let Some(line) = self.world.store.get::<Line>(key)? {
                let Line { at, step, text, .. } = (**line).clone();
                lines.push(DeploymentLine { at, step, text });
            }
        }
        let done = done && keys.len() < PAGE;
        let next_cursor = keys.last().map(|key| Cursor::after(&key.to_string())).or(p.cursor);
        Ok(DeploymentLogs { lines, next_cursor, done })
    }
}
