//! A new release: a version whose files are verified goes to a channel, and at once to targets.

use super::{at, current, published};
use crate::{
    form::Form,
    frame::Frame,
    pages::{apps::AppTab, artifacts},
    response::{Note, PageResult, Refused, done, form_page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    AppId, ArtifactId, BoundedSet, Channel, Fault, Limit, Patch, ReleaseId, VersionName,
    apps::Platform,
    artifacts::{Artifact, ArtifactKind, GetArtifact},
    credentials::{CredentialKind, GetCredentials},
    publishing::Percent,
    releases::{
        CreateRelease, GetRelease, GetReleases, PublishRelease, Release, ReleaseState, Target,
        UpdateRelease,
    },
};
use messages::Messages;
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/releases/new", web::get().to(show))
        .route("/apps/{id}/releases/new", web::post().to(create))
        .route("/releases/{id}/promote", web::post().to(promote));
}

/// The most versions to choose from.
const VERSIONS: usize = 8;
/// The channel of an app that has none.
const FIRST_CHANNEL: &str = "production";

/// A version whose files are verified: the newest file of each platform.
#[derive(Clone)]
pub struct Version {
    pub name: VersionName,
    pub artifacts: Vec<Artifact>,
}

impl Version {
    /// The versions of verified artifacts, which come newest first.
    pub fn all(artifacts: Vec<Artifact>) -> Vec<Version> {
        let mut versions: Vec<Version> = Vec::new();
        for artifact in artifacts {
            let Some(name) = artifact.version.clone() else { continue };
            let known = versions.iter_mut().find(|version| version.name == name);
            match known {
                Some(version) if version.has(artifact.platform) => {}
                Some(version) => version.artifacts.push(artifact),
                None => versions.push(Version { name, artifacts: vec![artifact] }),
            }
        }
        versions
    }

    fn has(&self, platform: Platform) -> bool {
        self.artifacts.iter().any(|artifact| artifact.platform == platform)
    }

    /// The version of an artifact, with it in place of the newest one of its platform. The artifact may be
    /// older than those of `all`.
    fn of(artifact: Artifact, all: &[Version]) -> Option<Version> {
        let name = artifact.version.clone()?;
        let known = all.iter().find(|version| version.name == name).cloned();
        let mut version = known.unwrap_or(Version { name, artifacts: Vec::new() });
        version.artifacts.retain(|other| other.platform != artifact.platform);
        version.artifacts.push(artifact);
        Some(version)
    }
}

/// How an artifact is released: with the other files of its version, to a channel.
pub struct Offer {
    pub version: Version,
    pub channel: String,
    pub channels: Vec<Channel>,
}

impl Offer {
    pub async fn of(visitor: &Visitor, artifact: &Artifact) -> Result<Option<Offer>, Refused> {
        let all = Version::all(artifacts::verified(visitor, artifact.app_id).await?);
        let Some(version) = Version::of(artifact.clone(), &all) else { return Ok(None) };
        let channels = channels(visitor, artifact.app_id).await?;
        Ok(Some(Offer { version, channel: first_choice(&channels), channels }))
    }

    /// The names of the files.
    pub fn files(&self) -> String {
        let names = self.version.artifacts.iter().map(|artifact| artifact.file_name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }
}

/// A target, as the form offers it.
pub struct Choice {
    pub target: Target,
    /// The credential that the target needs and the app does not have.
    pub missing: Option<CredentialKind>,
}

/// The targets that take files of these kinds.
pub async fn choices(
    visitor: &Visitor,
    app_id: AppId,
    kinds: &[ArtifactKind],
) -> Result<Vec<Choice>, Refused> {
    let all = GetCredentials { app_id, kind: None, limit: Limit::MOST, cursor: None };
    let stored = visitor.read(&all).await?.items;
    let has = |target: Target| {
        let keys = target.keys();
        keys.is_empty() || stored.iter().any(|credential| keys.contains(&credential.kind))
    };
    let takes = |target: &Target| kinds.iter().any(|kind| target.takes(*kind));
    // The install link is first: it needs nothing.
    let targets = Target::ALL.into_iter().rev().filter(takes);
    let choice = |target: Target| {
        let key = target.keys().first().filter(|_| !has(target));
        Choice { target, missing: key.copied() }
    };
    Ok(targets.map(choice).collect())
}

#[derive(Template)]
#[template(path = "release_new.html")]
struct NewReleasePage {
    frame: Frame,
    tab: AppTab,
    versions: Vec<Version>,
    /// The chosen version, if there is one to choose.
    chosen: Option<Version>,
    /// The artifact that the person chose in place of the newest of its platform.
    artifact: String,
    choices: Vec<Choice>,
    channels: Vec<Channel>,
    form: Form,
}

/// What the form begins with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NewReleaseQuery {
    version: String,
    artifact: String,
}

async fn show(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<NewReleaseQuery>,
) -> PageResult {
    let app_id: AppId = crate::pages::id(path, "app")?;
    show_with(&visitor, app_id, (&query.version, &query.artifact), None).await
}

/// Shows the form: as it was entered, or with what is usual. The version is that of the chosen artifact, the
/// chosen one, or the newest.
async fn show_with(
    visitor: &Visitor,
    app_id: AppId,
    (version, artifact): (&str, &str),
    form: Option<Form>,
) -> PageResult {
    let (frame, tab) = AppTab::open(visitor, app_id, "/releases").await?;
    let mut versions = Version::all(artifacts::verified(visitor, app_id).await?);
    let chosen = match artifact.parse::<ArtifactId>() {
        Ok(artifact_id) => {
            Version::of(visitor.read(&GetArtifact { artifact_id }).await?, &versions)
        }
        Err(_) => {
            let mut fitting = versions
                .iter()
                .filter(|known| version.is_empty() || known.name.as_str() == version);
            fitting.next().cloned()
        }
    };
    versions.truncate(VERSIONS);
    let artifacts = chosen.iter().flat_map(|version| &version.artifacts);
    let kinds: Vec<_> = artifacts.map(|artifact| artifact.kind).collect();
    let choices = choices(visitor, app_id, &kinds).await?;
    let channels = channels(visitor, app_id).await?;
    let form = form.unwrap_or_else(|| {
        let targets = Target::Ota.name().to_owned();
        Form::filled([("channel", first_choice(&channels)), ("targets", targets)])
    });
    let artifact = artifact.to_owned();
    let page = NewReleasePage { frame, tab, versions, chosen, artifact, choices, channels, form };
    form_page(&page.form.clone(), &page)
}

/// The channels that have a release now, those that come last in a rollout at the end.
async fn channels(visitor: &Visitor, app_id: AppId) -> Result<Vec<Channel>, Refused> {
    let mut channels: Vec<_> =
        current(visitor, app_id).await?.into_iter().map(|release| release.channel).collect();
    super::line::in_order(&mut channels, |channel| channel);
    channels.dedup();
    Ok(channels)
}

/// The channel that the form begins with: where new versions usually go first.
fn first_choice(channels: &[Channel]) -> String {
    channels.first().map_or_else(|| FIRST_CHANNEL.to_owned(), ToString::to_string)
}

/// Makes the release of the files that the page showed, and publishes it to the ticked targets. A version that
/// the channel has already gets the files that it lacks.
async fn create(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let app_id: AppId = crate::pages::id(path, "app")?;
    let (release, targets, rollout) = match made(&visitor, app_id, &form).await {
        Ok(made) => made,
        Err(fault) => {
            let form = form.refused(fault);
            let chosen = (form.value("version").to_owned(), form.value("artifact").to_owned());
            return show_with(&visitor, app_id, (&chosen.0, &chosen.1), Some(form)).await;
        }
    };
    let Some(targets) = targets else {
        return done(&at(release.id), stands(visitor.say(), &release));
    };
    let publish =
        PublishRelease { release_id: release.id, targets, rollout, notes: None, options: None };
    match visitor.call(&publish, form.key().map(|key| format!("{key}-publish"))).await {
        Ok(release) => {
            done(&at(release.id), published(visitor.say(), &release, &form.values("targets")))
        }
        Err(fault) => {
            let note = visitor.say().was_not_published(release.version, fault);
            done(&at(release.id), Note::bad(note))
        }
    }
}

/// Where a release stands that nobody published now.
fn stands(say: Messages, release: &Release) -> Note {
    let (version, channel) = (&release.version, &release.channel);
    match release.state {
        ReleaseState::Draft => say.is_a_draft_in(version, channel).into(),
        ReleaseState::RolledBack => Note::bad(say.was_rolled_back(version, channel)),
        ReleaseState::Superseded => Note::plain(say.had_before(channel, version)),
        _ => Note::plain(say.has_already(channel, version)),
    }
}

/// The release, with the targets to publish it to, if one is ticked, and the first share. All fields are read
/// before anything is made.
async fn made(
    visitor: &Visitor,
    app_id: AppId,
    form: &Form,
) -> Result<(Release, Option<BoundedSet<Target, 1, 5>>, Option<Percent>), Fault> {
    let (channel, version): (Channel, VersionName) = (form.get("channel")?, form.get("version")?);
    let artifact_ids: BoundedSet<ArtifactId, 1, 20> = form.get("artifactIds")?;
    let is_published = !form.values("targets").is_empty();
    let targets = is_published.then(|| form.get("targets")).transpose()?;
    let rollout = form.get("rollout")?;
    let release = match known(visitor, app_id, &channel, &version).await? {
        Some(release) => {
            let is_noted = !form.value("notes").trim().is_empty();
            let notes = if is_noted { form.get("notes")? } else { Patch::Keep };
            let ids: Vec<_> = artifact_ids.iter().copied().collect();
            let add_artifact_ids = ids.try_into().map_err(|_| Fault::Internal)?;
            let add = UpdateRelease { release_id: release.id, add_artifact_ids, notes };
            visitor.call(&add, form.key()).await?
        }
        None => {
            let (version, notes) = (Some(version), form.get("notes")?);
            let create = CreateRelease { app_id, artifact_ids, version, channel, notes };
            visitor.call(&create, form.key()).await?
        }
    };
    Ok((release, targets, rollout))
}

/// The release of a version in a channel, if it is one of the newest.
pub async fn known(
    visitor: &Visitor,
    app_id: AppId,
    channel: &Channel,
    version: &VersionName,
) -> Result<Option<Release>, Fault> {
    let (channel, limit) = (Some(channel.clone()), Limit::default());
    let newest = GetReleases { app_id, channel, state: None, limit, cursor: None };
    let newest = visitor.call(&newest, None).await?.items;
    Ok(newest.into_iter().find(|release| release.version == *version))
}

/// Takes the files of a release to another channel. The release there is a draft, to be looked at and
/// published.
async fn promote(visitor: Visitor, path: web::Path<String>, form: Form) -> PageResult {
    let release_id: ReleaseId = crate::pages::id(path, "release")?;
    let release = visitor.read(&GetRelease { release_id }).await?;
    let channel: Channel = form.get("channel")?;
    if let Some(there) = known(&visitor, release.app_id, &channel, &release.version).await? {
        return done(&at(there.id), stands(visitor.say(), &there));
    }
    let params = |_: &Form| {
        Ok(CreateRelease {
            app_id: release.app_id,
            artifact_ids: release.artifact_ids.clone().try_into().map_err(|_| Fault::Internal)?,
            version: None,
            channel: channel.clone(),
            notes: release.notes.clone(),
        })
    };
    match visitor.send(&form, params).await {
        Ok(made) => done(&at(made.id), stands(visitor.say(), &made)),
        Err(fault) => super::show_with(&visitor, release_id, form.refused(fault)).await,
    }
}
