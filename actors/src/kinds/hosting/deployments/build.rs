//! Provides the image of a deployment: pulls it, builds it from a repository or a
//! folder, or uses what exists.

use super::{Deployments, rules::State};
use crate::{
    kinds::{
        delivery::repositories,
        hosting::{
            image_builds::{
                from_recipe::Availability,
                from_source::{self, APP, DEPLOYMENT, Files, Order, Steps, owner},
                queue::Ticket,
            },
            images,
            instances::{Service, ServiceImage, provide_image},
            progress_log::say,
        },
        people::tenant::{organization, tenant_of},
        world::World,
    },
    ports::NotDone,
    runtime::store::Store,
};
use container_engine::{Labels, Secrets};
use contract::{
    AppId, DeploymentId, Fault, Id,
    deployments::{AppSource, Deployment, FolderSource, StepName},
    text::EnvName,
};
use repository::folder::{DOCKERFILE, FolderKind};
use std::time::Duration;

/// The pause before the build of a recipe is looked at again.
const POLL: Duration = Duration::from_secs(1);

/// The repository name of the images that deployments build for an app.
pub fn repository(app: AppId) -> String {
    format!("svc/{}", app.to_string().trim_start_matches("app_").to_ascii_lowercase())
}

/// The place of a deployment in the queue of builds.
pub(super) fn ticket(world: &World, id: DeploymentId, app: AppId) -> Result<Ticket, Fault> {
    let organization = organization(&world.store, app)?;
    let tenant = tenant_of(&world.store, organization)?;
    Ok(Ticket { id: id.unique(), tenant, organization: Some(organization) })
}

fn ticket_now(world: &World, id: DeploymentId, app: AppId) -> Result<Ticket, NotDone> {
    ticket(world, id, app).map_err(|fault| NotDone::Unreachable(fault.to_string()))
}

/// The image of a deployment.
pub(super) struct Image {
    pub reference: String,
    /// The image below it ([`State::base`]).
    pub base: Option<ServiceImage>,
}

/// Ensures that the image is on this machine.
pub(super) async fn image(
    world: &World,
    id: DeploymentId,
    state: &State,
    service: Option<&Service>,
) -> Result<Image, NotDone> {
    let Deployment { app_id, source, .. } = &state.deployment;
    let is_built = state.image.reference.is_none() && state.image.image_id.is_none();
    let (reference, base) = match (&source.git, &source.folder) {
        (Some(git), _) if is_built => {
            let order = order(world, id, state, service)?;
            (of_git(world, id, *app_id, git, order).await?, None)
        }
        (_, Some(folder)) if is_built => {
            let order = order(world, id, state, service)?;
            return of_folder(world, id, *app_id, folder, service, order).await;
        }
        _ => (ready(world, id, &state.image).await?, None),
    };
    Ok(Image { reference, base })
}

/// The reference of an image that is not built for this deployment, once it is on this machine.
async fn ready(world: &World, id: DeploymentId, image: &ServiceImage) -> Result<String, NotDone> {
    let mut image = image.clone();
    say(world, id, StepName::Build, [format!("having {} {} here", image.name, image.version)]);
    loop {
        match provide_image(world, world.hosts.own(), &image).await? {
            Availability::Here(reference) => return Ok(reference),
            Availability::Building(job) => {
                if image.build.replace(job.id) != Some(job.id) {
                    say(
                        world,
                        id,
                        StepName::Build,
                        ["the image is being built from its recipe".to_owned()],
                    );
                }
                world.ports.clock.sleep(POLL).await;
            }
        }
    }
}

/// The build of an image for a deployment. The Dockerfile is a user's, unless `steps` say otherwise.
fn order(
    world: &World,
    id: DeploymentId,
    state: &State,
    service: Option<&Service>,
) -> Result<Order, NotDone> {
    let Deployment { app_id: app, ref source, .. } = state.deployment;
    let tag = id.to_string().trim_start_matches("dep_").to_ascii_lowercase();
    Ok(Order {
        tag: format!("{}:{tag}", repository(app)),
        dockerfile: DOCKERFILE.into(),
        args: source.build_args.to_texts(),
        secrets: secrets(world, state, service)?,
        labels: Labels::from([(APP.into(), app.to_string()), (DEPLOYMENT.into(), id.to_string())]),
        steps: Steps::Programs { owner: owner(app), base: None },
    })
}

/// The variables that the Dockerfile reads as secrets. They are those that the container will have.
fn secrets(
    world: &World,
    State { deployment, env, .. }: &State,
    service: Option<&Service>,
) -> Result<Secrets, NotDone> {
    let env = env.as_ref().or_else(|| service.map(|service| &service.live.env));
    let owner = deployment.instance_id.to_string();
    let secret = |name: &EnvName| {
        let sealed = env.and_then(|env| env.get(name)).ok_or_else(|| {
            NotDone::Refused(format!(
                "the service has no variable {name} for buildSecrets any more"
            ))
        })?;
        let value = world.ports.sealer.open(&owner, sealed);
        let value = value.map_err(|e| NotDone::Refused(format!("the variable {name}: {e}")))?;
        Ok((name.to_string(), value))
    };
    deployment.source.build_secrets.iter().map(secret).collect::<Result<_, _>>().map(Secrets)
}

async fn of_git(
    world: &World,
    id: DeploymentId,
    app: AppId,
    git: &AppSource,
    mut order: Order,
) -> Result<String, NotDone> {
    let remote = repositories::remote(world, app, git).await?;
    if let Some(dockerfile) = &git.dockerfile {
        order.dockerfile = dockerfile.to_string();
    }
    let said = async |line| say(world, id, StepName::Build, [line]);
    let ticket = ticket_now(world, id, app)?;
    from_source::build(world, ticket, Files::Repository(&remote), order, said).await
}

async fn of_folder(
    world: &World,
    id: DeploymentId,
    app: AppId,
    folder: &FolderSource,
    service: Option<&Service>,
    mut order: Order,
) -> Result<Image, NotDone> {
    let sha256 = &folder.sha256;
    let found = world.ports.folders.renew(app, sha256).await;
    let found = found.map_err(|e| NotDone::Unreachable(e.to_string()))?;
    let kind = found.ok_or_else(|| {
        NotDone::Refused("the files of the folder were removed meanwhile; send them again".into())
    })?;
    let base = match service {
        Some(service) if kind != FolderKind::Dockerfile => {
            let base = base(&world.store, service);
            let base = base.map_err(|fault| NotDone::Refused(fault.to_string()))?;
            let image = ready(world, id, &base).await?;
            if kind.runs_code() {
                let npm_registry = world.ports.recipes.npm_registry.clone();
                order.args.extend(npm_registry.map(|url| ("npm_config_registry".to_owned(), url)));
                order.steps = Steps::Programs { owner: owner(app), base: Some(image) };
            } else {
                order.steps = Steps::Copies { base: image };
            }
            Some(base)
        }
        Some(_) => None,
        None => return Err(NotDone::Refused("the service was removed".into())),
    };
    let said = async |line| say(world, id, StepName::Build, [line]);
    let files = Files::Folder(app, sha256, kind);
    let ticket = ticket_now(world, id, app)?;
    let reference = from_source::build(world, ticket, files, order, said).await?;
    Ok(Image { reference, base })
}

/// The image that cloud code is put onto: the registered image that the service runs. If a
/// deployment built what the service runs, the image below that, or else the image of the template.
pub(crate) fn base(store: &Store, service: &Service) -> Result<ServiceImage, Fault> {
    let live = &service.live;
    if live.image.image_id.is_some() {
        return Ok(live.image.clone());
    }
    let built_by = live.deployment.map(|id| store.get::<Deployments>(&id)).transpose()?.flatten();
    if let Some(State { base: Some(base), .. }) = built_by.as_ref().map(|found| &found.state) {
        return Ok(base.clone());
    }
    let template = live.template();
    let (id, version) = (template.image_id, &template.image_version);
    let name = images::usable(store, id, version)?.state.name.clone();
    Ok(ServiceImage::registered(id, name, version.clone()))
}
