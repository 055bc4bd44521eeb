//! What a person sees first: what needs somebody, what is live, and the instances.

use super::reach;
use crate::{
    call::{context::Call, platform::Platform},
    functions::operators::{
        attention::{self, Facts, Work},
        overview::{instance_facts, read},
    },
    kinds::{
        commerce::checkouts::{self, CheckoutIndex, Checkouts},
        delivery::{
            builds::Builds,
            credentials::Credentials,
            releases::{Current, Releases},
        },
        hosting::{backups::Backups, deployments::Deployments, instances::Instances},
        people::apps::Apps,
        world::World,
    },
    runtime::{entries::Under, store::Store},
};
use contract::{
    AppId, Fault, Serves, Timestamp,
    home::{GetHome, Home, HomeApp, HomeInstance, LiveRelease},
};
use std::time::Duration;

/// The most apps that it covers.
const MOST: usize = 100;
/// How many of the last builds, deployments, releases and backups of an app are looked at.
const LAST: usize = 8;
/// The most channels of an app that it names.
const CHANNELS: usize = 20;
/// How long before its end a credential is named.
const EXPIRES_WITHIN: Duration = Duration::from_secs(30 * 24 * 3600);

impl Serves<GetHome> for Platform {
    async fn serve(&self, cx: &Call, _: GetHome) -> Result<Home, Fault> {
        let world = &self.world;
        let mut facts = Facts::default();
        let mut apps = Vec::new();
        let user = cx.user()?.id;
        for (id, name, project) in reach::apps(world, reach::projects(world, user, MOST)?, MOST)? {
            look_at(world, id, cx.now, &mut facts)?;
            let mut instances = Vec::new();
            for found in world.store.newest::<Instances>(&Under::<Apps>(id), None) {
                let (instance, seen) = found?;
                if seen.is_deleted() {
                    continue;
                }
                facts.instances.push(instance_facts(world, instance, &seen.state));
                let newest =
                    world.store.newest::<Backups>(&Under::<Instances>(instance), None).take(LAST);
                facts.backups.push(read(newest, |_, seen| seen.backup.clone())?);
                instances.push(HomeInstance {
                    id: instance,
                    name: seen.name.clone(),
                    kind: seen.kind,
                    state: seen.state.state,
                });
            }
            let live = live(&world.store, id)?;
            let (project_id, project_name) = (project.id, project.name.clone());
            apps.push(HomeApp { id, name, project_id, project_name, live, instances });
        }
        Ok(Home { attention: attention::decide(&facts, cx.now), apps })
    }
}

/// Adds what is known about an app.
fn look_at(world: &World, app: AppId, now: Timestamp, facts: &mut Facts) -> Result<(), Fault> {
    let (store, of_app) = (&world.store, Under::<Apps>(app));
    let builds = store.newest::<Builds>(&of_app, None).take(LAST);
    facts.work.extend(read(builds, |_, seen| Work::of_build(&seen.build))?);
    let deployments = store.newest::<Deployments>(&of_app, None).take(LAST);
    facts.work.extend(read(deployments, |_, seen| Work::of_deployment(&seen.deployment))?);
    let unsettled = store.oldest::<Checkouts>(&CheckoutIndex::UnsettledOf { app }, None).take(LAST);
    facts.checkouts.extend(read(unsettled, |id, seen| checkouts::view(id, &seen.state))?);
    let credentials = store.newest::<Credentials>(&of_app, None);
    let mut credentials = read(credentials, |_, seen| seen.credential.clone())?;
    credentials.retain(|c| c.expires_at.is_some_and(|at| at <= now + EXPIRES_WITHIN));
    facts.credentials.append(&mut credentials);
    let releases = store.newest::<Releases>(&of_app, None).take(LAST);
    facts.releases.push(read(releases, |_, seen| seen.release.clone())?);
    Ok(())
}

/// The release that users of each channel get now.
fn live(store: &Store, app: AppId) -> Result<Vec<LiveRelease>, Fault> {
    // The keys of an app begin with its id, and are sorted by channel.
    let prefix = format!("{app}:");
    let after = format!("{app};");
    let mut live = Vec::new();
    for found in store.whole::<Current>(Some(&after)).take(CHANNELS) {
        let (key, current) = found?;
        if !key.starts_with(&prefix) {
            break;
        }
        let release = store.get::<Releases>(&current.release)?;
        if let Some(release) = release.filter(|seen| !seen.is_deleted()) {
            live.push(LiveRelease {
                id: current.release,
                channel: release.release.channel.clone(),
                version: release.release.version.clone(),
                state: release.release.state,
                since: current.since,
            });
        }
    }
    live.reverse();
    Ok(live)
}
