//! Publishing to stores: what a caller may choose for each store.

use crate::{BoundedSet, Notes, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// How many bytes the notes of a release may have in all languages together.
pub const MOST_NOTES: usize = 64 * 1024;

/// The choices for the targets of a release. A later choice replaces the earlier one of the same
/// target; targets that are not named keep theirs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoreOptions {
    /// Release notes by language, such as `{"en-US": "…", "de-DE": "…"}`. Without them, the notes of
    /// the release are shown in the default language that the app has in the store. The notes of a
    /// release have at most 64 KiB together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<Language, Notes>,
    /// Read if `google-play` is a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub google_play: Option<GooglePlayOptions>,
    /// Read if `app-store` is a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_store: Option<AppStoreOptions>,
    /// Read if `testflight` is a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub testflight: Option<TestflightOptions>,
    /// Read if `firebase-app-distribution` is a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firebase: Option<FirebaseOptions>,
}

/// The choices for Google Play.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GooglePlayOptions {
    /// The track, such as `production`, `beta`, `alpha`, `internal`, or the name of a closed track.
    /// The default is the track with the name of the channel if that is one of these four, and
    /// otherwise `internal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track: Option<TrackName>,
    /// How strongly apps that use in-app updates urge their users, from 0 to 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_app_update_priority: Option<u8>,
    /// Leave the changes in the console until somebody sends them for review there. Google demands
    /// it of some apps and refuses it of others; its refusal says so.
    #[serde(default)]
    pub changes_not_sent_for_review: bool,
    /// Make a draft, which somebody rolls out in the console. Google demands it until the app was
    /// published once.
    #[serde(default)]
    pub draft: bool,
}

/// The choices for the App Store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppStoreOptions {
    /// When the version is released after its approval. The default is at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<AppStoreRelease>,
    /// Release in phases over seven days: to 1, 2, 5, 10, 20, 50 and 100 percent of the devices that
    /// update by themselves. A `rollout` of the publication asks for it too.
    #[serde(default)]
    pub phased: bool,
    /// Whether the app uses encryption that is not exempt. Needed if its `Info.plist` does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses_non_exempt_encryption: Option<bool>,
}

/// When the App Store releases an approved version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AppStoreRelease {
    /// At once.
    AfterApproval,
    /// When somebody asks for it with `svc_setRollout`.
    Manual,
    /// Not before this time, to the hour.
    NotBefore(
        /// The earliest moment. The store gets the first whole hour that is not before it.
        Timestamp,
    ),
}

/// The choices for TestFlight.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestflightOptions {
    /// The names of the groups of testers. Builds for external groups go through the beta review.
    /// Without a group, the build is for the internal groups that have access to all builds.
    #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
    pub groups: BoundedSet<GroupName, 0, 20>,
    /// Whether the app uses encryption that is not exempt. Needed if its `Info.plist` does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses_non_exempt_encryption: Option<bool>,
}

/// The choices for Firebase App Distribution.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FirebaseOptions {
    /// The id of the iOS app in Firebase, such as `1:1234567890:ios:0a1b2c3d4e5f67890`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ios_app_id: Option<FirebaseAppId>,
    /// The id of the Android app in Firebase, such as `1:1234567890:android:0a1b2c3d4e5f67890`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub android_app_id: Option<FirebaseAppId>,
    /// The aliases of groups of testers.
    #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
    pub groups: BoundedSet<GroupName, 0, 20>,
    /// The e-mail addresses of testers.
    #[serde(default, skip_serializing_if = "BoundedSet::is_none")]
    pub testers: BoundedSet<crate::Email, 0, 200>,
}

/// What a rollback does to a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RollbackAction {
    /// The channel points to the earlier release again.
    PointBack,
    /// The channel has no release any more.
    Close,
    /// The store gives the version to no more users.
    Halt,
    /// The release to users in phases is paused.
    Pause,
    /// The version is taken back from review before anybody gets it.
    CancelReview,
    /// The build expires: testers can no longer install or open it.
    Expire,
    /// The version is deleted from the service.
    Delete,
    /// The earlier version is given to its testers again.
    Redistribute,
    /// What has begun is given up before the store has it.
    Abandon,
    /// The store can undo nothing, or nothing is to be undone. The text says which.
    Nothing,
}

/// A share of the users, in percent: more than 0 and at most 100, with at most two decimals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u16);

impl Percent {
    /// All users.
    pub const ALL: Percent = Percent(10_000);

    /// A share in hundredths of a percent. `None`: not more than 0 and at most 100 percent.
    pub const fn of_hundredths(hundredths: u16) -> Option<Percent> {
        match hundredths {
            1..=10_000 => Some(Percent(hundredths)),
            _ => None,
        }
    }

    /// The share in hundredths of a percent.
    pub fn hundredths(self) -> u16 {
        self.0
    }

    /// The share of one, such as 0.1 for ten percent.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 10_000.0
    }
}

impl TryFrom<f64> for Percent {
    type Error = String;
    fn try_from(percent: f64) -> Result<Self, String> {
        let bad = || {
            "must be a share in percent: more than 0, at most 100, with at most two decimals"
                .to_owned()
        };
        let hundredths = (percent * 100.0).round();
        if !(1.0..=10_000.0).contains(&hundredths) || (percent * 100.0 - hundredths).abs() > 1e-6 {
            return Err(bad());
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 10,000")]
        Ok(Percent(hundredths as u16))
    }
}

impl std::str::FromStr for Percent {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text);
        number
            .parse::<f64>()
            .map_err(|_| "must be a share in percent, such as 10".to_owned())?
            .try_into()
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(self.0) / 100.0)
    }
}

impl fmt::Debug for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0 % 100 {
            0 => s.serialize_u16(self.0 / 100),
            _ => s.serialize_f64(f64::from(self.0) / 100.0),
        }
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        f64::deserialize(d)?.try_into().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Percent {
    fn schema_name() -> Cow<'static, str> {
        "Percent".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "exclusiveMinimum": 0, "maximum": 100, "multipleOf": 0.01})
    }
}

texts! {
    /// A language as stores name it, such as `en-US`, `de-DE`, `fr` or `zh-Hans`.
    Language,
    schema: {"type": "string", "pattern": "^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}$"},
    rule: |text| {
        let mut parts = text.split('-');
        let first = parts.next().is_some_and(|p| (2..=3).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_lowercase()));
        let rest: Vec<_> = parts.collect();
        let good = |p: &&str| (2..=8).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_alphanumeric());
        if first && rest.len() <= 2 && rest.iter().all(good) { Ok(text.to_owned()) } else { Err("must be a language such as en-US".into()) }
    };

    /// The name of a track in Google Play, such as `production` or `beta`.
    TrackName,
    schema: {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9 :._-]{0,99}$"},
    rule: |text| {
        let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b" :._-".contains(&b));
        let first = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        if good && first && text.len() <= 100 { Ok(text.to_owned()) } else { Err("must be the name of a track, such as production".into()) }
    };

    /// The name of a group of testers.
    GroupName,
    schema: {"type": "string", "minLength": 1, "maxLength": 100},
    rule: |text| {
        let text = text.trim();
        match text.chars().count() {
            1..=100 if !text.chars().any(char::is_control) => Ok(text.to_owned()),
            _ => Err("must be the name of a group, 1 to 100 characters on one line".into()),
        }
    };

    /// The id of an app in Firebase, such as `1:1234567890:android:0a1b2c3d4e5f67890`.
    FirebaseAppId,
    schema: {"type": "string", "pattern": "^[0-9]+:[0-9]+:(android|ios):[0-9a-f]+$", "maxLength": 100},
    rule: |text| {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let hex = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let parts: Vec<_> = text.split(':').collect();
        let good = matches!(parts.as_slice(), [v, n, "android" | "ios", h] if digits(v) && digits(n) && hex(h));
        if good && text.len() <= 100 { Ok(text.to_owned()) } else { Err("must be the id of an app in Firebase, such as 1:1234567890:android:0a1b2c3d4e5f67890".into()) }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_at_most_two_decimals() {
        for (percent, hundredths) in
            [(0.01, 1), (0.29, 29), (5.0, 500), (33.33, 3333), (100.0, 10_000)]
        {
            let share = Percent::try_from(percent).unwrap();
            assert_eq!(share.hundredths(), hundredths);
            let written = serde_json::to_string(&share).unwrap();
            assert_eq!(serde_json::from_str::<Percent>(&written).unwrap(), share, "{written}");
        }
        for percent in [0.0, -1.0, 0.001, 100.01, f64::NAN, f64::INFINITY] {
            assert!(Percent::try_from(percent).is_err(), "{percent}");
        }
        assert_eq!("12.5%".parse::<Percent>().unwrap().hundredths(), 1250);
    }
}
