//! The deployments of an instance: triggered, followed, cancelled and rolled back.

use super::{ListQuery, instances::InstanceTab};
use crate::{
    form::{Form, value},
    frame::{Frame, View},
    job::{self, Job, LogPart},
    list::{CURSOR, ListPart},
    response::{Note, PageResult, Refused, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Cursor, DeploymentId, Fault, InstanceId, Limit,
    backend_instances::GetBackendInstance,
    deployments::{
        AppSource, CancelDeployment, Deployment, DeploymentLogs, DeploymentSource, DeploymentState,
        DeploymentTarget, GetDeployment, GetDeploymentLogs, ListDeployments, RollbackDeployment,
        StepState, TriggerDeployment,
    },
    images::{DockerImage, SearchDockerImages},
    instances::{Instance, InstanceKind, Role},
};
use messages::Messages;
use std::time::Duration;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/instances/{id}/deployments", web::get().to(list))
        .route("/instances/{id}/deployments", web::post().to(trigger))
        .route("/instances/{id}/deployments/rollback", web::post().to(roll_back))
        .route("/deployments/{id}", web::get().to(job::show::<DeploymentSummary>))
        .route("/deployments/{id}/state", web::get().to(job::follow_state::<DeploymentSummary>))
        .route("/deployments/{id}/log", web::get().to(job::follow_log::<DeploymentSummary>))
        .route("/deployments/{id}/cancel", web::post().to(job::cancel::<DeploymentSummary>));
}

#[derive(Template)]
#[template(path = "deployments.html")]
struct DeploymentsPage {
    frame: Frame,
    tab: InstanceTab,
    list: ListPart<Deployment>,
    images: Vec<DockerImage>,
    form: Form,
}

impl DeploymentsPage {
    /// The services that can be replaced: the target on the wire, and what it is called.
    fn targets(&self) -> Vec<(&'static str, String)> {
        targets(self.frame.messages, &self.tab.instance)
    }

    /// What a deployment runs, or is made from.
    fn source(say: &Messages, deployment: &Deployment) -> String {
        let source = &deployment.source;
        if let Some(git) = &source.git {
            let url = git.url.as_ref().map_or_else(|| say.its_repository(), |u| u.to_string());
            return match &git.git_ref {
                Some(git_ref) => format!("{url}, {git_ref}"),
                None => url,
            };
        }
        match (&source.version, &source.template_version, &source.folder) {
            (Some(version), ..) => say.image_version_is(version),
            (_, Some(version), _) => say.template_version_is(version),
            (.., Some(folder)) => say.folder_is(&folder.sha256),
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
fn targets(say: Messages, instance: &Instance) -> Vec<(&'static str, String)> {
    let target = |role: Role| match (role, instance.kind) {
        (Role::Server, InstanceKind::Backend) => Some(("backend", say.backend())),
        (Role::Server, InstanceKind::Market) => Some(("marketServer", say.market_server())),
        (Role::Dashboard, _) => Some(("marketDashboard", say.market_dashboard())),
        (Role::Storefront, _) => Some(("marketStorefront", say.storefront())),
        (Role::DocumentDb | Role::SqlDb, _) => None,
    };
    instance.services.iter().filter_map(|service| target(service.role)).collect()
}

async fn list(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ListQuery>,
) -> PageResult {
    part_with(&visitor, super::id(path, "instance")?, &query, Form::default()).await
}

/// Shows the newest deployments with a form that was refused.
async fn list_with(visitor: &Visitor, instance_id: InstanceId, form: Form) -> PageResult {
    part_with(visitor, instance_id, &ListQuery::default(), form).await
}

async fn part_with(
    visitor: &Visitor,
    instance_id: InstanceId,
    query: &ListQuery,
    form: Form,
) -> PageResult {
    let (frame, tab) = InstanceTab::open(visitor, instance_id, "/deployments").await?;
    let (at, app_id) = (format!("/instances/{instance_id}/deployments"), tab.instance.app_id);
    let mut list = ListPart::read(visitor, &at, query.form(), |form| {
        let (limit, cursor) = (Limit::default(), form.get(CURSOR)?);
        Ok(ListDeployments { app_id, target: None, state: None, limit, cursor })
    })
    .await?;
    list.items.retain(|deployment: &Deployment| deployment.instance_id == instance_id);
    let images = SearchDockerImages { query: None, limit: Limit::MOST, cursor: None };
    let images = visitor.read(&images).await?.items;
    form_page(&form.clone(), &DeploymentsPage { frame, tab, list, images, form })
}

async fn trigger(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::id(path, "instance")?;
    let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
    let params = |form: &Form| {
        let (app_id, source) = (instance.app_id, source(form)?);
        Ok(TriggerDeployment { app_id, target: Some(form.get("target")?), source, env: None })
    };
    match visitor.send(&form, params).await {
        Ok(made) => done(
            &DeploymentSummary::address(made.id),
            Note::plain(visitor.say().the_deployment_is_queued()),
        ),
        Err(fault) => list_with(&visitor, instance_id, form.refused_as(fault, &OF_A_BUILD)).await,
    }
}

/// The fields of a build as the service names them, and as the page does.
const OF_A_BUILD: [(&str, &str); 5] = [
    ("source.git.url", "url"),
    ("source.git.ref", "ref"),
    ("source.git.dockerfile", "dockerfile"),
    ("source.buildArgs", "buildArgs"),
    ("source.buildSecrets", "buildSecrets"),
];

/// The source that a person chose: one of the groups of fields. A problem with the choice of an image
/// stands at the source.
fn source(form: &Form) -> Result<DeploymentSource, Fault> {
    let mut source = DeploymentSource::default();
    match form.value("source") {
        "image" => {
            let (image, version) = form.value("image").split_once(' ').unwrap_or_default();
            source.image_id = Some(value::read("source.imageId", [image])?);
            source.version = Some(value::read("source.version", [version])?);
        }
        "template" => source.template_version = Some(form.get("templateVersion")?),
        _ => {
            let (url, git_ref) = (form.get("url")?, form.get("ref")?);
            source.git = Some(AppSource { url, git_ref, dockerfile: form.get("dockerfile")? });
            source.build_args = form.get("buildArgs")?;
            let names = form.value("buildSecrets").lines().map(str::trim);
            source.build_secrets = value::read("source.buildSecrets", names)?;
        }
    }
    Ok(source)
}

async fn roll_back(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::id(path, "instance")?;
    let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
    let params = |form: &Form| {
        Ok(RollbackDeployment {
            app_id: instance.app_id,
            target: form.get("target")?,
            to_deployment_id: form.get("toDeploymentId")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(made) => done(
            &DeploymentSummary::address(made.id),
            Note::plain(visitor.say().earlier_version_is_starting()),
        ),
        Err(fault) => list_with(&visitor, instance_id, form.refused(fault)).await,
    }
}

/// What changes while a deployment runs.
#[derive(Template)]
#[template(path = "deployment_state.html")]
struct DeploymentSummary {
    deployment: Deployment,
    frame: View,
}

impl Job for DeploymentSummary {
    type Id = DeploymentId;
    type Get = GetDeployment;
    type GetLog = GetDeploymentLogs;
    type Cancel = CancelDeployment;

    const ABOVE: &'static str = "/deployments";
    const NOUN: &'static str = "deployment";
    const INTERVAL: Duration = Duration::from_secs(2);

    fn get(deployment_id: DeploymentId) -> GetDeployment {
        GetDeployment { deployment_id }
    }

    fn get_log(deployment_id: DeploymentId, cursor: Option<Cursor>) -> GetDeploymentLogs {
        GetDeploymentLogs { deployment_id, cursor }
    }

    fn cancel(deployment_id: DeploymentId) -> CancelDeployment {
        CancelDeployment { deployment_id }
    }

    fn new(deployment: Deployment, frame: View) -> DeploymentSummary {
        DeploymentSummary { deployment, frame }
    }

    fn log_part(DeploymentLogs { lines, next_cursor, done }: DeploymentLogs) -> LogPart {
        LogPart::new(lines.into_iter().map(|line| line.text), next_cursor, done)
    }

    fn cancelled(say: Messages, deployment: Deployment) -> Note {
        Note::plain(say.the_deployment_is(super::name(&say, &deployment.state)))
    }

    fn has_ended(&self) -> bool {
        use DeploymentState::{Building, Cancelling, Deploying, Live, Queued, Verifying};
        match self.deployment.state {
            Queued | Building | Deploying | Verifying | Cancelling => false,
            // One that serves still lets the old container finish its requests.
            Live => self.deployment.steps.iter().all(|step| step.state != StepState::Running),
            _ => true,
        }
    }

    fn may_be_cancelled(&self) -> bool {
        use DeploymentState::{Building, Deploying, Queued, Verifying};
        matches!(self.deployment.state, Queued | Building | Deploying | Verifying)
    }

    fn cancel_label(&self, say: &Messages) -> String {
        say.cancel_the_deployment()
    }

    fn heading(&self) -> String {
        let say = self.frame.messages;
        match self.deployment.target {
            DeploymentTarget::Backend => say.deployment_of_backend(),
            DeploymentTarget::MarketServer => say.deployment_of_market_server(),
            DeploymentTarget::MarketDashboard => say.deployment_of_market_dashboard(),
            DeploymentTarget::MarketStorefront => say.deployment_of_storefront(),
        }
    }

    fn command(&self) -> String {
        format!("svc call getDeploymentLogs -p deploymentId={}", self.deployment.id)
    }

    async fn frame(&self, visitor: &Visitor) -> Result<Frame, Refused> {
        let instance = format!("/instances/{}", self.deployment.instance_id);
        let (frame, _) =
            Frame::in_app(visitor, Messages::deployment, self.deployment.app_id).await?;
        let frame = frame.below_page(Messages::instance, &instance);
        Ok(frame.below_page(Messages::deployments, format!("{instance}/deployments")))
    }
}
