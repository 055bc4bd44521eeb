//! The deployments of an instance: triggered, followed, cancelled and rolled back.

use super::instances::Tab;
use crate::{
    answer::{Answer, Frame, Note, done, form_page},
    form::Form,
    list::{CURSOR, List},
    live::{self, Next},
    log::{self, Log, Seen},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    DeploymentId, InstanceId, Limit, Timestamp,
    backend_instances::GetBackendInstance,
    deployments::{
        CancelDeployment, Deployment, DeploymentState, DeploymentTarget, GetDeployment,
        GetDeploymentLogs, ListDeployments, RollbackDeployment, StepState, TriggerDeployment,
    },
    images::{DockerImage, SearchDockerImages},
    instances::{Instance, InstanceKind, Role},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::time::Duration;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/instances/{id}/deployments", web::get().to(list))
        .route("/instances/{id}/deployments", web::post().to(trigger))
        .route("/instances/{id}/deployments/rollback", web::post().to(roll_back))
        .route("/deployments/{id}", web::get().to(show))
        .route("/deployments/{id}/state", web::get().to(follow_state))
        .route("/deployments/{id}/log", web::get().to(follow_log))
        .route("/deployments/{id}/cancel", web::post().to(cancel));
}

/// The pause between looks at a deployment.
const INTERVAL: Duration = Duration::from_secs(2);

#[derive(Template)]
#[template(path = "deployments.html")]
struct Deployments {
    frame: Frame,
    tab: Tab,
    list: List<Deployment>,
    images: Vec<DockerImage>,
    form: Form,
}

impl Deployments {
    /// The services that can be replaced: the target on the wire, and what it is called.
    fn targets(&self) -> Vec<(&'static str, &'static str)> {
        targets(&self.tab.instance)
    }

    /// What a deployment runs, or is made from.
    fn source(deployment: &Deployment) -> String {
        let source = &deployment.source;
        if let Some(git) = &source.git {
            let url = git.url.as_ref().map_or_else(|| "repository".to_owned(), |u| u.to_string());
            return match &git.git_ref {
                Some(git_ref) => format!("{url}, {git_ref}"),
                None => url,
            };
        }
        match (&source.version, &source.template_version, &source.folder) {
            (Some(version), ..) => format!("image version {version}"),
            (_, Some(version), _) => format!("template version {version}"),
            (.., Some(folder)) => format!("folder {}", folder.sha256),
            _ => String::new(),
        }
    }

    /// Whether a later deployment may go back to this one.
    fn may_return_to(deployment: &Deployment) -> bool {
        use DeploymentState::{RolledBack, Superseded};
        matches!(deployment.state, Superseded | RolledBack)
    }
}

/// The services of an instance that deployments replace.
fn targets(instance: &Instance) -> Vec<(&'static str, &'static str)> {
    let target = |role: Role| match (role, instance.kind) {
        (Role::Server, InstanceKind::Backend) => Some(("backend", "Backend")),
        (Role::Server, InstanceKind::Market) => Some(("marketServer", "Market server")),
        (Role::Dashboard, _) => Some(("marketDashboard", "Market dashboard")),
        (Role::Storefront, _) => Some(("marketStorefront", "Storefront")),
        (Role::DocumentDb | Role::SqlDb, _) => None,
    };
    instance.services.iter().filter_map(|service| target(service.role)).collect()
}

/// The part of the list that a person looks at.
#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    cursor: String,
}

async fn list(visitor: Visitor, path: web::Path<String>, wanted: web::Query<Wanted>) -> Answer {
    part_with(&visitor, super::id(path, "instance")?, &wanted.cursor, Form::default()).await
}

/// Shows the newest deployments with a form that was refused.
async fn list_with(visitor: &Visitor, instance_id: InstanceId, form: Form) -> Answer {
    part_with(visitor, instance_id, &String::new(), form).await
}

async fn part_with(
    visitor: &Visitor,
    instance_id: InstanceId,
    cursor: &String,
    form: Form,
) -> Answer {
    let (frame, tab) = Tab::open(visitor, instance_id, "/deployments").await?;
    let at = format!("/instances/{instance_id}/deployments");
    let (of_app, part) = (json!({"appId": tab.instance.app_id}), [(CURSOR, cursor)]);
    let mut list = List::read::<ListDeployments>(visitor, &at, of_app, &part).await?;
    list.items.retain(|deployment| deployment.instance_id == instance_id);
    let images = SearchDockerImages { query: None, limit: Limit::MOST, cursor: None };
    let images = visitor.read(&images).await?.items;
    form_page(&form.clone(), &Deployments { frame, tab, list, images, form })
}

async fn trigger(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let instance_id: InstanceId = super::id(path, "instance")?;
    let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
    let params = json!({
        "appId": instance.app_id,
        "target": form.value("target"),
        "source": source(&form),
    });
    match visitor.send::<TriggerDeployment>(&params, form.key()).await {
        Ok(made) => done(&at(made.id), Note::plain("The deployment is queued.")),
        Err(fault) => list_with(&visitor, instance_id, form.refused(fault)).await,
    }
}

/// The source that a person chose: one of the groups of fields.
fn source(form: &Form) -> Value {
    match form.value("source") {
        "image" => {
            let image = form.value("image").split_once(' ');
            let (image, version) = image.unwrap_or_default();
            json!({"imageId": image, "version": version})
        }
        "template" => json!({"templateVersion": form.value("templateVersion")}),
        _ => {
            let git: Map<String, Value> = form.params(&["url", "ref", "dockerfile"]);
            json!({"git": git})
        }
    }
}

async fn roll_back(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let instance_id: InstanceId = super::id(path, "instance")?;
    let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
    let mut params = form.params(&["toDeploymentId", "target"]);
    params.insert("appId".into(), json!(instance.app_id));
    match visitor.send::<RollbackDeployment>(&Value::Object(params), form.key()).await {
        Ok(made) => done(&at(made.id), Note::plain("The earlier version is being started.")),
        Err(fault) => list_with(&visitor, instance_id, form.refused(fault)).await,
    }
}

fn at(deployment: DeploymentId) -> String {
    format!("/deployments/{deployment}")
}

#[derive(Template)]
#[template(path = "deployment.html")]
struct Show {
    frame: Frame,
    state: State,
    log: Log,
    form: Form,
}

/// What changes while a deployment runs.
#[derive(Template)]
#[template(path = "deployment_state.html")]
struct State {
    deployment: Deployment,
    now: Timestamp,
}

impl State {
    /// Whether the deployment can still become something else by itself.
    fn is_under_way(&self) -> bool {
        use DeploymentState::{Building, Cancelling, Deploying, Queued, Verifying};
        let state = self.deployment.state;
        // One that serves still lets the old container finish its requests.
        let drains = self.deployment.steps.iter().any(|step| step.state == StepState::Running);
        let drains = state == DeploymentState::Live && drains;
        matches!(state, Queued | Building | Deploying | Verifying | Cancelling) || drains
    }

    fn may_be_cancelled(&self) -> bool {
        use DeploymentState::{Building, Deploying, Queued, Verifying};
        matches!(self.deployment.state, Queued | Building | Deploying | Verifying)
    }

    fn target(&self) -> &'static str {
        match self.deployment.target {
            DeploymentTarget::Backend => "backend",
            DeploymentTarget::MarketServer => "market server",
            DeploymentTarget::MarketDashboard => "market dashboard",
            DeploymentTarget::MarketStorefront => "storefront",
        }
    }
}

async fn show(visitor: Visitor, path: web::Path<String>) -> Answer {
    show_with(&visitor, super::id(path, "deployment")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, deployment_id: DeploymentId, form: Form) -> Answer {
    let deployment = visitor.read(&GetDeployment { deployment_id }).await?;
    let log = Log::read::<GetDeploymentLogs>(visitor, deployment_id, "").await?;
    let frame = Frame::of(visitor, "Deployment").await?;
    let instance = format!("/instances/{}", deployment.instance_id);
    let frame = frame.below("Instance", &instance);
    let frame = frame.below("Deployments", format!("{instance}/deployments"));
    let state = State { deployment, now: frame.now };
    form_page(&form.clone(), &Show { frame, state, log, form })
}

async fn follow_state(visitor: Visitor, path: web::Path<String>) -> Answer {
    let deployment_id: DeploymentId = super::id(path, "deployment")?;
    live::stream(visitor, INTERVAL, async move |visitor, last| {
        let deployment = visitor.read(&GetDeployment { deployment_id }).await?;
        let state = State { deployment, now: visitor.now() };
        let next = if state.is_under_way() { Next::Later } else { Next::Never };
        live::replaced(&state, last, next)
    })
    .await
}

async fn follow_log(visitor: Visitor, path: web::Path<String>, seen: web::Query<Seen>) -> Answer {
    let deployment_id: DeploymentId = super::id(path, "deployment")?;
    log::follow::<GetDeploymentLogs>(visitor, deployment_id, seen, INTERVAL).await
}

async fn cancel(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let deployment_id: DeploymentId = super::id(path, "deployment")?;
    let params = json!({"deploymentId": deployment_id});
    match visitor.send::<CancelDeployment>(&params, form.key()).await {
        Ok(deployment) => done(
            &at(deployment_id),
            Note::plain(format!("The deployment is {}.", super::name(&deployment.state))),
        ),
        Err(fault) => show_with(&visitor, deployment_id, form.refused(fault)).await,
    }
}
