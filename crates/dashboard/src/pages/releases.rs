//! The releases of an app: made of artifacts, published, rolled out and rolled back.

use super::{apps::Tab, artifacts};
use crate::{
    answer::{Answer, Frame, Refused, done, form_page, page},
    form::Form,
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, ArtifactId, Fault, Function, Limit, ReleaseId,
    artifacts::Artifact,
    releases::{
        CheckRelease, CreateRelease, DeleteRelease, GetRelease, GetReleases, HaltRollout,
        PublicationState, PublishRelease, Release, ReleaseState, ResumeRollout, Rollback,
        RollbackRelease, SetRollout, Target,
    },
};
use serde_json::{Value, json};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/releases", web::get().to(list))
        .route("/apps/{id}/releases", web::post().to(create))
        .route("/releases/{id}", web::get().to(show))
        .route("/releases/{id}/publish", web::post().to(publish))
        .route("/releases/{id}/rollout", web::post().to(set_rollout))
        .route("/releases/{id}/halt", web::post().to(act::<HaltRollout>))
        .route("/releases/{id}/resume", web::post().to(act::<ResumeRollout>))
        .route("/releases/{id}/check", web::post().to(act::<CheckRelease>))
        .route("/releases/{id}/delete", web::post().to(delete))
        .route("/releases/{id}/rollback", web::get().to(plan))
        .route("/releases/{id}/rollback", web::post().to(roll_back));
}

/// The releases of an app, newest first.
pub async fn of_app(visitor: &Visitor, app_id: AppId) -> Result<Vec<Release>, Refused> {
    let all =
        GetReleases { app_id, channel: None, state: None, limit: Limit::default(), cursor: None };
    Ok(visitor.read(&all).await?.items)
}

#[derive(Template)]
#[template(path = "releases.html")]
struct List {
    frame: Frame,
    tab: Tab,
    releases: Vec<Release>,
    artifacts: Vec<Artifact>,
    form: Form,
}

async fn list(visitor: Visitor, path: web::Path<String>) -> Answer {
    let form = Form::filled([("channel", "production".to_owned())]);
    list_with(&visitor, super::id(path, "app")?, form).await
}

async fn list_with(visitor: &Visitor, app_id: AppId, form: Form) -> Answer {
    let (frame, tab) = Tab::open(visitor, app_id, "/releases").await?;
    let releases = of_app(visitor, app_id).await?;
    let artifacts = artifacts::verified(visitor, app_id).await?;
    form_page(&form.clone(), &List { frame, tab, releases, artifacts, form })
}

async fn create(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let app_id: AppId = super::id(path, "app")?;
    let mut params = form.params(&["channel", "version", "notes"]);
    params.insert("appId".into(), json!(app_id));
    params.insert("artifactIds".into(), json!(form.values("artifactIds")));
    match visitor.send::<CreateRelease>(&Value::Object(params), form.key()).await {
        Ok(release) => {
            done(&at(release.id), "The release is a draft. Publish it when it is ready.")
        }
        Err(fault) => list_with(&visitor, app_id, form.refused(fault)).await,
    }
}

fn at(release: ReleaseId) -> String {
    format!("/releases/{release}")
}

#[derive(Template)]
#[template(path = "release.html")]
struct Show {
    frame: Frame,
    release: Release,
    artifacts: Vec<Artifact>,
    /// The address of the install page, and its QR code.
    install: Option<(String, String)>,
    form: Form,
}

impl Show {
    /// What an artifact of the release is called.
    fn artifact(&self, id: &ArtifactId) -> String {
        let found = self.artifacts.iter().find(|artifact| artifact.id == *id);
        found.map_or_else(|| id.to_string(), |artifact| artifact.file_name.to_string())
    }

    fn targets(&self) -> [&'static str; 5] {
        Target::ALL.map(Target::name)
    }

    fn is(&self, state: ReleaseState) -> bool {
        self.release.state == state
    }

    /// Whether the release may be published, or a publication of it may be tried again.
    fn may_publish(&self) -> bool {
        use ReleaseState::{Draft, Failed, PartiallyPublished, Published};
        matches!(self.release.state, Draft | Failed | PartiallyPublished | Published)
    }

    fn may_roll_back(&self) -> bool {
        use ReleaseState::{PartiallyPublished, Published, Publishing};
        matches!(self.release.state, Publishing | Published | PartiallyPublished)
    }

    fn may_delete(&self) -> bool {
        self.is(ReleaseState::Draft) || self.is(ReleaseState::Failed)
    }

    /// Whether a publication has a staged rollout.
    fn is_staged(&self) -> bool {
        self.release.publications.iter().any(|publication| publication.rollout.is_some())
    }

    fn is_halted(&self) -> bool {
        let halted = |p: &contract::releases::Publication| p.state == PublicationState::Halted;
        self.release.publications.iter().any(halted)
    }
}

async fn show(visitor: Visitor, path: web::Path<String>) -> Answer {
    show_with(&visitor, super::id(path, "release")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, release_id: ReleaseId, form: Form) -> Answer {
    let release = visitor.read(&GetRelease { release_id }).await?;
    let frame = frame_of(visitor, &release, release.version.as_str()).await?;
    let artifacts = artifacts::verified(visitor, release.app_id).await?;
    let ota = release.publications.iter().find(|publication| {
        publication.target == Target::Ota && publication.state == PublicationState::Live
    });
    let install = ota.and_then(|publication| publication.url.clone());
    let install = install.map(|url| (url.clone(), qr_code(&url)));
    form_page(&form.clone(), &Show { frame, release, artifacts, install, form })
}

async fn frame_of(visitor: &Visitor, release: &Release, title: &str) -> Result<Frame, Refused> {
    let app = format!("/apps/{}", release.app_id);
    let frame = Frame::of(visitor, title).await?;
    Ok(frame.below("App", &app).below("Releases", format!("{app}/releases")))
}

/// A QR code as SVG.
fn qr_code(text: &str) -> String {
    let code = fast_qr::QRBuilder::new(text).build();
    code.map(|code| fast_qr::convert::svg::SvgBuilder::default().to_str(&code)).unwrap_or_default()
}

async fn publish(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let release_id: ReleaseId = super::id(path, "release")?;
    let mut params = form.params(&["notes"]);
    params.insert("releaseId".into(), json!(release_id));
    params.insert("targets".into(), json!(form.values("targets")));
    if let Some(share) = share(&form) {
        params.insert("rollout".into(), share);
    }
    match visitor.send::<PublishRelease>(&Value::Object(params), form.key()).await {
        Ok(_) => done(&at(release_id), "The release is on its way to its targets."),
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}

/// The share that was entered: a number if it is one, else the text, for the service to refuse.
fn share(form: &Form) -> Option<Value> {
    let text = Some(form.value("rollout")).filter(|text| !text.is_empty())?;
    Some(text.parse::<f64>().map_or_else(|_| text.into(), Value::from))
}

async fn set_rollout(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let release_id: ReleaseId = super::id(path, "release")?;
    let params = json!({"releaseId": release_id, "rollout": share(&form)});
    match visitor.send::<SetRollout>(&params, form.key()).await {
        Ok(_) => done(&at(release_id), "The share is set."),
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}

/// Calls a function that takes only the release.
async fn act<F: Function>(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let release_id: ReleaseId = super::id(path, "release")?;
    match visitor.send::<F>(&json!({"releaseId": release_id}), form.key()).await {
        Ok(_) => done(&at(release_id), "Done. The stores have answered."),
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let release_id: ReleaseId = super::id(path, "release")?;
    let release = visitor.read(&GetRelease { release_id }).await?;
    if form.value("confirmation") != release.version.as_str() {
        let fault = Fault::invalid("confirmation", "is not the version of the release");
        return show_with(&visitor, release_id, form.refused(fault)).await;
    }
    match visitor.send::<DeleteRelease>(&json!({"releaseId": release_id}), form.key()).await {
        Ok(_) => done(&format!("/apps/{}/releases", release.app_id), "The release is deleted."),
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}

#[derive(Template)]
#[template(path = "rollback.html")]
struct Plan {
    frame: Frame,
    plan: Rollback,
}

/// Shows what a rollback does, before it is done.
async fn plan(visitor: Visitor, path: web::Path<String>) -> Answer {
    let release_id: ReleaseId = super::id(path, "release")?;
    let dry = RollbackRelease { release_id, to_release_id: None, dry_run: true };
    let plan = visitor.read(&dry).await?;
    let title = format!("Roll back {}", plan.release.version);
    let frame = frame_of(&visitor, &plan.release, &title).await?;
    let frame = frame.below(&plan.release.version, at(release_id));
    page(&Plan { frame, plan })
}

async fn roll_back(visitor: Visitor, path: web::Path<String>, form: Form) -> Answer {
    let release_id: ReleaseId = super::id(path, "release")?;
    match visitor.send::<RollbackRelease>(&json!({"releaseId": release_id}), form.key()).await {
        Ok(done_to) => done(&at(done_to.release.id), "The release was rolled back."),
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}
