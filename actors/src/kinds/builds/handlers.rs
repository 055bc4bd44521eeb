//! The handlers of the group Builds.

use super::{
    log,
    rules::{BuildIndex, Builds, Command, State},
};
use crate::{
    call::{context::Call, pagination},
    kinds::{apps::Apps, repositories},
    platform::Platform,
    runtime::entries::Under,
};
use contract::{
    BuildId, Fault, Page, Serves,
    builds::{
        Build, BuildLogs, BuildState, CancelBuild, GetBuild, GetBuildLogs, GetBuilds, TriggerBuild,
        TriggerMobileWorkflow,
    },
};

/// How many builds of one app may be under way.
const MOST_UNDER_WAY: u64 = 100;
/// The profile that is built where none is named.
const PROFILE: &str = "production";

pub(super) fn show(state: &State) -> Result<Build, Fault> {
    Ok(state.build.clone())
}

impl Platform {
    async fn trigger(&self, cx: &Call, p: TriggerBuild) -> Result<Build, Fault> {
        let (_, app) = cx.ancestry.app()?;
        if !app.state.platforms.contains(&p.platform) {
            return Err(Fault::invalid(
                "platform",
                "this app is not built for this platform; add it with updateApp first",
            ));
        }
        let repository = repositories::of_app(&self.world.store, p.app_id)?;
        let repository = repository.ok_or(Fault::NotFound("repository of this app"))?;
        let open = self.world.store.count(&BuildIndex::UnderWay { app: p.app_id })?;
        if open >= MOST_UNDER_WAY {
            return Err(Fault::NotNow(format!(
                "{MOST_UNDER_WAY} builds of this app are under way; cancel some, or wait"
            )));
        }
        let profile = match p.profile {
            Some(profile) => profile,
            None => PROFILE.parse().map_err(|_| Fault::Internal)?,
        };
        let id: BuildId = self.world.ports.random.id(cx.now);
        let build = Build {
            id,
            app_id: p.app_id,
            platform: p.platform,
            profile,
            execution_path: p.trigger.into(),
            mode: repository.mode,
            state: BuildState::Queued,
            git_ref: p.git_ref.map(|git_ref| git_ref.as_str().to_owned()),
            commit: None,
            labels: p.labels.into_vec(),
            runner: None,
            attempts: 0,
            run_url: None,
            artifact_id: None,
            error: None,
            triggered_by: cx.caller.user.as_ref().map(|user| user.id),
            created_at: cx.now,
            started_at: None,
            finished_at: None,
        };
        let state = State::new(build, self.settings.build_limit);
        cx.create(&self.world, &self.owners()?.builds, id, state, show).await
    }
}

impl Serves<TriggerBuild> for Platform {
    async fn serve(&self, cx: &Call, p: TriggerBuild) -> Result<Build, Fault> {
        self.trigger(cx, p).await
    }
}

impl Serves<TriggerMobileWorkflow> for Platform {
    async fn serve(&self, cx: &Call, p: TriggerMobileWorkflow) -> Result<Build, Fault> {
        let TriggerMobileWorkflow { app_id, platform, profile, git_ref, labels, trigger } = p;
        self.trigger(cx, TriggerBuild { app_id, platform, profile, git_ref, labels, trigger }).await
    }
}

impl Serves<GetBuilds> for Platform {
    async fn serve(&self, _: &Call, p: GetBuilds) -> Result<Page<Build>, Fault> {
        let (store, entry) = (&self.world.store, Under::<Apps>(p.app_id));
        pagination::page::<Builds, _>(store, &entry, (p.limit, p.cursor), |_, seen| {
            let build = &seen.state.build;
            let wanted = p.state.is_none_or(|state| build.state == state)
                && p.platform.is_none_or(|platform| build.platform == platform);
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
