//! The releases of an app: made of artifacts, published and rolled out. [`rollback`] rolls them back.

mod rollback;

use super::{apps::AppTab, artifacts};
use crate::{
    form::Form,
    list::{CURSOR, ListPart},
    response::{Frame, Note, PageFuture, PageResult, Refused, Tone, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, ArtifactId, Function, Limit, ReleaseId,
    artifacts::{Artifact, GetArtifact},
    releases::{
        CheckRelease, CreateRelease, DeleteRelease, GetRelease, GetReleases, HaltRollout,
        Publication, PublicationState, PublishRelease, Release, ReleaseState, ResumeRollout,
        SetRollout, Target,
    },
};
use futures_util::future::FutureExt;
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/releases", web::get().to(list))
        .route("/apps/{id}/releases", web::post().to(create))
        .route("/releases/{id}", web::get().to(show))
        .route("/releases/{id}/publish", web::post().to(publish))
        .route("/releases/{id}/rollout", web::post().to(set_rollout))
        .route("/releases/{id}/halt", web::post().to(act(halt)))
        .route("/releases/{id}/resume", web::post().to(act(resume)))
        .route("/releases/{id}/check", web::post().to(act(check)))
        .route("/releases/{id}/delete", web::post().to(delete));
    rollback::configure(app);
}

/// Whether an app has a release.
pub async fn has_any(visitor: &Visitor, app_id: AppId) -> Result<bool, Refused> {
    let all =
        GetReleases { app_id, channel: None, state: None, limit: Limit::default(), cursor: None };
    Ok(!visitor.read(&all).await?.items.is_empty())
}

/// The releases that users get now, newest first: at most one for each channel.
async fn current(visitor: &Visitor, app_id: AppId) -> Result<Vec<Release>, Refused> {
    let mut current = Vec::new();
    for state in [ReleaseState::Published, ReleaseState::PartiallyPublished] {
        let of_state = GetReleases {
            app_id,
            channel: None,
            state: Some(state),
            limit: Limit::MOST,
            cursor: None,
        };
        current.extend(visitor.read(&of_state).await?.items);
    }
    current.sort_by_key(|release| std::cmp::Reverse(release.id));
    Ok(current)
}

/// The releases of an app that a person searches for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ReleasesQuery {
    channel: String,
    state: String,
    cursor: String,
    /// The artifact that the form for a new release begins with.
    artifact: String,
}

impl ReleasesQuery {
    /// Whether it is the first part of all releases.
    fn is_start(&self) -> bool {
        [&self.channel, &self.state, &self.cursor].into_iter().all(String::is_empty)
    }
}

/// A part of the releases of an app, newest first. The first part of all releases begins with those
/// that users get now.
pub async fn part_of(
    visitor: &Visitor,
    app_id: AppId,
    at: &str,
    query: &ReleasesQuery,
) -> Result<ListPart<Release>, Refused> {
    let ReleasesQuery { channel, state, cursor, .. } = query;
    let search = Form::search([("channel", channel), ("state", state), (CURSOR, cursor)]);
    let mut list: ListPart<Release> = ListPart::read(visitor, at, search, |form| {
        let (channel, state) = (form.get("channel")?, form.get("state")?);
        let (limit, cursor) = (Limit::default(), form.get(CURSOR)?);
        Ok(GetReleases { app_id, channel, state, limit, cursor })
    })
    .await?;
    if query.is_start() && !list.items.is_empty() {
        let mut items = current(visitor, app_id).await?;
        list.items.retain(|release| !items.iter().any(|current| current.id == release.id));
        items.append(&mut list.items);
        list.items = items;
    }
    Ok(list)
}

/// The states that a list is filtered by: on the wire, and in words.
fn states() -> Vec<(String, String)> {
    use ReleaseState::{
        Draft, Failed, PartiallyPublished, Published, Publishing, RolledBack, Superseded,
    };
    [Draft, Publishing, Published, PartiallyPublished, Failed, Superseded, RolledBack]
        .map(|state| (super::wire(&state), super::name(&state)))
        .into()
}

/// Where a publication of a release stands, in words. Of a release that another one replaced, a
/// store may go on saying that it is live.
pub fn standing(release: &Release, publication: &Publication) -> String {
    match (release.state, publication.state) {
        (ReleaseState::Superseded, PublicationState::Live) => "replaced".to_owned(),
        (ReleaseState::RolledBack, PublicationState::Live) => "rolled back".to_owned(),
        (_, state) => super::name(&state),
    }
}

#[derive(Template)]
#[template(path = "releases.html")]
struct ReleasesPage {
    frame: Frame,
    tab: AppTab,
    list: ListPart<Release>,
    artifacts: Vec<Artifact>,
    form: Form,
}

async fn list(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ReleasesQuery>,
) -> PageResult {
    let chosen = ("artifactIds", query.artifact.clone());
    let form = Form::filled([("channel", "production".to_owned()), chosen]);
    list_with(&visitor, super::id(path, "app")?, &query, form).await
}

async fn list_with(
    visitor: &Visitor,
    app_id: AppId,
    query: &ReleasesQuery,
    form: Form,
) -> PageResult {
    let (frame, tab) = AppTab::open(visitor, app_id, "/releases").await?;
    let at = format!("/apps/{app_id}/releases");
    let list = part_of(visitor, app_id, &at, query).await?;
    let mut artifacts = artifacts::verified(visitor, app_id).await?;
    // What is chosen may be older than those.
    for chosen in form.values("artifactIds") {
        let is_there = artifacts.iter().any(|artifact| artifact.id.to_string() == chosen);
        if let Some(artifact_id) = chosen.parse().ok().filter(|_| !is_there) {
            artifacts.push(visitor.read(&GetArtifact { artifact_id }).await?);
        }
    }
    form_page(&form.clone(), &ReleasesPage { frame, tab, list, artifacts, form })
}

async fn create(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    let params = |form: &Form| {
        Ok(CreateRelease {
            app_id,
            artifact_ids: form.get("artifactIds")?,
            version: form.get("version")?,
            channel: form.get("channel")?,
            notes: form.get("notes")?,
        })
    };
    match visitor.send(&form, params).await {
        Ok(release) => {
            done(&at(release.id), "The release is a draft. Publish it when it is ready.")
        }
        Err(fault) => {
            list_with(&visitor, app_id, &ReleasesQuery::default(), form.refused(fault)).await
        }
    }
}

fn at(release: ReleaseId) -> String {
    format!("/releases/{release}")
}

#[derive(Template)]
#[template(path = "release.html")]
struct ReleasePage {
    frame: Frame,
    release: Release,
    artifacts: Vec<Artifact>,
    /// The address of the install page, and its QR code.
    install: Option<(String, String)>,
    form: Form,
}

impl ReleasePage {
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

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    show_with(&visitor, super::id(path, "release")?, Form::default()).await
}

async fn show_with(visitor: &Visitor, release_id: ReleaseId, form: Form) -> PageResult {
    let release = visitor.read(&GetRelease { release_id }).await?;
    let frame = frame_of(visitor, &release, release.version.as_str()).await?;
    let artifacts = artifacts::verified(visitor, release.app_id).await?;
    let ota = release.publications.iter().find(|publication| {
        publication.target == Target::Ota && publication.state == PublicationState::Live
    });
    let install = ota.and_then(|publication| publication.url.clone());
    let install = install.map(|url| (url.clone(), qr_code(&url)));
    let mut frame = frame;
    // What began well may have failed before the page is shown.
    let failed = |p: &Publication| p.state == PublicationState::Failed;
    if let Some(note) = frame.note.as_mut().filter(|note| note.tone == Tone::Good)
        && release.publications.iter().any(failed)
    {
        note.tone = Tone::Plain;
    }
    form_page(&form.clone(), &ReleasePage { frame, release, artifacts, install, form })
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

async fn publish(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let release_id: ReleaseId = super::id(path, "release")?;
    let params = |form: &Form| {
        Ok(PublishRelease {
            release_id,
            targets: form.get("targets")?,
            rollout: form.get("rollout")?,
            notes: form.get("notes")?,
            options: None,
        })
    };
    match visitor.send(&form, params).await {
        Ok(release) => done(&at(release_id), published(&release, &form.values("targets"))),
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}

/// What a publication to these targets has come to so far. The page says the rest.
fn published(release: &Release, targets: &[&str]) -> Note {
    let version = &release.version;
    let chosen = || release.publications.iter().filter(|p| targets.contains(&p.target.name()));
    if let Some(failed) = chosen().find(|p| p.state == PublicationState::Failed) {
        let (target, error) = (failed.target.name(), failed.error.as_deref());
        let error = error.unwrap_or("it gave no reason");
        return Note::bad(format!("{version} did not get to {target}: {error}"));
    }
    let mut on_their_way: Vec<_> =
        chosen().filter(|p| p.state != PublicationState::Live).map(|p| p.target.name()).collect();
    on_their_way.dedup();
    if on_their_way.is_empty() {
        return format!("{version} is live at {}.", targets.join(", ")).into();
    }
    let targets = on_their_way.join(", ");
    Note::plain(format!("{version} is on its way to {targets}. Its state there is below."))
}

async fn set_rollout(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let release_id: ReleaseId = super::id(path, "release")?;
    let params =
        |form: &Form| Ok(SetRollout { release_id, targets: None, rollout: form.get("rollout")? });
    match visitor.send(&form, params).await {
        Ok(release) => {
            let shares = release.publications.iter().filter_map(|publication| {
                let share = publication.rollout?;
                Some(format!("{}: {share} %", publication.target.name()))
            });
            let shares: Vec<_> = shares.collect();
            done(&at(release_id), format!("The stores give it to {}.", shares.join(", ")))
        }
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}

fn halt(release_id: ReleaseId) -> HaltRollout {
    HaltRollout { release_id, targets: None }
}

fn resume(release_id: ReleaseId) -> ResumeRollout {
    ResumeRollout { release_id, targets: None }
}

fn check(release_id: ReleaseId) -> CheckRelease {
    CheckRelease { release_id }
}

/// The handler that calls a function of only the release, and says what the stores made of it.
fn act<F: Function<Reply = Release>>(
    params: fn(ReleaseId) -> F,
) -> impl Fn(Visitor, web::Path<String>, Form) -> PageFuture + Clone {
    move |visitor, path, form| {
        async move {
            let release_id: ReleaseId = super::id(path, "release")?;
            match visitor.send(&form, |_| Ok(params(release_id))).await {
                Ok(release) => {
                    let state =
                        |p: &Publication| format!("{}: {}", p.target.name(), standing(&release, p));
                    let states: Vec<_> = release.publications.iter().map(state).collect();
                    done(&at(release_id), Note::plain(format!("Now {}.", states.join(", "))))
                }
                Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
            }
        }
        .boxed_local()
    }
}

async fn delete(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let release_id: ReleaseId = super::id(path, "release")?;
    let release = visitor.read(&GetRelease { release_id }).await?;
    let params = |form: &Form| {
        form.confirm(release.version.as_str(), "the version of the release")?;
        Ok(DeleteRelease { release_id })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&format!("/apps/{}/releases", release.app_id), "The release is deleted."),
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}
