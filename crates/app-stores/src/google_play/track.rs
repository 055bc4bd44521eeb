//! The releases of a track, and what becomes of them when one of them changes. Pure.
//!
//! A change of a track replaces all its releases, so each list here is a whole one.
//! Source: `Track` and `TrackRelease` of the Google Play Developer API v3.

use contract::{
    Notes,
    publishing::{Language, Percent},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A release of a track.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Release {
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

/// The release of a publication.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ours {
    pub code: u64,
    pub name: String,
    pub notes: Vec<(Language, Notes)>,
    pub priority: Option<u8>,
}

impl Release {
    fn has(&self, code: u64) -> bool {
        self.codes().any(|it| it == code)
    }

    fn codes(&self) -> impl Iterator<Item = u64> {
        self.version_codes.iter().filter_map(|code| code.parse().ok())
    }

    fn highest_code(&self) -> u64 {
        self.codes().max().unwrap_or_default()
    }

    /// Whether users get it or may get it again.
    fn is_rolled_out(&self) -> bool {
        self.status != Status::Draft
    }

    fn is_staged(&self) -> bool {
        matches!(self.status, Status::InProgress | Status::Halted)
    }
}

impl Shown {
    /// The release with this version code.
    pub(super) fn of(releases: &[Release], code: u64) -> Option<Shown> {
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

/// The completed release that ours takes the place of. Google serves it again when ours is halted.
pub(super) fn replaced(releases: &[Release], code: u64) -> Option<Release> {
    let is_it = |it: &&Release| it.status == Status::Completed && !it.has(code);
    releases.iter().filter(is_it).max_by_key(|it| it.highest_code()).cloned()
}

/// The list of a track after a change of our release, or why Google would refuse the change.
/// `replaced` is the completed release that ours took the place of earlier.
pub(super) fn changed(
    releases: &[Release],
    ours: &Ours,
    goal: Goal,
    replaced: Option<&Release>,
) -> Result<Vec<Release>, String> {
    let code = ours.code;
    let now = releases.iter().find(|release| release.has(code));
    let others = || releases.iter().filter(|release| !release.has(code));
    permitted(now, others(), ours, goal)?;
    let mut release = now.cloned().unwrap_or_else(|| ours.release());
    let was_staged = release.is_staged();
    release.status = match goal {
        Goal::Draft => Status::Draft,
        Goal::Staged(_) => Status::InProgress,
        Goal::Completed => Status::Completed,
        Goal::Halted => Status::Halted,
        Goal::Removed => {
            return Ok(with_replaced(others().cloned().collect(), replaced, now));
        }
    };
    release.user_fraction = match goal {
        Goal::Staged(share) => Some(share.fraction()),
        Goal::Halted if was_staged => release.user_fraction,
        _ => None,
    };
    if goal != Goal::Completed && now.is_some_and(|it| it.status == Status::Completed) {
        let mut list = with_replaced(others().cloned().collect(), replaced, now);
        if !list.iter().any(|it| it.status == Status::Completed) {
            return Err(NOTHING_BEFORE.into());
        }
        list.insert(0, release);
        return Ok(list);
    }
    // A rollout takes the place of an older one, and a completed one of everything that is older.
    // What has a higher code, and drafts, stay.
    let stays = |it: &&Release| match goal {
        Goal::Staged(_) => !it.is_staged() || it.highest_code() > code,
        Goal::Completed => it.status == Status::Draft || it.highest_code() > code,
        _ => true,
    };
    Ok(std::iter::once(release).chain(others().filter(stays).cloned()).collect())
}

/// What Google cannot halt.
pub(super) const NOTHING_BEFORE: &str = "All users get this version, and Google Play stops that only \
    if the track has an earlier version to give them instead. It knows none. Publish a version with \
    a higher version code.";

/// Brings the completed release back, if ours was completed and no other is.
fn with_replaced(
    mut list: Vec<Release>,
    replaced: Option<&Release>,
    ours: Option<&Release>,
) -> Vec<Release> {
    let is_needed = ours.is_some_and(|it| it.status == Status::Completed)
        && !list.iter().any(|it| it.status == Status::Completed);
    list.extend(replaced.filter(|_| is_needed).cloned());
    list
}

fn permitted<'a>(
    now: Option<&Release>,
    mut others: impl Iterator<Item = &'a Release> + Clone,
    ours: &Ours,
    goal: Goal,
) -> Result<(), String> {
    let code = ours.code;
    let is_later = |it: &&Release| {
        matches!(it.status, Status::Completed | Status::InProgress) && it.highest_code() > code
    };
    if matches!(goal, Goal::Staged(_) | Goal::Completed)
        && let Some(later) = others.clone().find(is_later)
    {
        return Err(format!(
            "The track already gives version code {} to users, and Google Play never gives them a \
             lower one such as {code}. Publish a version with a higher code, or halt the later one \
             first.",
            later.highest_code()
        ));
    }
    let share = now.and_then(|it| it.user_fraction).and_then(percent);
    match (now.map(|it| it.status), goal) {
        (None, Goal::Staged(_)) if !others.any(Release::is_rolled_out) => Err(format!(
            "Version code {code} is the first of its track, and Google Play has no staged rollout \
             for the first. Publish it without `rollout`."
        )),
        (Some(Status::InProgress | Status::Halted), Goal::Staged(wanted))
            if share.is_some_and(|share| wanted < share) =>
        {
            Err(format!(
                "{} of the users may have the version already, and Google Play never lowers the \
                 share to {wanted}. Halt the rollout instead.",
                share.map(|share| share.to_string()).unwrap_or_default()
            ))
        }
        (Some(Status::Completed), Goal::Staged(wanted)) => Err(format!(
            "All users get the version already, and Google Play never lowers the share to {wanted}. \
             Halt the version instead."
        )),
        (Some(Status::Halted), Goal::Staged(_)) if share.is_none() => Err(
            "The version was released to all users before it was halted, so it can be resumed for \
             all users only. Ask for it without a share."
                .into(),
        ),
        (Some(Status::InProgress | Status::Halted | Status::Completed), Goal::Draft) => Err(
            "The version is rolled out already and cannot become a draft. Leave the option `draft` \
             out."
                .into(),
        ),
        _ => Ok(()),
    }
}

impl Ours {
    fn release(&self) -> Release {
        let text =
            |(language, text): &(Language, Notes)| json!({"language": language, "text": text});
        let mut rest = Map::new();
        if !self.notes.is_empty() {
            rest.insert("releaseNotes".into(), self.notes.iter().map(text).collect());
        }
        if let Some(priority) = self.priority {
            rest.insert("inAppUpdatePriority".into(), priority.into());
        }
        Release {
            name: Some(self.name.clone()),
            version_codes: vec![self.code.to_string()],
            status: Status::Draft,
            user_fraction: None,
            rest,
        }
    }
}

/// A share of one as a share in percent, to a hundredth.
fn percent(fraction: f64) -> Option<Percent> {
    let hundredths = (fraction * 10_000.0).round().clamp(0.0, 10_000.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10,000")]
    Percent::of_hundredths((hundredths as u16).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &Value) -> Vec<Release> {
        serde_json::from_value(text.clone()).unwrap()
    }

    fn after(before: Value, goal: Goal, replaced: Option<Value>) -> Result<Value, String> {
        let ours = Ours { code: 42, name: "1.4.2".into(), notes: Vec::new(), priority: None };
        let replaced = replaced.map(|it| serde_json::from_value::<Release>(it).unwrap());
        let changed = changed(&list(&before), &ours, goal, replaced.as_ref())?;
        Ok(serde_json::to_value(changed).unwrap())
    }

    fn staged(percent: u16) -> Goal {
        Goal::Staged(Percent::of_hundredths(percent * 100).unwrap())
    }

    fn completed(code: u32) -> Value {
        json!({"name": "other", "versionCodes": [code.to_string()], "status": "completed",
               "countryTargeting": {"includeRestOfWorld": true}})
    }

    fn other(code: u32, status: &str) -> Value {
        json!({"versionCodes": [code.to_string()], "status": status, "userFraction": 0.5})
    }

    fn ours(status: &str, fraction: Option<f64>) -> Value {
        let mut it = json!({"name": "1.4.2", "versionCodes": ["42"], "status": status});
        if let Some(fraction) = fraction {
            it["userFraction"] = fraction.into();
        }
        it
    }

    #[test]
    fn a_change_keeps_what_it_does_not_take_the_place_of() {
        let draft = || json!({"versionCodes": ["39"], "status": "draft"});
        let table = [
            // A rollout leaves the completed release and drafts, and replaces an older rollout.
            (
                json!([completed(40), draft(), other(41, "inProgress")]),
                staged(10),
                None,
                json!([ours("inProgress", Some(0.1)), completed(40), draft()]),
            ),
            // A draft leaves everything.
            (
                json!([completed(40), other(41, "inProgress")]),
                Goal::Draft,
                None,
                json!([ours("draft", None), completed(40), other(41, "inProgress")]),
            ),
            (
                json!([ours("inProgress", Some(0.1)), completed(40), draft()]),
                Goal::Completed,
                None,
                json!([ours("completed", None), draft()]),
            ),
            (
                json!([ours("inProgress", Some(0.1)), completed(40)]),
                Goal::Halted,
                None,
                json!([ours("halted", Some(0.1)), completed(40)]),
            ),
            (
                json!([ours("halted", Some(0.1)), completed(40)]),
                staged(20),
                None,
                json!([ours("inProgress", Some(0.2)), completed(40)]),
            ),
            // The version before comes back when all users have ours.
            (
                json!([ours("completed", None), draft()]),
                Goal::Halted,
                Some(completed(40)),
                json!([ours("halted", None), draft(), completed(40)]),
            ),
            (
                json!([ours("completed", None)]),
                Goal::Removed,
                Some(completed(40)),
                json!([completed(40)]),
            ),
            (
                json!([ours("draft", None), completed(40)]),
                Goal::Removed,
                Some(completed(38)),
                json!([completed(40)]),
            ),
            // A later version that was halted stays so when ours is served again.
            (
                json!([other(43, "halted"), completed(40)]),
                Goal::Completed,
                None,
                json!([ours("completed", None), other(43, "halted")]),
            ),
        ];
        for (before, goal, replaced, wanted) in table {
            assert_eq!(
                after(before.clone(), goal, replaced).as_ref(),
                Ok(&wanted),
                "{before} {goal:?}"
            );
        }
    }

    #[test]
    fn what_google_would_refuse_is_refused() {
        let table = [
            (json!([]), staged(10), "the first"),
            (json!([completed(43)]), Goal::Completed, "never gives them a lower"),
            (json!([completed(40), other(43, "inProgress")]), staged(10), "43"),
            (json!([ours("inProgress", Some(0.5)), completed(40)]), staged(10), "50 %"),
            (json!([ours("halted", Some(0.5)), completed(40)]), staged(10), "never lowers"),
            (json!([ours("completed", None)]), staged(10), "never lowers"),
            (json!([ours("halted", None), completed(40)]), staged(10), "all users only"),
            (json!([ours("completed", None)]), Goal::Halted, "knows none"),
            (json!([ours("completed", None)]), Goal::Draft, "draft"),
        ];
        for (before, goal, part) in table {
            let why = after(before.clone(), goal, None).unwrap_err();
            assert!(why.contains(part), "{before} {goal:?}: {why}");
        }
    }
}
