//! The line of channels of an app: what is live in each, and the way to the next one.

use super::{Standing, current, new::known, standing};
use crate::{public::qr_code, response::Refused, tone::Tone, visitor::Visitor};
use contract::{
    AppId, Channel,
    publishing::Percent,
    releases::{PublicationState, Release, ReleaseState, Target},
};
use messages::Messages;

/// Begins of the names of channels, in the order in which a version usually goes through them.
const ORDER: [&[&str]; 5] = [
    &["dev", "nightly", "canary"],
    &["internal", "alpha", "test", "qa"],
    &["beta", "preview"],
    &["staging", "candidate", "rc"],
    &["production", "stable", "live"],
];

/// The channel of all users.
const PRODUCTION: &str = "production";

/// A channel, with the release that its users get now.
pub struct Stop {
    pub release: Release,
    /// The channel after it, if the version may go on there.
    pub next: Option<Channel>,
    /// The address of the install page, and its QR code.
    pub install: Option<(String, String)>,
    /// Each target once, with where the release stands there.
    pub targets: Vec<(Target, Standing)>,
    /// The smallest share of users that a store gives it to, in percent.
    pub share: Option<Percent>,
}

/// The channels of an app that have a release.
pub async fn of(visitor: &Visitor, app_id: AppId) -> Result<Vec<Stop>, Refused> {
    let mut releases = current(visitor, app_id).await?;
    in_order(&mut releases, |release| &release.channel);
    let mut stops = Vec::new();
    for (at, release) in releases.iter().enumerate() {
        stops.push(Stop {
            next: next(visitor, release, releases.get(at + 1)).await?,
            install: install_page(release).map(|url| (url.clone(), qr_code(&url))),
            targets: targets(&visitor.say(), release),
            share: release.publications.iter().filter_map(|p| p.rollout).min(),
            release: release.clone(),
        });
    }
    Ok(stops)
}

/// The next channel, if it serves an older release and never had this version. After the last one that
/// has a release comes production.
async fn next(
    visitor: &Visitor,
    release: &Release,
    after: Option<&Release>,
) -> Result<Option<Channel>, Refused> {
    let next = match after {
        Some(after) => (after.id < release.id).then(|| after.channel.clone()),
        None if place(&release.channel) < ORDER.len() - 1 => PRODUCTION.parse().ok(),
        None => None,
    };
    let Some(next) = next else { return Ok(None) };
    let had = known(visitor, release.app_id, &next, &release.version).await?;
    let is_open = had.is_none_or(|had| had.state == ReleaseState::Draft);
    Ok(is_open.then_some(next))
}

/// Where a release that users get now may go on.
pub async fn next_of(visitor: &Visitor, release: &Release) -> Result<Option<Channel>, Refused> {
    let mut releases = current(visitor, release.app_id).await?;
    in_order(&mut releases, |release| &release.channel);
    let Some(at) = releases.iter().position(|other| other.id == release.id) else {
        return Ok(None);
    };
    next(visitor, release, releases.get(at + 1)).await
}

/// The place of a channel in [`ORDER`]. Those with other names stand in the middle.
fn place(channel: &Channel) -> usize {
    let name = channel.to_string();
    let place = ORDER.iter().position(|names| names.iter().any(|begin| name.starts_with(begin)));
    place.unwrap_or(2)
}

/// Puts channels in the order in which a version usually goes through them.
pub fn in_order<T>(list: &mut [T], channel: impl Fn(&T) -> &Channel) {
    list.sort_by_key(|item| (place(channel(item)), channel(item).to_string()));
}

/// The address of the install page of a release that has one.
pub fn install_page(release: &Release) -> Option<String> {
    let live = |p: &&contract::releases::Publication| {
        p.target == Target::Ota && p.state == PublicationState::Live
    };
    release.publications.iter().find(live)?.url.clone()
}

/// How much somebody should look at it: the least first.
fn rank(tone: Tone) -> usize {
    let order = [Tone::Bad, Tone::Warn, Tone::Busy, Tone::Idle, Tone::Good];
    order.iter().position(|known| *known == tone).unwrap_or_default()
}

/// Each target of a release once: with the publication there that somebody should look at, if there are
/// several.
pub fn targets(say: &Messages, release: &Release) -> Vec<(Target, Standing)> {
    let mut targets: Vec<(Target, Standing)> = Vec::new();
    for publication in &release.publications {
        let is = standing(say, release, publication);
        match targets.iter_mut().find(|(target, _)| *target == publication.target) {
            Some((_, worst)) if rank(is.tone) < rank(worst.tone) => *worst = is,
            Some(_) => {}
            None => targets.push((publication.target, is)),
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::in_order;
    use contract::Channel;

    #[test]
    fn a_version_goes_from_the_few_to_the_many() {
        let names = ["production", "team", "internal", "beta", "nightly"];
        let mut channels: Vec<Channel> = names.iter().map(|name| name.parse().unwrap()).collect();
        in_order(&mut channels, |channel| channel);
        let names: Vec<_> = channels.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["nightly", "internal", "beta", "team", "production"]);
    }
}
