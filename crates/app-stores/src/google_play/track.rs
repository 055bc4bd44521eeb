//! The releases of a track, as Google shows and takes them. Pure.
//!
//! Source: `Track` and `TrackRelease` of the Google Play Developer API v3.

use contract::publishing::Percent;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One version of an app in a track, as the API of Google Play writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrackRelease {
    /// What the console shows, such as `1.4.2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Decimal numbers.
    #[serde(default)]
    pub version_codes: Vec<String>,
    /// Who gets it.
    pub status: Status,
    /// The share of one of the users, between 0 and 1. Only with `inProgress` and `halted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_fraction: Option<f64>,
    /// Notes, countries and what else Google keeps with it.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Who gets a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// Nobody, until somebody rolls it out in the console.
    Draft,
    /// A share of the users.
    InProgress,
    /// Nobody more.
    Halted,
    /// All users.
    Completed,
    /// Google does not say.
    #[serde(other, rename = "statusUnspecified")]
    Unspecified,
}

/// What is to become of a release in its track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Goal {
    /// It waits in the console.
    Draft,
    /// A share of the users gets it: less than all.
    Staged(Percent),
    /// All users get it.
    Completed,
    /// Nobody more gets it.
    Halted,
    /// The track does not have it.
    Removed,
}

/// A release as its track shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// Who gets it.
    pub status: Status,
    /// The share of the users, of a staged release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Percent>,
}

impl TrackRelease {
    pub(super) fn has(&self, code: u64) -> bool {
        self.codes().any(|it| it == code)
    }

    fn codes(&self) -> impl Iterator<Item = u64> {
        self.version_codes.iter().filter_map(|code| code.parse().ok())
    }

    pub(super) fn highest_code(&self) -> u64 {
        self.codes().max().unwrap_or_default()
    }

    /// Whether users get it or may get it again.
    pub(super) fn is_rolled_out(&self) -> bool {
        self.status != Status::Draft
    }

    pub(super) fn is_staged(&self) -> bool {
        matches!(self.status, Status::InProgress | Status::Halted)
    }
}

impl Shown {
    /// The release with this version code.
    pub(super) fn of(releases: &[TrackRelease], code: u64) -> Option<Shown> {
        let release = releases.iter().find(|release| release.has(code))?;
        Some(Shown { status: release.status, share: release.user_fraction.and_then(percent) })
    }

    /// Whether nothing is left to be done for the goal.
    pub(super) fn is(self, goal: Goal) -> bool {
        match goal {
            Goal::Draft => self.status == Status::Draft,
            Goal::Staged(share) => self.status == Status::InProgress && self.share == Some(share),
            Goal::Completed => self.status == Status::Completed,
            Goal::Halted => self.status == Status::Halted,
            Goal::Removed => false,
        }
    }
}

/// A share of one as a share in percent, to a hundredth.
pub(super) fn percent(fraction: f64) -> Option<Percent> {
    let hundredths = (fraction * 10_000.0).round().clamp(0.0, 10_000.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10,000")]
    Percent::of_hundredths((hundredths as u16).max(1))
}
