//! The room that an app has for releases.

use crate::{
    kinds::{
        delivery::releases::{Releases, rules::ReleaseIndex},
        people::apps::Apps,
        world::World,
    },
    runtime::entries::InState,
};
use contract::{AppId, Channel, Fault, releases::ReleaseState};

/// In how many channels an app may have releases.
const MOST_CHANNELS: usize = 100;
/// How many releases of an app may be drafts.
const MOST_DRAFTS: usize = 100;

/// Refuses one release more than an app may have. `stays_draft`: it is not published at once. Whoever creates
/// the release holds the [turn](World::creation) of the app.
pub(super) fn check_room(
    world: &World,
    app: AppId,
    channel: &Channel,
    stays_draft: bool,
) -> Result<(), Fault> {
    let store = &world.store;
    let drafts = InState::<Apps>::new(app, ReleaseState::Draft);
    let drafts = || store.oldest::<Releases>(&drafts, None).count_up_to(MOST_DRAFTS);
    if stays_draft && drafts()? >= MOST_DRAFTS {
        return Err(Fault::NotNow(format!(
            "this app has {MOST_DRAFTS} drafts, which is the most; publish one with svc_publishRelease or delete one with svc_deleteRelease first"
        )));
    }
    let of_channel = ReleaseIndex::Channel { app, channel: channel.clone() };
    let is_known = store.oldest::<Releases>(&of_channel, None).count_up_to(1)? > 0;
    if !is_known && store.count_different(&of_channel, MOST_CHANNELS)? >= MOST_CHANNELS {
        return Err(Fault::NotNow(format!(
            "this app has releases in {MOST_CHANNELS} channels, which is the most; use one of these channels"
        )));
    }
    Ok(())
}
