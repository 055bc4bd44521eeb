//! The handlers of the group Deployments.

pub mod folder;

use self::folder::check_folder;
use super::instances::create::{definition, seal_env};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        delivery::repositories::with_address,
        hosting::{
            deployments::{Command, Deployments, State},
            image_builds::quotas,
            images,
            instances::{
                Definition, Instance, Instances, ServiceImage,
                history::{DeploymentHistory, Earlier, Past, before},
                instance_of_app,
            },
            progress_log::{Line, LinesPage},
        },
        world::World,
    },
    ports::sealed::Sealed,
    runtime::pagination,
};
use contract::{
    AppId, DeploymentId, EngineId, Fault, InstanceId, Page, Serves, VersionName,
    deployments::{
        CancelDeployment, Deployment, DeploymentLine, DeploymentLogs, DeploymentSource,
        DeploymentState, DeploymentStep, DeploymentTarget, GetDeployment, GetDeploymentLogs,
        ListDeployments, RollbackDeployment, StepName, StepState, TriggerDeployment,
    },
    env::Env,
    instances::{DesiredState, InstanceKind, Role},
    text::{EnvName, Slug},
};
use std::collections::BTreeMap;
use store::Snapshot;

const STEPS: [StepName; 6] = [
    StepName::Queue,
    StepName::Build,
    StepName::Start,
    StepName::Health,
    StepName::Switch,
    StepName::Drain,
];

fn service_of(target: DeploymentTarget) -> (InstanceKind, Role) {
    match target {
        DeploymentTarget::Backend => (InstanceKind::Backend, Role::Server),
        DeploymentTarget::MarketServer => (InstanceKind::Market, Role::Server),
        DeploymentTarget::MarketDashboard => (InstanceKind::Market, Role::Dashboard),
        DeploymentTarget::MarketStorefront => (InstanceKind::Market, Role::Storefront),
    }
}

/// A deployment whose parts are all found.
struct DeploymentPlan {
    app: AppId,
    instance: InstanceId,
    target: DeploymentTarget,
    source: DeploymentSource,
    definition: Option<Definition>,
    image: ServiceImage,
    env: Option<BTreeMap<EnvName, Sealed>>,
    rollback_of: Option<DeploymentId>,
    restores: Option<Earlier>,
    base: Option<ServiceImage>,
}

fn deployment(world: &World, id: DeploymentId) -> Result<Snapshot<Deployments>, Fault> {
    let found = world.store.get::<Deployments>(&id)?;
    found.ok_or(Fault::NotFound("deployment"))
}

/// The named service of an app, or the server of its only instance.
fn target(
    world: &World,
    app: AppId,
    named: Option<DeploymentTarget>,
) -> Result<(DeploymentTarget, InstanceId, Snapshot<Instances>), Fault> {
    let target = match named {
        Some(target) => target,
        None => {
            let backend = instance_of_app(&world.store, app, InstanceKind::Backend)?.is_some();
            let market = instance_of_app(&world.store, app, InstanceKind::Market)?.is_some();
            match (backend, market) {
                (true, true) => {
                    return Err(Fault::invalid("target", "is needed: the app has two instances"));
                }
                (false, true) => DeploymentTarget::MarketServer,
                _ => DeploymentTarget::Backend,
            }
        }
    };
    let (kind, role) = service_of(target);
    let id =
        instance_of_app(&world.store, app, kind)?.ok_or(Fault::NotFound("instance of this app"))?;
    let found = world.store.get::<Instances>(&id)?;
    let found = found.ok_or(Fault::NotFound("instance of this app"))?;
    let instance = &found.state;
    if instance.service(role).is_none() {
        return Err(Fault::NotFound("service of this instance"));
    }
    if instance.desired != DesiredState::Running {
        return Err(Fault::NotNow("this instance is stopped; start it, then deploy".into()));
    }
    Ok((target, id, found))
}

async fn deploy(cx: &Call, plan: DeploymentPlan) -> Result<Deployment, Fault> {
    let id: DeploymentId = cx.world.ports.random.id(cx.now);
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
        role: service_of(plan.target).1,
        env: plan.env,
        definition: plan.definition,
        image: plan.image,
        deadline: None,
        limit_seconds: u32::try_from(cx.world.ports.site.deployment_limit.as_secs())
            .unwrap_or(u32::MAX),
        in_queue: true,
        removing: false,
        failing: false,
        restores: plan.restores,
        replaces: None,
        base: plan.base,
        log_bytes: 0,
    };
    let show = |state: &State| Ok(state.deployment.clone());
    cx.to::<Deployments>(id).create(state, show).await
}

/// The image of a source, and the definition that a template version gives the service. Refuses
/// an image that may not be used.
fn sourced(
    world: &World,
    source: &DeploymentSource,
    instance: &Instance,
    role: Role,
) -> Result<(ServiceImage, Option<Definition>), Fault> {
    // The version is the commit, which is not known yet, or the beginning of the hash.
    let built = match (&source.git, &source.folder) {
        (Some(_), _) => Some(("git", "git".to_owned())),
        (_, Some(folder)) => Some(("folder", folder.sha256.as_str().chars().take(12).collect())),
        _ => None,
    };
    if let Some((name, version)) = built {
        let version: VersionName = version.parse().map_err(|_| Fault::Internal)?;
        let name: Slug = name.parse().map_err(|_| Fault::Internal)?;
        let image = ServiceImage { image_id: None, name, version, reference: None, build: None };
        return Ok((image, None));
    }
    let (id, version, definition) =
        match (&source.image_id, &source.version, &source.template_version) {
            (Some(id), Some(version), None) => (*id, version.clone(), None),
            (None, None, Some(wanted)) => {
                let definition = definition(world, instance, wanted, role)?;
                let definition =
                    definition.ok_or(Fault::NotFound("service of this template version"))?;
                let service = &definition.service;
                (service.image_id, service.image_version.clone(), Some(definition))
            }
            _ => return Err(Fault::Invalid(source.problem().into_iter().collect())),
        };
    let name = images::usable(&world.store, id, &version)?.state.name.clone();
    Ok((ServiceImage::registered(id, name, version), definition))
}

impl Serves<TriggerDeployment> for Platform {
    async fn serve(&self, cx: &Call, p: TriggerDeployment) -> Result<Deployment, Fault> {
        if let Some(problem) = p.source.problem() {
            return Err(Fault::Invalid(vec![problem]));
        }
        Env::check_bytes("source.buildArgs", p.source.build_args.bytes())?;
        self.world.check_room(0)?;
        if p.source.git.is_some() || p.source.folder.is_some() {
            let (organization, _) = cx.ancestry.organization()?;
            quotas::check(&self.world, organization)?;
        }
        let git = p.source.git.map(|git| with_address(&self.world.store, p.app_id, git));
        let source = DeploymentSource { git: git.transpose()?, ..p.source };
        let (target, id, seen) = target(&self.world, p.app_id, p.target)?;
        let (instance, role) = (&seen.state, service_of(target).1);
        let (image, definition) = sourced(&self.world, &source, instance, role)?;
        let service = instance.service(role).ok_or(Fault::NotFound("service of this instance"))?;
        if let Some(folder) = &source.folder {
            check_folder(&self.world, p.app_id, (folder, &source), service, p.env.as_ref()).await?;
        }
        let becomes = definition.as_ref().unwrap_or(&service.live.definition);
        let present = &service.live.env;
        let seal = |env| seal_env(&self.world, id, &becomes.service, env, present);
        let env = p.env.as_ref().map(seal).transpose()?;
        let has = |name| env.as_ref().unwrap_or(present).contains_key(name);
        if let Some(unknown) = source.build_secrets.iter().find(|name| !has(name)) {
            let why =
                format!("names {unknown}, and the service has no such variable; set it first");
            return Err(Fault::invalid("source.buildSecrets", why));
        }
        let plan = DeploymentPlan {
            app: p.app_id,
            instance: id,
            target,
            source,
            definition,
            image,
            env,
            rollback_of: None,
            restores: None,
            base: None,
        };
        deploy(cx, plan).await
    }
}

impl Serves<GetDeployment> for Platform {
    async fn serve(&self, cx: &Call, _: GetDeployment) -> Result<Deployment, Fault> {
        Ok(cx.ancestry.deployment()?.1.state.deployment.clone())
    }
}

impl Serves<ListDeployments> for Platform {
    async fn serve(&self, _: &Call, p: ListDeployments) -> Result<Page<Deployment>, Fault> {
        let (store, list) = (&self.world.store, (p.limit, p.cursor));
        let (of, is_filtered) = ((p.app_id, p.state), p.target.is_some());
        pagination::children::<Deployments, _>(store, of, list, is_filtered, |_, seen| {
            let deployment = &seen.state.deployment;
            let wanted = p.target.is_none_or(|target| deployment.target == target);
            Ok(wanted.then(|| deployment.clone()))
        })
    }
}

impl Serves<CancelDeployment> for Platform {
    async fn serve(&self, cx: &Call, p: CancelDeployment) -> Result<Deployment, Fault> {
        let show = |state: &State| Ok(state.deployment.clone());
        cx.to::<Deployments>(p.deployment_id).change(Command::Cancel, show).await
    }
}

impl Serves<RollbackDeployment> for Platform {
    async fn serve(&self, cx: &Call, p: RollbackDeployment) -> Result<Deployment, Fault> {
        let wanted = p.to_deployment_id.map(|id| deployment(&self.world, id)).transpose()?;
        if wanted.as_ref().is_some_and(|wanted| wanted.deployment.app_id != p.app_id) {
            return Err(Fault::NotFound("deployment of this app"));
        }
        let named = p.target.or(wanted.map(|wanted| wanted.deployment.target));
        let (target, instance, seen) = target(&self.world, p.app_id, named)?;
        let served = self
            .world
            .store
            .get_or_empty::<DeploymentHistory>(&DeploymentHistory::key(instance, target))?;
        let live = seen.service(service_of(target).1).and_then(|service| service.live.deployment);
        let (serves, restores) = goes_back_to(&self.world, &served, live, p.to_deployment_id)?;
        let (source, definition, image, env, base) = match (restores, &served.created) {
            (Some(Earlier::Deployment(id)), _) => {
                let to = deployment(&self.world, id)?.state.clone();
                (to.deployment.source, to.definition, to.image, to.env, to.base)
            }
            (Some(Earlier::Created), Some(created)) => {
                let definition = created.definition.clone();
                let template_version = Some(definition.template_version.clone());
                let source = DeploymentSource { template_version, ..Default::default() };
                let (image, env) = (created.image.clone(), Some(created.env.clone()));
                (source, Some(definition), image, env, None)
            }
            (Some(Earlier::Created) | None, _) => {
                return Err(nothing_to_restore(
                    "there is no earlier deployment; deploy a version of its template instead",
                ));
            }
        };
        still_has(&self.world, seen.engine, &image).await?;
        let plan = DeploymentPlan {
            app: p.app_id,
            instance,
            target,
            source,
            definition,
            image,
            env,
            rollback_of: serves,
            restores,
            base,
        };
        deploy(cx, plan).await
    }
}

fn nothing_to_restore(why: &str) -> Fault {
    Fault::NotNow(format!("{why}; listDeployments shows what there is"))
}

/// Which deployment serves, and what a rollback of the service restores: `to`, if it is named.
fn goes_back_to(
    world: &World,
    served: &DeploymentHistory,
    live: Option<DeploymentId>,
    to: Option<DeploymentId>,
) -> Result<(Option<DeploymentId>, Option<Earlier>), Fault> {
    let last = served.latest.front().copied();
    let last =
        last.ok_or_else(|| nothing_to_restore("nothing was deployed to this service yet"))?;
    // The live revision may come from no deployment: a rollback then restores the last
    // deployment.
    let serves = live.filter(|live| *live == last);
    let restores = match to {
        Some(to) if serves == Some(to) => {
            return Err(nothing_to_restore("this deployment serves already"));
        }
        Some(to) if served.latest.contains(&to) => Some(Earlier::Deployment(to)),
        Some(_) => {
            return Err(nothing_to_restore("this deployment did not serve, or too long ago"));
        }
        None if serves.is_none() => Some(Earlier::Deployment(last)),
        None => before(&past(world, served)?),
    };
    Ok((serves, restores))
}

fn past(world: &World, served: &DeploymentHistory) -> Result<Vec<Past>, Fault> {
    let past = |id: &DeploymentId| {
        let found = deployment(world, *id)?;
        let taken_back = found.deployment.state == DeploymentState::RolledBack;
        Ok(Past { id: *id, restores: found.restores, taken_back })
    };
    served.latest.iter().map(past).collect()
}

/// Refuses an image that was built here and removed by the clean-up: no registry has it. If the
/// engine does not answer, the deployment waits for it.
async fn still_has(
    world: &World,
    engine: Option<EngineId>,
    image: &ServiceImage,
) -> Result<(), Fault> {
    let ServiceImage { image_id: None, reference: Some(reference), .. } = image else {
        return Ok(());
    };
    let of_instance = world.host(engine).ok().filter(|host| host.id.is_some());
    for host in [Some(world.hosts.own().clone()), of_instance].into_iter().flatten() {
        if !matches!(host.engine.image(reference).await, Ok(None)) {
            return Ok(());
        }
    }
    Err(Fault::NotNow(
        "the image of that deployment was removed: those of the last five versions are \
             kept; deploy its commit or folder again"
            .into(),
    ))
}

impl Serves<GetDeploymentLogs> for Platform {
    async fn serve(&self, cx: &Call, p: GetDeploymentLogs) -> Result<DeploymentLogs, Fault> {
        let (id, seen) = cx.ancestry.deployment()?;
        // Read before the lines, so that `done` never hides a line that is written in between.
        let done = seen.state.is_decided() && seen.pending().is_none();
        let LinesPage { lines, next_cursor, more } =
            LinesPage::read(&self.world.store, id, p.cursor)?;
        let shown = |line: Line| DeploymentLine { at: line.at, step: line.step, text: line.text };
        let lines = lines.into_iter().map(shown).collect();
        Ok(DeploymentLogs { lines, next_cursor, done: done && !more })
    }
}
