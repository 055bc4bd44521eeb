//! The handlers of the group Builds.

pub(crate) mod job;
pub mod reports;
pub mod runners;

use super::repositories::{may_use_central, repository_checked_now, runs_in};
use crate::{
    call::{context::Call, platform::Platform},
    kinds::{
        delivery::{
            builds::{
                foreseen::{self, obstacle},
                log,
                rules::{BuildIndex, BuildPlace, Builds, Command, State},
            },
            repositories::{self, Repository},
        },
        world::World,
    },
    runtime::pagination,
};
use contract::{
    AppId, BuildId, Fault, Name, Page, Serves,
    apps::Platform as Os,
    builds::{
        Build, BuildLogs, BuildTrigger, CancelBuild, DispatchBuild, GetBuild, GetBuildLogs,
        GetBuilds, Labels, TriggerBuild, TriggerMobileWorkflow,
    },
    repositories::{RepositoryMode, RunsIn},
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
struct BuildRequest {
    app_id: AppId,
    platform: Os,
    profile: Option<Name>,
    git_ref: Option<GitRef>,
    labels: Labels,
    trigger: BuildTrigger,
    place: BuildPlace,
}

impl BuildRequest {
    /// Whether the build will wait for a runner, as far as that is known.
    fn runs_on_runner(&self, world: &World, repository: &Repository) -> bool {
        match self.place {
            BuildPlace::Runner => true,
            BuildPlace::Any => runs_in(world, repository) == Some(RunsIn::Runner),
            BuildPlace::Hosted => !may_use_central(world, repository),
            BuildPlace::Ci => false,
        }
    }
}

async fn begin(platform: &Platform, cx: &Call, wanted: BuildRequest) -> Result<Build, Fault> {
    let (_, app) = cx.ancestry.app()?;
    if !app.state.platforms.contains(&wanted.platform) {
        return Err(Fault::invalid(
            "platform",
            "this app is not built for this platform; add it with updateApp first",
        ));
    }
    let profile = match wanted.profile.clone() {
        Some(profile) => profile,
        None => PROFILE.parse().map_err(|_| Fault::Internal)?,
    };
    let repository = fit_repository(&platform.world, &wanted, &profile).await?;
    let open = platform.world.store.count(&BuildIndex::UnderWay { app: wanted.app_id })?;
    if open >= MOST_UNDER_WAY {
        return Err(Fault::NotNow(format!(
            "{MOST_UNDER_WAY} builds of this app are under way; cancel some, or wait"
        )));
    }
    let (organization, _) = cx.ancestry.organization()?;
    let open = platform.world.store.count(&BuildIndex::UnderWayIn { organization })?;
    if open >= MOST_IN_ORGANIZATION {
        return Err(Fault::NotNow(format!(
            "{MOST_IN_ORGANIZATION} builds of this organization are under way; cancel some, or wait"
        )));
    }
    // Runners may have asked another node, if there are others.
    let is_known = platform.world.store.is_alone();
    let warning = match is_known && wanted.runs_on_runner(&platform.world, &repository) {
        true => {
            let (app, mobile, labels) = (wanted.app_id, wanted.platform, &wanted.labels);
            platform.world.seen_runners.warning(organization, app, mobile, labels)
        }
        false => None,
    };
    let id: BuildId = platform.world.ports.random.id(cx.now);
    let path = wanted.trigger.into();
    let build = Build {
        mode: repository.checked.map_or(RepositoryMode::Unclassified, |checked| checked.mode),
        git_ref: wanted.git_ref.map(|git_ref| git_ref.as_str().to_owned()),
        labels: wanted.labels.into_vec(),
        warnings: warning.into_iter().collect(),
        triggered_by: cx.caller.user.as_ref().map(|user| user.id),
        ..Build::queued(id, wanted.app_id, wanted.platform, profile, path, cx.now)
    };
    let state = State::new(build, organization, wanted.place, platform.settings.build_limit);
    cx.to::<Builds>(id).create(state, show).await
}

/// The repository, unless it is known that the build will fail. What the last check knew may be
/// mended since, so it is checked again before a refusal.
async fn fit_repository(
    world: &World,
    wanted: &BuildRequest,
    profile: &Name,
) -> Result<Repository, Fault> {
    let app = wanted.app_id;
    let found = repositories::connected(&world.store, app)?;
    let (id, repository) = found.ok_or(Fault::NotFound("repository of this app"))?;
    let wanted = foreseen::WantedBuild {
        platform: wanted.platform,
        profile: profile.as_str(),
        git_ref: wanted.git_ref.as_ref().map(|git_ref| git_ref.as_str()),
        place: wanted.place,
    };
    if obstacle(&repository, &wanted).is_none() {
        return Ok(repository.state.clone());
    }
    let repository = repository_checked_now(world, id).await?;
    match obstacle(&repository, &wanted) {
        None => Ok(repository),
        Some(why) => Err(Fault::NotNow(why)),
    }
}

impl Serves<TriggerBuild> for Platform {
    async fn serve(&self, cx: &Call, p: TriggerBuild) -> Result<Build, Fault> {
        let TriggerBuild { app_id, platform, profile, git_ref, labels, trigger } = p;
        let place = if labels.is_none() { BuildPlace::Any } else { BuildPlace::Runner };
        let wanted = BuildRequest { app_id, platform, profile, git_ref, labels, trigger, place };
        begin(self, cx, wanted).await
    }
}

impl Serves<TriggerMobileWorkflow> for Platform {
    async fn serve(&self, cx: &Call, p: TriggerMobileWorkflow) -> Result<Build, Fault> {
        let TriggerMobileWorkflow { app_id, platform, profile, git_ref, labels, trigger } = p;
        let place = if labels.is_none() { BuildPlace::Hosted } else { BuildPlace::Runner };
        let wanted = BuildRequest { app_id, platform, profile, git_ref, labels, trigger, place };
        begin(self, cx, wanted).await
    }
}

impl Serves<DispatchBuild> for Platform {
    async fn serve(&self, cx: &Call, p: DispatchBuild) -> Result<Build, Fault> {
        let DispatchBuild { app_id, platform, profile, git_ref, trigger } = p;
        let (labels, place) = (Labels::default(), BuildPlace::Ci);
        let wanted = BuildRequest { app_id, platform, profile, git_ref, labels, trigger, place };
        begin(self, cx, wanted).await
    }
}

impl Serves<GetBuilds> for Platform {
    async fn serve(&self, _: &Call, p: GetBuilds) -> Result<Page<Build>, Fault> {
        let (store, list) = (&self.world.store, (p.limit, p.cursor));
        let (of, is_filtered) = ((p.app_id, p.state), p.platform.is_some());
        pagination::children::<Builds, _>(store, of, list, is_filtered, |_, seen| {
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
        cx.to::<Builds>(p.build_id).change(Command::Cancel, show).await
    }
}

impl Serves<GetBuildLogs> for Platform {
    async fn serve(&self, cx: &Call, p: GetBuildLogs) -> Result<BuildLogs, Fault> {
        let (id, seen) = cx.ancestry.build()?;
        log::read(&self.world.store, id, p.cursor, seen.state.build.state.is_final())
    }
}
