//! The change of a track for one release of it, or why Google would refuse the change. Pure.
//!
//! A change of a track replaces all its releases, so each list here is a whole one.

use super::track::{Goal, Status, TrackRelease, percent};
use contract::{Notes, publishing::Language};
use serde_json::{Map, json};

/// The release of a publication.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ours {
    pub code: u64,
    pub name: String,
    pub notes: Vec<(Language, Notes)>,
    pub priority: Option<u8>,
}

/// The completed release that ours takes the place of. Google serves it again when ours is halted.
pub(super) fn replaced(releases: &[TrackRelease], code: u64) -> Option<TrackRelease> {
    let is_it = |it: &&TrackRelease| it.status == Status::Completed && !it.has(code);
    releases.iter().filter(is_it).max_by_key(|it| it.highest_code()).cloned()
}

/// The list of a track after a change of our release, or why Google would refuse the change.
/// `replaced` is the completed release that ours took the place of earlier.
pub(super) fn changed(
    releases: &[TrackRelease],
    ours: &Ours,
    goal: Goal,
    replaced: Option<&TrackRelease>,
) -> Result<Vec<TrackRelease>, String> {
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
    let stays = |it: &&TrackRelease| match goal {
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
    mut list: Vec<TrackRelease>,
    replaced: Option<&TrackRelease>,
    ours: Option<&TrackRelease>,
) -> Vec<TrackRelease> {
    let is_needed = ours.is_some_and(|it| it.status == Status::Completed)
        && !list.iter().any(|it| it.status == Status::Completed);
    list.extend(replaced.filter(|_| is_needed).cloned());
    list
}

fn permitted<'a>(
    now: Option<&TrackRelease>,
    mut others: impl Iterator<Item = &'a TrackRelease> + Clone,
    ours: &Ours,
    goal: Goal,
) -> Result<(), String> {
    let code = ours.code;
    let is_later = |it: &&TrackRelease| {
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
        (None, Goal::Staged(_)) if !others.any(TrackRelease::is_rolled_out) => Err(format!(
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
    fn release(&self) -> TrackRelease {
        let text =
            |(language, text): &(Language, Notes)| json!({"language": language, "text": text});
        let mut rest = Map::new();
        if !self.notes.is_empty() {
            rest.insert("releaseNotes".into(), self.notes.iter().map(text).collect());
        }
        if let Some(priority) = self.priority {
            rest.insert("inAppUpdatePriority".into(), priority.into());
        }
        TrackRelease {
            name: Some(self.name.clone()),
            version_codes: vec![self.code.to_string()],
            status: Status::Draft,
            user_fraction: None,
            rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::publishing::Percent;
    use serde_json::Value;

    fn list(text: &Value) -> Vec<TrackRelease> {
        serde_json::from_value(text.clone()).unwrap()
    }

    fn after(before: Value, goal: Goal, replaced: Option<Value>) -> Result<Value, String> {
        let ours = Ours { code: 42, name: "1.4.2".into(), notes: Vec::new(), priority: None };
        let replaced = replaced.map(|it| serde_json::from_value::<TrackRelease>(it).unwrap());
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
