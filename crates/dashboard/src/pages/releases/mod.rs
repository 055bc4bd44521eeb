//! The releases of an app: made of artifacts, published and rolled out. [`rollback`] rolls them back.

pub mod line;
pub mod new;
mod rollback;

use super::apps::AppTab;
use crate::{
    form::Form,
    frame::Frame,
    list::{CURSOR, ListPart},
    public::qr_code,
    response::{Note, PageFuture, PageResult, Refused, done, form_page, page},
    tone::{self, Tone},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, ArtifactId, Channel, Function, Limit, ReleaseId,
    artifacts::{Artifact, GetArtifact},
    releases::{
        CheckRelease, DeleteRelease, GetRelease, GetReleases, HaltRollout, Publication,
        PublicationState, PublishRelease, Release, ReleaseState, ResumeRollout, SetRollout, Target,
        UpdateRelease,
    },
};
use futures_util::future::FutureExt;
use messages::Messages;
use new::Choice;
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/releases", web::get().to(list))
        .route("/releases/{id}", web::get().to(show))
        .route("/releases/{id}/notes", web::post().to(set_notes))
        .route("/releases/{id}/publish", web::post().to(publish))
        .route("/releases/{id}/rollout", web::post().to(set_rollout))
        .route("/releases/{id}/halt", web::post().to(act(halt)))
        .route("/releases/{id}/resume", web::post().to(act(resume)))
        .route("/releases/{id}/check", web::post().to(act(check)))
        .route("/releases/{id}/delete", web::post().to(delete));
    new::configure(app);
    rollback::configure(app);
}

/// The newest releases of an app.
pub async fn newest(visitor: &Visitor, app_id: AppId) -> Result<Vec<Release>, Refused> {
    let limit = Limit::at_most(10);
    let all = GetReleases { app_id, channel: None, state: None, limit, cursor: None };
    Ok(visitor.read(&all).await?.items)
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
    let ReleasesQuery { channel, state, cursor } = query;
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
fn states(say: &Messages) -> Vec<(String, String)> {
    use ReleaseState::{
        Draft, Failed, PartiallyPublished, Published, Publishing, RolledBack, Superseded,
    };
    [Draft, Publishing, Published, PartiallyPublished, Failed, Superseded, RolledBack]
        .map(|state| (super::wire(&state), super::name(say, &state)))
        .into()
}

/// Whether one of these targets gives a release to a share of its users first.
pub fn may_be_staged(choices: &[Choice]) -> bool {
    choices.iter().any(|choice| matches!(choice.target, Target::AppStore | Target::GooglePlay))
}

/// Where a publication of a release stands.
pub struct Standing {
    pub words: String,
    pub tone: Tone,
}

/// Of a release that another one replaced, a store may go on saying that it is live.
pub fn standing(say: &Messages, release: &Release, publication: &Publication) -> Standing {
    let ended = |words| Standing { words, tone: Tone::Idle };
    match (release.state, publication.state) {
        (ReleaseState::Superseded, PublicationState::Live) => ended(say.replaced()),
        (ReleaseState::RolledBack, PublicationState::Live) => ended(say.rolled_back()),
        (_, state) => Standing { words: super::name(say, &state), tone: tone::of(state) },
    }
}

#[derive(Template)]
#[template(path = "releases.html")]
struct ReleasesPage {
    frame: Frame,
    tab: AppTab,
    list: ListPart<Release>,
}

async fn list(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ReleasesQuery>,
) -> PageResult {
    let app_id: AppId = super::id(path, "app")?;
    let (frame, tab) = AppTab::open(&visitor, app_id, "/releases").await?;
    let at = format!("/apps/{app_id}/releases");
    let list = part_of(&visitor, app_id, &at, &query).await?;
    page(&ReleasesPage { frame, tab, list })
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
    /// Whether phones cannot reach that address.
    is_only_here: bool,
    /// The channel to which it may be promoted.
    next: Option<Channel>,
    /// The targets that take its files.
    choices: Vec<Choice>,
    form: Form,
}

impl ReleasePage {
    /// What an artifact of the release is called.
    fn artifact(&self, id: &ArtifactId) -> String {
        let found = self.artifacts.iter().find(|artifact| artifact.id == *id);
        found.map_or_else(|| id.to_string(), |artifact| artifact.file_name.to_string())
    }

    fn is(&self, state: ReleaseState) -> bool {
        self.release.state == state
    }

    /// Whether the release may be published, or a publication of it may be tried again.
    fn may_publish(&self) -> bool {
        use ReleaseState::{Draft, Failed, PartiallyPublished, Published};
        matches!(self.release.state, Draft | Failed | PartiallyPublished | Published)
    }

    /// Whether it can go to a target now.
    fn has_choice(&self) -> bool {
        self.choices.iter().any(|choice| choice.missing.is_none())
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
    let frame = frame_of(visitor, &release, release.version.to_string()).await?;
    let mut artifacts = Vec::new();
    for artifact_id in release.artifact_ids.iter().copied() {
        artifacts.push(visitor.read(&GetArtifact { artifact_id }).await?);
    }
    let notes = release.notes.as_ref().map(ToString::to_string).unwrap_or_default();
    let form = form.beside(Form::filled([("notes", notes)]));
    let install = line::install_page(&release);
    let install = install.map(|url| (url.clone(), qr_code(&url)));
    let kinds: Vec<_> = artifacts.iter().map(|artifact| artifact.kind).collect();
    let mut choices = new::choices(visitor, release.app_id, &kinds).await?;
    // What is there already needs no other way there.
    choices.retain(|choice| !is_there(&release, choice.target));
    let mut frame = frame;
    // What began well may have failed before the page is shown.
    let failed = |p: &Publication| p.state == PublicationState::Failed;
    if let Some(note) = frame.note.as_mut().filter(|note| note.tone == Tone::Good)
        && release.publications.iter().any(failed)
    {
        note.tone = Tone::Busy;
    }
    let is_only_here = visitor.settings().is_only_here;
    let next = line::next_of(visitor, &release).await?;
    let page =
        ReleasePage { frame, release, artifacts, install, is_only_here, next, choices, form };
    form_page(&page.form.clone(), &page)
}

async fn frame_of(visitor: &Visitor, release: &Release, title: String) -> Result<Frame, Refused> {
    let (frame, app) = Frame::in_app(visitor, |_| title, release.app_id).await?;
    Ok(frame.below_page(Messages::releases, format!("/apps/{}/releases", app.id)))
}

/// Whether all files of a release for a target are there, or about to be.
fn is_there(release: &Release, target: Target) -> bool {
    let mut there = release.publications.iter().filter(|at| at.target == target).peekable();
    let failed = [PublicationState::Failed, PublicationState::Halted];
    there.peek().is_some() && there.all(|at| !failed.contains(&at.state))
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
        Ok(release) => {
            done(&at(release_id), published(visitor.say(), &release, &form.values("targets")))
        }
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}

/// What a publication to these targets has come to so far. The page says the rest.
fn published(say: Messages, release: &Release, targets: &[&str]) -> Note {
    let version = &release.version;
    let chosen = || release.publications.iter().filter(|p| targets.contains(&p.target.name()));
    if let Some(failed) = chosen().find(|p| p.state == PublicationState::Failed) {
        let target = super::target(&say, failed.target);
        let why = failed.error.clone().unwrap_or_else(|| say.gave_no_reason());
        return Note::bad(say.did_not_get_to(version, target, why));
    }
    let mut on_their_way: Vec<_> = chosen()
        .filter(|p| p.state != PublicationState::Live)
        .map(|p| super::target(&say, p.target))
        .collect();
    on_their_way.dedup();
    if on_their_way.is_empty() {
        let mut live: Vec<_> = chosen().map(|p| super::target(&say, p.target)).collect();
        live.dedup();
        return say.is_live(version, live.join(", ")).into();
    }
    let targets = on_their_way.join(", ");
    Note::plain(say.is_on_its_way(version, targets))
}

async fn set_notes(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let release_id: ReleaseId = super::id(path, "release")?;
    let params = |form: &Form| {
        let add_artifact_ids = Default::default();
        Ok(UpdateRelease { release_id, add_artifact_ids, notes: form.get("notes")? })
    };
    match visitor.send(&form, params).await {
        Ok(_) => done(&at(release_id), visitor.say().notes_are_saved()),
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}

async fn set_rollout(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let release_id: ReleaseId = super::id(path, "release")?;
    let params =
        |form: &Form| Ok(SetRollout { release_id, targets: None, rollout: form.get("rollout")? });
    match visitor.send(&form, params).await {
        Ok(release) => {
            let shares = release.publications.iter().filter_map(|publication| {
                let share = publication.rollout?;
                let target = super::target(&visitor.say(), publication.target);
                Some(visitor.say().share_at(target, share))
            });
            let shares: Vec<_> = shares.collect();
            done(&at(release_id), visitor.say().stores_give_it_to(shares.join(", ")))
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
                    let say = visitor.say();
                    let state = |p: &Publication| {
                        say.state_at(
                            super::target(&say, p.target),
                            standing(&say, &release, p).words,
                        )
                    };
                    let states: Vec<_> = release.publications.iter().map(state).collect();
                    done(&at(release_id), Note::plain(say.now_at(states.join(", "))))
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
        Ok(_) => done(
            &format!("/apps/{}/releases", release.app_id),
            visitor.say().the_release_is_deleted(),
        ),
        Err(fault) => show_with(&visitor, release_id, form.refused(fault)).await,
    }
}
