//! What an instance does now, and did in the last 24 hours.

use super::{InstanceTab, at};
use crate::{
    chart::Chart,
    form::Form,
    frame::{Frame, View},
    live::{self, Next},
    response::{Note, PageFuture, PageResult, done, form_page},
    text::size,
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, Function, InstanceId,
    backend_instances::{
        DeleteBackendInstance, GetBackendInstance, GetServerMetrics, RestartBackendInstance,
        ServerMetrics, StartBackendInstance, StopBackendInstance, UpdateBackendInstance,
    },
    instances::{DesiredState, Instance, InstanceState, Resources},
    market_instances::{DeployMarketDashboard, DeployMarketStorefront},
};
use futures_util::future::FutureExt;
use std::time::Duration;

/// The pause between two readings of an instance.
const INTERVAL: Duration = Duration::from_secs(3);
/// The time that the charts show.
const CHARTED: Duration = Duration::from_secs(24 * 60 * 60);
const CHARTED_MINUTES: u32 = 24 * 60;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/instances/{id}", web::get().to(show))
        .route("/instances/{id}/state", web::get().to(follow))
        .route("/instances/{id}/start", web::post().to(act(start)))
        .route("/instances/{id}/start-without-data", web::post().to(act(start_without_data)))
        .route("/instances/{id}/stop", web::post().to(act(stop)))
        .route("/instances/{id}/restart", web::post().to(act(restart)))
        .route("/instances/{id}/dashboard", web::post().to(add(dashboard)))
        .route("/instances/{id}/storefront", web::post().to(add(storefront)))
        .route("/instances/{id}/settings", web::post().to(change))
        .route("/instances/{id}/delete", web::post().to(delete));
}

#[derive(Template)]
#[template(path = "instance.html")]
struct InstancePage {
    frame: Frame,
    tab: InstanceTab,
    state: InstanceSummary,
    charts: Vec<Chart>,
    form: Form,
}

impl InstancePage {
    fn wants_to_run(&self) -> bool {
        self.tab.instance.desired_state == DesiredState::Running
    }

    fn is_up(&self) -> bool {
        matches!(self.tab.instance.state, InstanceState::Running | InstanceState::Degraded)
    }

    fn lacks_volume(&self) -> bool {
        self.tab.instance.services.iter().any(|service| service.volume_gone)
    }
}

/// What changes while an instance is watched.
#[derive(Template)]
#[template(path = "instance_state.html")]
struct InstanceSummary {
    instance: Instance,
    frame: View,
}

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    show_with(&visitor, super::super::id(path, "instance")?, Form::default()).await
}

/// Shows an instance with a form that was refused, or an empty one. The other forms have what is set
/// now.
async fn show_with(visitor: &Visitor, instance_id: InstanceId, form: Form) -> PageResult {
    let (frame, tab) = InstanceTab::open(visitor, instance_id, "").await?;
    let past = GetServerMetrics { instance_id, minutes: Some(CHARTED_MINUTES) };
    // Without the engine there is nothing to draw, and the page says what it knows.
    let past = visitor.read(&past).await;
    let charts = past.map(|past| charts(&past, frame.view())).unwrap_or_default();
    let state = InstanceSummary { instance: tab.instance.clone(), frame: frame.view() };
    let instance = &tab.instance;
    let form = form.beside(Form::filled([
        ("name", instance.name.to_string()),
        ("memoryMb", instance.resources.memory_mb.to_string()),
        ("cpus", instance.resources.cpus.to_string()),
    ]));
    form_page(&form.clone(), &InstancePage { frame, tab, state, charts, form })
}

fn charts(metrics: &ServerMetrics, view: View) -> Vec<Chart> {
    let say = view.messages;
    let past = &metrics.history;
    let cpu = past.iter().filter_map(|sample| Some((sample.sampled_at, sample.cpu_percent?)));
    let memory = past.iter().map(|sample| (sample.sampled_at, sample.memory_bytes as f64));
    let limit = past.last().map_or(0, |sample| sample.memory_limit_bytes);
    let percent = |value: f64| format!("{value:.1} %");
    let bytes = |value: f64| size(value as u64);
    let cpu = Chart::draw(say.processor(), cpu, (view, CHARTED), 10.0, percent);
    let memory = Chart::draw(say.memory(), memory, (view, CHARTED), limit as f64, bytes);
    cpu.into_iter().chain(memory).collect()
}

async fn follow(visitor: Visitor, path: web::Path<String>) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    live::stream(visitor, INTERVAL, async move |visitor, last| {
        let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
        let state = InstanceSummary { instance, frame: visitor.view() };
        live::replaced(&state, last, Next::Later)
    })
    .await
}

fn start(instance_id: InstanceId) -> StartBackendInstance {
    StartBackendInstance { instance_id, accept_data_loss: false, wait: false }
}

fn start_without_data(instance_id: InstanceId) -> StartBackendInstance {
    StartBackendInstance { instance_id, accept_data_loss: true, wait: false }
}

fn stop(instance_id: InstanceId) -> StopBackendInstance {
    StopBackendInstance { instance_id, wait: false }
}

fn restart(instance_id: InstanceId) -> RestartBackendInstance {
    RestartBackendInstance { instance_id, wait: false }
}

fn dashboard(app_id: AppId) -> DeployMarketDashboard {
    DeployMarketDashboard { app_id, env: None }
}

fn storefront(app_id: AppId) -> DeployMarketStorefront {
    DeployMarketStorefront { app_id, env: None }
}

/// The handler of an action that needs only the instance.
fn act<F: Function>(
    params: fn(InstanceId) -> F,
) -> impl Fn(Visitor, web::Path<String>, Form) -> PageFuture + Clone {
    move |visitor, path, form| {
        async move {
            let instance_id: InstanceId = super::super::id(path, "instance")?;
            match visitor.send(&form, |_| Ok(params(instance_id))).await {
                Ok(_) => done(&at(instance_id), Note::plain(visitor.say().it_is_under_way())),
                Err(fault) => show_with(&visitor, instance_id, form.refused(fault)).await,
            }
        }
        .boxed_local()
    }
}

/// The handler that adds a part of a market server, or deploys it again.
fn add<F: Function>(
    params: fn(AppId) -> F,
) -> impl Fn(Visitor, web::Path<String>, Form) -> PageFuture + Clone {
    move |visitor, path, form| {
        async move {
            let instance_id: InstanceId = super::super::id(path, "instance")?;
            let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
            match visitor.send(&form, |_| Ok(params(instance.app_id))).await {
                Ok(_) => done(&at(instance_id), Note::plain(visitor.say().it_is_under_way())),
                Err(fault) => show_with(&visitor, instance_id, form.refused(fault)).await,
            }
        }
        .boxed_local()
    }
}

async fn change(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let params = |form: &Form| {
        let resources = Resources { memory_mb: form.get("memoryMb")?, cpus: form.get("cpus")? };
        let (name, resources) = (Some(form.get("name")?), Some(resources));
        Ok(UpdateBackendInstance { instance_id, name, env: None, resources })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(instance_id), visitor.say().the_instance_is_changed()),
        Err(fault) => {
            let names = [("resources.memoryMb", "memoryMb"), ("resources.cpus", "cpus")];
            show_with(&visitor, instance_id, form.refused_as(fault, &names)).await
        }
    }
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let instance_id: InstanceId = super::super::id(path, "instance")?;
    let instance = visitor.read(&GetBackendInstance { instance_id }).await?;
    let delete_data = form.has("deleteData", "yes");
    let params = |form: &Form| {
        form.confirm(instance.name.as_str(), "the name of the instance")?;
        Ok(DeleteBackendInstance { instance_id, delete_data })
    };
    let to = format!("/projects/{}/instances", instance.project_id);
    match visitor.send(&form, params).await {
        Ok(_) if delete_data => done(&to, visitor.say().instance_and_data_are_deleted()),
        Ok(_) => done(&to, visitor.say().instance_is_deleted()),
        Err(fault) => show_with(&visitor, instance_id, form.refused(fault)).await,
    }
}
