//! The handlers of the group Builds.

use super::{
    effects::NO_CI,
    log,
    rules::{BuildIndex, Builds, Command, Place, State},
};
use crate::{
    call::{context::Call, pagination},
    kinds::repositories,
    platform::Platform,
};
use contract::{
    AppId, BuildId, Fault, Name, Page, Serves,
    apps::Platform as Os,
    builds::{
        Build, BuildLogs, BuildTrigger, CancelBuild, DispatchBuild, GetBuild, GetBuildLogs,
        GetBuilds, Labels, TriggerBuild, TriggerMobileWorkflow,
    },
    repositories::{Repository, RepositoryMode},
    text::GitRef,
};

/// How many builds of one app may be under way.
const MOST_UNDER_WAY: u64 = 100;
/// How many builds of one organization may be under way. What a runner with other labels looks
/// through grows with it.
const MOST_IN_ORGANIZATION: u64 = 1_000;
/// The profile that is built where none is named.
const PROFILE: &str = "production";

pub(super) fn show(state: &State) -> Result<Build, Fault> {
    Ok(state.build.clone())
}

/// What every function that begins a build is asked for.
struct Wanted {
    app_id: AppId,
    platform: Os,
    profile: Option<Name>,
    git_ref: Option<GitRef>,
    labels: Labels,
    trigger: BuildTrigger,
    place: Place,
}

impl Platform {
    async fn trigger(&self, cx: &Call, wanted: Wanted) -> Result<Build, Fault> {
        let (_, app) = cx.ancestry.app()?;
        if !app.state.platforms.contains(&wanted.platform) {
            return Err(Fault::invalid(
                "platform",
                "this app is not built for this platform; add it with updateApp first",
            ));
        }
        let repository = repositories::of_app(&self.world.store, wanted.app_id)?;
        let repository = repository.ok_or(Fault::NotFound("repository of this app"))?;
        if wanted.place == Place::Ci {
            can_run_in_ci(&repository)?;
        }
        let open = self.world.store.count(&BuildIndex::UnderWay { app: wanted.app_id })?;
        if open >= MOST_UNDER_WAY {
            return Err(Fault::NotNow(format!(
                "{MOST_UNDER_WAY} builds of this app are under way; cancel some, or wait"
            )));
        }
        let (organization, _) = cx.ancestry.organization()?;
        let open = self.world.store.count(&BuildIndex::UnderWayIn { organization })?;
        if open >= MOST_IN_ORGANIZATION {
            return Err(Fault::NotNow(format!(
                "{MOST_IN_ORGANIZATION} builds of this organization are under way; cancel some, or wait"
            )));
        }
        let profile = match wanted.profile {
            Some(profile) => profile,
            None => PROFILE.parse().map_err(|_| Fault::Internal)?,
        };
        let id: BuildId = self.world.ports.random.id(cx.now);
        let path = wanted.trigger.into();
        let build = Build {
            mode: repository.mode,
            git_ref: wanted.git_ref.map(|git_ref| git_ref.as_str().to_owned()),
            labels: wanted.labels.into_vec(),
            triggered_by: cx.caller.user.as_ref().map(|user| user.id),
            ..Build::queued(id, wanted.app_id, wanted.platform, profile, path, cx.now)
        };
        let state = State::new(build, organization, wanted.place, self.settings.build_limit);
        cx.create(&self.world, &self.owners()?.builds, id, state, show).await
    }
}

/// Refuses a build in the CI of a repository that the last check found unfit.
fn can_run_in_ci(repository: &Repository) -> Result<(), Fault> {
    if repository.mode == RepositoryMode::ArtifactOnly {
        let missing = repository.detected.iter().filter(|file| !file.present);
        let missing: Vec<_> = missing.map(|file| file.path.as_str()).collect();
        return Err(Fault::NotNow(format!(
            "the repository is not managed, for it has no {}; add what is missing (svc init) and \
             check it again (svc repo check), or build it with svc_triggerMobileWorkflow",
            missing.join(" and no ")
        )));
    }
    match (&repository.checked_at, &repository.installation_id) {
        (Some(_), None) => Err(Fault::NotNow(NO_CI.into())),
        _ => Ok(()),
    }
}

impl Serves<TriggerBuild> for Platform {
    async fn serve(&self, cx: &Call, p: TriggerBuild) -> Result<Build, Fault> {
        let TriggerBuild { app_id, platform, profile, git_ref, labels, trigger } = p;
        let place = if labels.is_none() { Place::Any } else { Place::Runner };
        let wanted = Wanted { app_id, platform, profile, git_ref, labels, trigger, place };
        self.trigger(cx, wanted).await
    }
}

impl Serves<TriggerMobileWorkflow> for Platform {
    async fn serve(&self, cx: &Call, p: TriggerMobileWorkflow) -> Result<Build, Fault> {
        let TriggerMobileWorkflow { app_id, platform, profile, git_ref, labels, trigger } = p;
        let place = if labels.is_none() { Place::Hosted } else { Place::Runner };
        let wanted = Wanted { app_id, platform, profile, git_ref, labels, trigger, place };
        self.trigger(cx, wanted).await
    }
}

impl Serves<DispatchBuild> for Platform {
    async fn serve(&self, cx: &Call, p: DispatchBuild) -> Result<Build, Fault> {
        let DispatchBuild { app_id, platform, profile, git_ref, trigger } = p;
        let (labels, place) = (Labels::default(), Place::Ci);
        let wanted = Wanted { app_id, platform, profile, git_ref, labels, trigger, place };
        self.trigger(cx, wanted).await
    }
}

impl Serves<GetBuilds> for Platform {
    async fn serve(&self, _: &Call, p: GetBuilds) -> Result<Page<Build>, Fault> {
        let (store, list) = (&self.world.store, (p.limit, p.cursor));
        pagination::children::<Builds, _>(store, p.app_id, p.state, list, |_, seen| {
            let build = &seen.state.build;
            let wanted = p.platform.is_none_or(|platform| build.platform == platform);
            Ok(wanted.then(|| build.clone()))
        })
    }
}

impl Serves<GetBuild> for Platform {
    async fn serve(&self, cx: &Call, _: GetBuild) -> Result<Build, Fault> {
        show(&cx.ancestry.build()?.1.state)
    }
}

impl Serves<CancelBuild> for Platform {
    async fn serve(&self, cx: &Call, p: CancelBuild) -> Result<Build, Fault> {
        let owners = &self.owners()?.builds;
        cx.change(&self.world, owners, p.build_id, Command::Cancel, show).await
    }
}

impl Serves<GetBuildLogs> for Platform {
    async fn serve(&self, cx: &Call, p: GetBuildLogs) -> Result<BuildLogs, Fault> {
        let (id, seen) = cx.ancestry.build()?;
        log::read(&self.world.store, id, p.cursor, seen.state.build.state.is_final())
    }
}
