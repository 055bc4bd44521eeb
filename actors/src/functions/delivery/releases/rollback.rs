//! Rolls a release back, and shows before what its targets will really do.

use super::{PUBLISH_WITHIN, idle_release, read_release};
use crate::{
    call::{context::Call, platform::Platform},
    functions::delivery::publications::{poll, wait_until_fulfilled},
    kinds::{
        delivery::{
            publications::Publications,
            releases::{
                Command, Releases, State,
                current::Current,
                rules::{ReleaseIndex, name},
            },
        },
        world::World,
    },
    runtime::{pagination, store::get},
};
use contract::{
    Fault, Limit, ReleaseId, Serves,
    publishing::RollbackAction,
    releases::{
        Publication, PublicationState, Release, ReleaseState, Rollback, RollbackRelease,
        RollbackStep, Target,
    },
};
use std::collections::BTreeSet;
use store::Snapshot;

impl Serves<RollbackRelease> for Platform {
    async fn serve(&self, cx: &Call, p: RollbackRelease) -> Result<Rollback, Fault> {
        let release = &cx.ancestry.release()?.1.state.release;
        let key = Current::key(release.app_id, &release.channel);
        let current = self.world.store.get::<Current>(&key)?;
        let current = current.filter(|current| current.release == release.id);
        if p.withdraw && p.to_release_id.is_some() {
            return Err(Fault::invalid("withdraw", "goes with no toReleaseId: choose one of them"));
        }
        // Where the channel's pointer goes. An earlier release is current afterwards, or none is.
        let (current, to) = match (current, release.state) {
            (Some(current), _) => {
                let to = match p.to_release_id {
                    _ if p.withdraw => None,
                    Some(to) => Some(earlier(&self.world, release, to)?),
                    None => Some(latest_superseded(&self.world, release)?),
                };
                (Some(current), to)
            }
            (None, ReleaseState::Publishing) if p.to_release_id.is_none() => (None, None),
            (None, ReleaseState::RolledBack) => {
                return Err(Fault::NotNow(
                    "this release was rolled back already; only the current release of a channel can be".into(),
                ));
            }
            (None, state) => {
                return Err(Fault::NotNow(format!(
                    "this release is {}; only the current release of a channel can be rolled back",
                    name(state)
                )));
            }
        };
        let to = to.map(|to| read_release(&self.world, to)).transpose()?;
        let in_stores = withdrawn(release).map(|p| p.id).collect::<Vec<_>>();
        poll(&self.world, &in_stores).await?;
        let release = read_release(&self.world, release.id)?;
        let target = to.as_ref().map(|to| get::<Releases>(&self.world.store, to.id)).transpose()?;
        let plan = plan(&self.world, &release, to.as_ref())?;
        if p.dry_run {
            return Ok(Rollback { release, dry_run: true, plan });
        }
        let restore = plan.iter().filter(|step| step.release_id != release.id);
        let restore: Vec<_> = restore.map(|step| step.publication_id).collect();
        let command = match (current, target) {
            (Some(current), Some(to)) => {
                Command::RollBack { to, current, restore: restore.clone() }
            }
            (current, _) => Command::Withdraw(current),
        };
        let shown = plan.clone();
        let reply = move |state: &State| {
            Ok(Rollback { release: state.release.clone(), dry_run: false, plan: shown.clone() })
        };
        cx.to::<Releases>(release.id).change(command, reply).await?;
        self.world.to::<Releases>(release.id).wait_idle(PUBLISH_WITHIN).await?;
        let asked: Vec<_> = in_stores.into_iter().chain(restore).collect();
        wait_until_fulfilled(&self.world, &asked).await?;
        let now = idle_release(&self.world, to.map_or(release.id, |to| to.id)).await?;
        let reply = Rollback { release: now, dry_run: false, plan };
        cx.finish(&reply).await;
        Ok(reply)
    }
}

/// The publications in stores that a rollback withdraws.
fn withdrawn(release: &Release) -> impl Iterator<Item = &Publication> {
    let publications = release.publications.iter();
    publications.filter(|p| p.target != Target::Ota && p.state != PublicationState::Failed)
}

/// What each target will do, by what is known of it now.
fn plan(
    world: &World,
    release: &Release,
    to: Option<&Release>,
) -> Result<Vec<RollbackStep>, Fault> {
    let mut steps = Vec::new();
    let ota = release.publications.iter().filter(|p| p.target == Target::Ota);
    for publication in ota.filter(|p| p.state == PublicationState::Live) {
        let (action, channel) = match to {
            Some(to) => (RollbackAction::PointBack, format!("points to {} again", to.version)),
            None => (RollbackAction::Close, "has no release any more".to_owned()),
        };
        let text = format!(
            "The channel {} {channel}, and the install page of {} is closed. Devices keep what they \
             have.",
            release.channel, release.version
        );
        steps.push(step(publication, action, text));
    }
    let mut targets = BTreeSet::new();
    for publication in withdrawn(release) {
        let Some(seen) = world.store.get::<Publications>(&publication.id)? else {
            continue;
        };
        let undo = seen.state.progress.withdrawal();
        targets.insert(publication.target);
        steps.push(step(publication, undo.action, undo.text));
    }
    for publication in to.into_iter().flat_map(|to| &to.publications) {
        let Some(seen) = world.store.get::<Publications>(&publication.id)? else {
            continue;
        };
        let undo = seen.state.progress.restoral();
        if targets.contains(&publication.target) && undo.action != RollbackAction::Nothing {
            steps.push(step(publication, undo.action, undo.text));
        }
    }
    Ok(steps)
}

/// Checks the release that the caller wants to go back to: it must be superseded, and of the
/// same channel.
fn earlier(world: &World, release: &Release, to: ReleaseId) -> Result<ReleaseId, Fault> {
    let seen = world.store.get::<Releases>(&to)?;
    let other = seen
        .as_ref()
        .map(|s| &s.state.release)
        .filter(|other| ReleaseIndex::of_channel(other) == ReleaseIndex::of_channel(release));
    match other {
        None => Err(Fault::NotFound("release in this channel")),
        Some(other) if other.state == ReleaseState::Superseded => Ok(to),
        Some(other) => Err(Fault::NotNow(format!(
            "the release {to} is {}; only a superseded one can be made current again",
            name(other.state)
        ))),
    }
}

/// The superseded release of the channel that was published last, among the newest ones.
fn latest_superseded(world: &World, release: &Release) -> Result<ReleaseId, Fault> {
    let none = || {
        Fault::NotNow(
            "there is no earlier release in this channel to go back to; publish another one, or \
             withdraw this one"
                .into(),
        )
    };
    let newest = pagination::page::<Releases, _>(
        &world.store,
        &ReleaseIndex::of_channel(release),
        (Limit::MOST, None),
        |_, seen: &Snapshot<Releases>| {
            let other = &seen.state.release;
            let fits = other.state == ReleaseState::Superseded && other.id != release.id;
            Ok(fits.then_some((other.published_at, other.id)))
        },
    )?;
    newest.items.into_iter().max().map(|(_, id)| id).ok_or_else(none)
}

fn step(publication: &Publication, action: RollbackAction, text: String) -> RollbackStep {
    RollbackStep {
        publication_id: publication.id,
        release_id: publication.release_id,
        target: publication.target,
        action,
        text,
    }
}
