//! What is known of a build when it is triggered, from the last check of its repository. Pure.

use super::{effects::NO_CI, rules::BuildPlace};
use crate::kinds::delivery::repositories::{Checked, Repository};
use contract::{
    apps::Platform,
    repositories::{RepositoryMode, Severity},
};
use repository::CONFIG;

/// What somebody asks to be built, before there is a build.
pub(crate) struct WantedBuild<'a> {
    pub platform: Platform,
    pub profile: &'a str,
    /// `None`: the connected branch.
    pub git_ref: Option<&'a str>,
    pub place: BuildPlace,
}

/// Why the build will fail, as far as the last check can tell. It tells nothing of other branches.
pub(crate) fn obstacle(repository: &Repository, wanted: &WantedBuild<'_>) -> Option<String> {
    let checked = repository.checked.as_ref()?;
    if wanted.git_ref.is_some_and(|git_ref| git_ref != checked.branch) {
        return None;
    }
    let why = if wanted.place == BuildPlace::Ci { no_ci(checked) } else { None };
    let why = why.or_else(|| no_recipe(checked, wanted)).or_else(|| errors(checked, wanted))?;
    Some(format!("{why} (commit {})", checked.commit))
}

/// Why no build can begin in the CI of the repository.
fn no_ci(checked: &Checked) -> Option<String> {
    if checked.mode == RepositoryMode::ArtifactOnly {
        let missing = checked.detected.iter().filter(|file| !file.present);
        let missing: Vec<_> = missing.map(|file| file.path.as_str()).collect();
        return Some(format!(
            "the repository is not managed, for it has no {}; add what is missing (svc init), or \
             build it with svc_triggerMobileWorkflow",
            missing.join(" and no ")
        ));
    }
    checked.installation.is_none().then(|| NO_CI.into())
}

fn no_recipe(checked: &Checked, wanted: &WantedBuild<'_>) -> Option<String> {
    let profiles = checked.profiles.as_ref()?;
    let of_platform = profiles.get(&wanted.platform);
    if of_platform.is_some_and(|profiles| profiles.contains(wanted.profile)) {
        return None;
    }
    let is_missing = checked.detected.iter().any(|file| file.path == CONFIG && !file.present);
    let (platform, profile) = (wanted.platform.name(), wanted.profile);
    Some(match of_platform {
        _ if is_missing => format!("the repository has no {CONFIG}; `svc init` writes one"),
        Some(profiles) if !profiles.is_empty() => {
            let profiles: Vec<_> = profiles.iter().map(String::as_str).collect();
            format!(
                "{CONFIG} has no build.{platform}.{profile} with an artifact; it has {}",
                profiles.join(", ")
            )
        }
        _ => format!("{CONFIG} has no build.{platform}.{profile} with an artifact"),
    })
}

/// The first error, of a build in the CI of the repository: the files say how that works.
fn errors(checked: &Checked, wanted: &WantedBuild<'_>) -> Option<String> {
    let is_there = match wanted.place {
        BuildPlace::Ci => true,
        BuildPlace::Any => checked.runs_in_own_ci(),
        BuildPlace::Hosted | BuildPlace::Runner => false,
    };
    let is_error = |severity: Severity| is_there && severity == Severity::Error;
    let found = checked.findings.iter().find(|finding| is_error(finding.severity))?;
    let path = found.path.as_deref().unwrap_or_default();
    let line = found.line.map_or_else(String::new, |line| format!(" line {line}"));
    Some(format!("{path}{line}: {}", found.problem))
}
