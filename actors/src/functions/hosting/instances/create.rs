//! Creates an instance from a template.

use crate::{
    call::{context::Call, platform::Platform},
    functions::hosting::{
        backups::initial_restore,
        engines::place::placed,
        templates::{sees_all, template},
    },
    kinds::{
        hosting::{
            images,
            instances::{
                commands::{Creation, ForApp},
                container_spec::UNMEASURED_BYTES,
                record::Instance,
                secrets::{new_secrets, seal, secret_names},
                service::{Definition, Revision, Service, ServiceImage},
            },
            templates::{TemplateClaim, Templates},
        },
        people::apps::{App, Apps},
        world::World,
    },
    ports::sealed::Sealed,
};
use contract::{
    AppId, BackupId, EngineId, Fault, FieldProblem, InstanceId, Name, ProjectId, TemplateId,
    env::Env,
    images::DockerImage,
    instances::{DesiredState, InstanceKind, InstanceState, Resources, Role},
    templates::{SemanticVersion, TemplateService, TemplateStatus},
    text::{EnvName, EnvValue, MASK, Slug},
};
use std::collections::{BTreeMap, BTreeSet};
use store::Snapshot;

#[derive(Clone)]
pub(super) struct NewInstance {
    pub kind: InstanceKind,
    pub project_id: ProjectId,
    pub app_id: Option<AppId>,
    pub name: Name,
    pub template_id: Option<TemplateId>,
    pub env: Env,
    pub resources: Option<Resources>,
    /// What its engine must be labelled with.
    pub engine_labels: BTreeMap<Slug, Slug>,
    /// The backup that the instance begins with.
    pub from_backup: Option<BackupId>,
}

/// Reads everything that a new instance is written from.
pub(super) fn creation(
    platform: &Platform,
    cx: &Call,
    id: InstanceId,
    new: NewInstance,
) -> Result<Creation, Fault> {
    let template = template_for(platform, cx, &new)?;
    let state = &template.state;
    let current =
        state.versions.iter().find(|v| Some(&v.version) == state.current_version.as_ref());
    let version = current.ok_or(Fault::NotFound("version of this template"))?;
    let resources = new.resources.unwrap_or_default();
    check_limits(resources)?;
    platform.world.ports.machine.check_room(UNMEASURED_BYTES)?;
    let (app_id, app) = app_for(cx, &new)?;
    let mut images = BTreeMap::new();
    let mut services = Vec::new();
    for service in version.services.iter().filter(|service| is_initial(service.role)) {
        let seen = images::usable(&platform.world.store, service.image_id, &service.image_version)?;
        let env = if service.role == Role::Server { &new.env } else { &Env::default() };
        let definition =
            Definition { template_version: version.version.clone(), service: service.clone() };
        services.push(new_service(&platform.world, id, definition, &seen.state, env)?);
        images.insert(service.image_id, seen);
    }
    services.sort_by_key(|service: &Service| service.role);
    let restore = |backup| initial_restore(&platform.world, backup, new.project_id, &services);
    let initial_restore = new.from_backup.map(restore).transpose()?;
    let mut instance = Instance {
        project_id: new.project_id,
        app_id,
        kind: new.kind,
        name: new.name,
        engine: None,
        moving: None,
        not_moved: None,
        left_behind: Vec::new(),
        template_id: state.id,
        template_version: version.version.clone(),
        resources,
        secrets: new_secrets(&platform.world, id, secret_names(&version.services))?,
        services,
        schedules: BTreeMap::new(),
        initial_restore,
        desired: DesiredState::Running,
        state: InstanceState::Provisioning,
        deadline: Some(cx.now + crate::kinds::hosting::instances::rules::PROVISION_WITHIN),
        coming_up: false,
        delete_data: false,
        left_to: None,
        crashes: Vec::new(),
        unreachable_since: None,
        observing: false,
        advised: BTreeSet::new(),
        disk_bytes: None,
        held: None,
        awaits_room: false,
        last_error: None,
        last_log: Vec::new(),
        created_at: cx.now,
        updated_at: cx.now,
    };
    let engine = placed(&platform.world, &instance, &new.engine_labels)?;
    instance.engine = engine.as_ref().map(|(id, _)| *id);
    check_processors(&platform.world, instance.engine, resources)?;
    let images = images.into_iter().collect();
    Ok(Creation { instance, template, images, engine, app })
}

/// The requested template, or the default one.
fn template_for(
    platform: &Platform,
    cx: &Call,
    new: &NewInstance,
) -> Result<Snapshot<Templates>, Fault> {
    let defaults = &platform.settings.default_templates;
    let slug = match new.kind {
        InstanceKind::Backend => &defaults.backend,
        InstanceKind::Market => &defaults.market,
    };
    let id = match new.template_id {
        Some(id) => id,
        None => {
            let id = platform.world.store.holder(&TemplateClaim::Slug { slug: slug.clone() })?;
            id.ok_or_else(|| {
                Fault::invalid("templateId", "is needed: there is no default template")
            })?
        }
    };
    let template = template(&platform.world, id)?;
    let state = &template.state;
    if state.kind != new.kind {
        return Err(Fault::invalid("templateId", "must be a template of this kind of instance"));
    }
    match state.status {
        TemplateStatus::Published => Ok(template),
        // Whoever maintains templates tries them before they are published.
        TemplateStatus::Draft if sees_all(&cx.caller) => Ok(template),
        TemplateStatus::Draft => Err(Fault::NotFound("template")),
        TemplateStatus::Archived => Err(Fault::NotNow(
            "this template is archived; choose another one with getTemplates".into(),
        )),
    }
}

/// The requested app, which must be in the project; or a new one.
fn app_for(cx: &Call, new: &NewInstance) -> Result<(AppId, ForApp), Fault> {
    let Some(id) = new.app_id else {
        let app = App::new(new.project_id, new.name.clone(), cx.now);
        return Ok((cx.world.ports.random.id(cx.now), ForApp::New(Box::new(app))));
    };
    let found = cx.world.store.get::<Apps>(&id)?;
    let ours = found.filter(|app| app.project_id == new.project_id && !app.is_deleted());
    ours.map(|seen| (id, ForApp::Existing(seen))).ok_or(Fault::NotFound("app of this project"))
}

fn new_service(
    world: &World,
    id: InstanceId,
    definition: Definition,
    image: &DockerImage,
    env: &Env,
) -> Result<Service, Fault> {
    let template = &definition.service;
    let version = template.image_version.clone();
    let image = ServiceImage::registered(template.image_id, image.name.clone(), version);
    let env = seal_env(world, id, template, env, &BTreeMap::new())?;
    Ok(Service::new(Revision::new(1, definition, image, env)))
}

/// A service that the template defines and the instance does not have yet.
pub(super) fn additional_service(
    world: &World,
    id: InstanceId,
    instance: &Instance,
    role: Role,
    env: &Env,
) -> Result<Service, Fault> {
    let definition = definition(world, instance, &instance.template_version, role)?;
    let definition = definition.ok_or_else(|| {
        Fault::NotNow(format!(
            "the template of this instance has no {}; deploy a version of it that has one \
             (triggerDeployment), or choose another template",
            role.label()
        ))
    })?;
    let TemplateService { image_id, image_version, .. } = &definition.service;
    let seen = images::usable(&world.store, *image_id, image_version)?;
    new_service(world, id, definition, &seen.state, env)
}

/// A service as a version of the instance's template defines it, if it does.
pub(crate) fn definition(
    world: &World,
    instance: &Instance,
    version: &SemanticVersion,
    role: Role,
) -> Result<Option<Definition>, Fault> {
    let template = template(world, instance.template_id)?;
    let known = template.state.versions.iter().find(|known| known.version == *version);
    let known = known.ok_or(Fault::NotFound("version of the instance's template"))?;
    let service = known.services.iter().find(|service| service.role == role).cloned();
    let template_version = version.clone();
    Ok(service.map(|service| Definition { template_version, service }))
}

/// Seals the variables that a caller sets. A caller cannot set a variable of the template. A
/// masked value stands for the present one. They have at most [`Env::MOST_BYTES`] together.
pub(crate) fn seal_env(
    world: &World,
    id: InstanceId,
    template: &TemplateService,
    env: &Env,
    present: &BTreeMap<EnvName, Sealed>,
) -> Result<BTreeMap<EnvName, Sealed>, Fault> {
    let problem = |name: &EnvName, value: &EnvValue| {
        if template.env.contains_key(name) {
            Some("is set by the template and cannot be replaced")
        } else if value.as_str() == MASK && !present.contains_key(name) {
            Some("is masked, and there is no present value to keep; enter the value")
        } else {
            None
        }
    };
    let problems = env.iter().filter_map(|(name, value)| {
        let field = format!("env.{name}");
        problem(name, value).map(|problem| FieldProblem { field, problem: problem.into() })
    });
    let problems: Vec<_> = problems.collect();
    if !problems.is_empty() {
        return Err(Fault::Invalid(problems));
    }
    let seal = |(name, value): (&EnvName, &EnvValue)| {
        let kept = present.get(name).filter(|_| value.as_str() == MASK);
        let sealed = match kept {
            Some(kept) => kept.clone(),
            None => seal(world, id, value.as_str())?,
        };
        Ok((name.clone(), sealed))
    };
    let sealed = env.iter().map(seal).collect::<Result<BTreeMap<_, _>, Fault>>()?;
    let bytes = |(name, value): (&EnvName, &Sealed)| name.as_str().len() + value.secret_bytes();
    Env::check_bytes("env", sealed.iter().map(bytes).sum())?;
    Ok(sealed)
}

/// Dashboard and storefront are added by functions of their own.
fn is_initial(role: Role) -> bool {
    !matches!(role, Role::Dashboard | Role::Storefront)
}

/// Refuses limits that no instance may have, or that are more than the machine of its engine has.
pub(super) fn check_resources(
    world: &World,
    engine: Option<EngineId>,
    resources: Resources,
) -> Result<(), Fault> {
    check_limits(resources)?;
    check_processors(world, engine, resources)
}

fn check_limits(resources: Resources) -> Result<(), Fault> {
    if !(128..=65_536).contains(&resources.memory_mb) {
        return Err(Fault::invalid("resources.memoryMb", "must be from 128 to 65536"));
    }
    if !(0.1..=64.0).contains(&resources.cpus) {
        return Err(Fault::invalid("resources.cpus", "must be from 0.1 to 64"));
    }
    Ok(())
}

fn check_processors(
    world: &World,
    engine: Option<EngineId>,
    resources: Resources,
) -> Result<(), Fault> {
    let about = world.host(engine).ok().and_then(|host| host.health.status().about);
    match about.map(|about| about.cpus) {
        Some(cpus) if cpus > 0 && resources.cpus > f64::from(cpus) => {
            let problem = format!("must be at most {cpus}, the processors of this server");
            return Err(Fault::invalid("resources.cpus", problem));
        }
        _ => {}
    }
    Ok(())
}
