//! What the choices of a release mean for one target. Pure, but for the look-up of a Firebase app.

use super::rules::{Ordered, Publications};
use crate::{
    kinds::people::apps::Apps,
    runtime::{entries::Under, store::Store},
};
use app_stores::{FirebaseApp, Options};
use contract::{
    AppId, Channel, Fault,
    apps::Platform,
    publishing::{AppStoreRelease, FirebaseAppId, Percent, StoreOptions, TrackName},
    releases::{Release, Target},
};

/// The share of the devices with which Apple begins a release in phases.
const FIRST_PHASE: Option<Percent> = Percent::of_hundredths(100);

/// How many of the newest publications are read for the id of a Firebase app.
const READ: usize = 50;

/// The order for a target, by the choices of the release. `None`: the target is no store.
pub fn options_of(
    release: &Release,
    target: Target,
    platform: Platform,
    rollout: Option<Percent>,
) -> Result<Option<Ordered>, Fault> {
    let chosen = &release.options;
    let mut begins_with = rollout;
    let options = match target {
        Target::Ota => return Ok(None),
        Target::GooglePlay => {
            let mut options = chosen.google_play.clone().unwrap_or_default();
            options.track = Some(options.track.unwrap_or_else(|| track_of(&release.channel)));
            Options::GooglePlay(options)
        }
        Target::AppStore => {
            let options = chosen.app_store.clone().unwrap_or_default();
            if options.phased && options.release != Some(AppStoreRelease::Manual) {
                begins_with = rollout.or(FIRST_PHASE);
            }
            Options::AppStore(options)
        }
        Target::Testflight => Options::Testflight(chosen.testflight.clone().unwrap_or_default()),
        Target::FirebaseAppDistribution => Options::Firebase(firebase(chosen, platform)?),
    };
    let is_staged = matches!(target, Target::GooglePlay | Target::AppStore);
    Ok(Some(Ordered {
        default_notes: release.notes.clone(),
        notes: chosen.notes.clone(),
        options,
        rollout: begins_with.filter(|_| is_staged),
    }))
}

/// The track with the name of the channel, or the internal one.
fn track_of(channel: &Channel) -> TrackName {
    let known = ["production", "beta", "alpha"];
    let name = known.into_iter().find(|known| *known == channel.as_str()).unwrap_or("internal");
    // A name of letters is the name of a track.
    #[allow(clippy::expect_used, reason = "a constant")]
    name.parse().expect("the names are valid")
}

fn firebase(chosen: &StoreOptions, platform: Platform) -> Result<FirebaseApp, Fault> {
    let chosen = chosen.firebase.clone().unwrap_or_default();
    let (app, field) = match platform {
        Platform::Ios => (chosen.ios_app_id, "iosAppId"),
        Platform::Android => (chosen.android_app_id, "androidAppId"),
    };
    let app = app.ok_or_else(|| {
        Fault::invalid(
            "options",
            format!("firebase.{field} is required: the id that the Firebase console shows"),
        )
    })?;
    Ok(FirebaseApp { app_id: app, groups: chosen.groups, testers: chosen.testers })
}

/// The app in Firebase to which the app was published last.
pub fn firebase_app(store: &Store, app: AppId) -> Result<Option<FirebaseAppId>, Fault> {
    for found in store.newest::<Publications>(&Under::<Apps>(app), None).take(READ) {
        if let Options::Firebase(options) = &found?.1.state.order.options {
            return Ok(Some(options.app_id.clone()));
        }
    }
    Ok(None)
}
