//! The handlers of the group Releases.

pub mod build_up;
pub mod commands;
pub mod rollback;
mod room;

use self::{
    commands::{NewRelease, Publish},
    room::check_room,
};
use super::{artifacts::download_url, publications::poll};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        delivery::{
            artifacts::Artifacts,
            publications::{self, Publications},
            releases::{Command, Releases, State, current::Current, rules::ReleaseIndex},
        },
        people::apps::Apps,
        world::World,
    },
    runtime::{
        entries::{InState, Under},
        pagination,
        store::{Store, get},
    },
};
use contract::{
    AppId, Channel, Cursor, Fault, Limit, Page, PublicationId, ReleaseId, Serves,
    apps::Platform as Mobile,
    artifacts::{Artifact, ArtifactKind, ArtifactState},
    releases::{
        CheckRelease, CreateRelease, DeleteRelease, DeletedRelease, GetLatestRelease, GetRelease,
        GetReleases, LatestRelease, PublicArtifact, PublicRelease, PublicationState,
        PublishRelease, Release, ReleaseState, Target, UpdateRelease,
    },
};
use std::time::Duration;
use store::{Entry, Snapshot};

/// How long a call waits for the targets.
pub(super) const PUBLISH_WITHIN: Duration = Duration::from_secs(25);

impl Serves<CreateRelease> for Platform {
    async fn serve(&self, cx: &Call, p: CreateRelease) -> Result<Release, Fault> {
        let id: ReleaseId = self.world.ports.random.id(cx.now);
        let _turn = self.world.creation(p.app_id).await?;
        check_room(&self.world, p.app_id, &p.channel, true)?;
        let wanted = NewRelease {
            app_id: p.app_id,
            artifact_ids: p.artifact_ids.into_vec(),
            version: p.version,
            channel: p.channel,
            notes: p.notes,
            publish: Vec::new(),
        };
        let draft = commands::draft(&self.world, &cx.caller, id, wanted)?;
        cx.to::<Releases>(id).create(draft, show).await
    }
}

impl Serves<UpdateRelease> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateRelease) -> Result<Release, Fault> {
        let id = p.release_id;
        let command = commands::update(&self.world, id, &p.add_artifact_ids, p.notes)?;
        cx.to::<Releases>(id).change_and_wait(command, PUBLISH_WITHIN, show).await
    }
}

impl Serves<DeleteRelease> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteRelease) -> Result<DeletedRelease, Fault> {
        let id = p.release_id;
        let publications = store_publications(&cx.ancestry.release()?.1.state.release);
        let reply = move |_: &State| Ok(DeletedRelease { deleted: id });
        let deleted = cx.to::<Releases>(id).change(Command::Delete, reply).await?;
        for id in publications {
            self.world.to::<Publications>(id).ask_if_there(publications::Command::Remove).await?;
        }
        Ok(deleted)
    }
}

impl Serves<GetReleases> for Platform {
    async fn serve(&self, _: &Call, p: GetReleases) -> Result<Page<Release>, Fault> {
        let (store, app) = (&self.world.store, p.app_id);
        let page = (p.limit, p.cursor);
        match p.channel {
            Some(channel) => {
                releases_of(store, &ReleaseIndex::Channel { app, channel }, p.state, page)
            }
            None => match p.state {
                Some(state) => releases_of(store, &InState::<Apps>::new(app, state), p.state, page),
                None => releases_of(store, &Under::<Apps>(app), None, page),
            },
        }
    }
}

/// The releases with an index entry, in one state if one is given.
fn releases_of(
    store: &Store,
    entry: &impl Entry<Releases>,
    state: Option<ReleaseState>,
    page: (Limit, Option<Cursor>),
) -> Result<Page<Release>, Fault> {
    pagination::counted(store, entry, page, state.is_some(), |_, seen: &Snapshot<Releases>| {
        let is_wanted = state.is_none_or(|state| seen.release.state == state);
        Ok(is_wanted.then(|| seen.release.clone()))
    })
}

impl Serves<GetRelease> for Platform {
    async fn serve(&self, cx: &Call, _: GetRelease) -> Result<Release, Fault> {
        Ok(cx.ancestry.release()?.1.state.release.clone())
    }
}

impl Serves<CheckRelease> for Platform {
    async fn serve(&self, cx: &Call, p: CheckRelease) -> Result<Release, Fault> {
        poll(&self.world, &store_publications(&cx.ancestry.release()?.1.state.release)).await?;
        read_release(&self.world, p.release_id)
    }
}

/// The release when its targets have answered, at most after [`PUBLISH_WITHIN`].
pub(super) async fn idle_release(world: &World, id: ReleaseId) -> Result<Release, Fault> {
    let state = world.to::<Releases>(id).idle_or_late(PUBLISH_WITHIN).await?;
    Ok(state.release.clone())
}

pub(super) fn read_release(world: &World, id: ReleaseId) -> Result<Release, Fault> {
    Ok(get::<Releases>(&world.store, id)?.state.release.clone())
}

/// The publications of a release in stores.
fn store_publications(release: &Release) -> Vec<PublicationId> {
    let publications = release.publications.iter();
    publications.filter(|p| p.target != Target::Ota).map(|p| p.id).collect()
}

/// A release as callers see it.
pub(super) fn show(state: &State) -> Result<Release, Fault> {
    Ok(state.release.clone())
}

impl Serves<PublishRelease> for Platform {
    async fn serve(&self, cx: &Call, p: PublishRelease) -> Result<Release, Fault> {
        let wanted =
            Publish { targets: &p.targets, notes: p.notes, rollout: p.rollout, options: p.options };
        let command = commands::publish(&self.world, p.release_id, wanted)?;
        cx.to::<Releases>(p.release_id).change_and_wait(command, PUBLISH_WITHIN, show).await
    }
}

/// The current release of a channel. Not found if nothing is published there.
pub fn current_release(world: &World, app: AppId, channel: &Channel) -> Result<Release, Fault> {
    let none = || Fault::NotFound("published release in this channel");
    let current = world.store.get::<Current>(&Current::key(app, channel))?.ok_or_else(none)?;
    let seen = world.store.get::<Releases>(&current.release)?.ok_or_else(none)?;
    Ok(seen.state.release.clone())
}

impl Serves<GetLatestRelease> for Platform {
    async fn serve(&self, cx: &Call, p: GetLatestRelease) -> Result<LatestRelease, Fault> {
        let release = current_release(&self.world, p.app_id, &p.channel)?;
        let artifact = artifact_for(&self.world, &release, p.platform)?
            .ok_or(Fault::NotFound("published release for this platform"))?;
        let install = release.publications.iter().find(|publication| {
            publication.target == Target::Ota
                && publication.artifact_id == artifact.id
                && matches!(publication.state, PublicationState::Live | PublicationState::Halted)
        });
        Ok(LatestRelease {
            download_url: download_url(self, artifact.id, cx.now).url,
            install_url: install.and_then(|publication| publication.url.clone()),
            update_available: p.current_version.map(|version| version != release.version),
            release: PublicRelease {
                id: release.id,
                app_id: release.app_id,
                version: release.version,
                channel: release.channel,
                notes: release.notes,
                published_at: release.published_at,
            },
            artifact: PublicArtifact {
                id: artifact.id,
                platform: artifact.platform,
                kind: artifact.kind,
                file_name: artifact.file_name,
                size: artifact.size,
                sha256: artifact.sha256,
                version: artifact.version,
                build_number: artifact.build_number,
            },
        })
    }
}

/// The artifact of a release for a device of this platform. An `.aab` file cannot be installed,
/// so it is the last choice.
pub fn artifact_for(
    world: &World,
    release: &Release,
    platform: Mobile,
) -> Result<Option<Artifact>, Fault> {
    let mut found: Vec<Artifact> = Vec::new();
    for id in &release.artifact_ids {
        if let Some(kept) = world.store.get::<Artifacts>(id)? {
            found.push(kept.state.artifact.clone());
        }
    }
    found.retain(|artifact| {
        artifact.platform == platform && artifact.state == ArtifactState::Verified
    });
    found.sort_by_key(|artifact| artifact.kind == ArtifactKind::Aab);
    Ok(found.into_iter().next())
}
