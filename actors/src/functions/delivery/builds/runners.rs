//! The handlers of the group Runners.

use super::show;
use crate::{
    call::{
        authn, authz,
        context::Call,
        lookup::{self, Ancestry},
        platform::Platform,
    },
    functions::delivery::artifacts::endpoints::read_upload,
    kinds::{
        delivery::{
            builds::{
                log,
                rules::{BuildClaim, BuildIndex, Builds, Command, State},
                waiting::{Listener, Served},
            },
            repositories,
        },
        people::{accounts::keyed_digest, usage},
        world::World,
    },
    ports::sources::GitCredential,
};
use contract::{
    AppId, BuildId, Fault, Serves, Subject, Timestamp,
    apps::Platform as Os,
    artifacts::ArtifactState,
    builds::Build,
    endpoint::BuildOfRunner,
    quotas::Quota,
    runners::{
        BuildOrder, BuildReported, ClaimBuild, ClaimedBuild, FinishBuild, MOST_LINES, ReportBuild,
    },
    text::RunnerKey,
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use store::Snapshot;

/// How long a call waits for a build.
const WAITS: Duration = Duration::from_secs(20);
/// How soon a waiting call sees that the service stops.
const STOPS_WITHIN: Duration = Duration::from_millis(500);
/// How many waiting builds of an organization or of an app a call looks at.
const MOST_WAITING: usize = 1_000;
/// Longer lines are cut, in characters.
const LONGEST_LINE: usize = 2_000;

/// The runner as records know it. Its key proves who reports, so no record holds it.
fn runner(platform: &Platform, key: &RunnerKey) -> String {
    keyed_digest(&platform.settings.signing_key, &format!("runner\n{}", key.as_str()))
}

/// The build that a runner says it has.
pub(crate) fn build_of(
    platform: &Platform,
    app: AppId,
    named: &BuildOfRunner,
) -> Result<Snapshot<Builds>, Fault> {
    let found = platform.world.store.get::<Builds>(&named.build_id)?;
    let found = found.filter(|found| found.build.app_id == app && !found.removing);
    let found = found.ok_or(Fault::NotFound("build of this app"))?;
    if found.is_held_by(&runner(platform, &named.runner)) {
        return Ok(found);
    }
    Err(Fault::NotNow("this runner does not have this build; stop working on it".into()))
}

/// The build that the runner has, or else the oldest one that it may have.
async fn claim(
    platform: &Platform,
    cx: &Call,
    p: &ClaimBuild,
    served: &Served,
) -> Result<Option<BuildOrder>, Fault> {
    let runner = runner(platform, &p.runner);
    let held = platform.world.store.held_by(&BuildClaim::Runner { runner: runner.clone() })?;
    if let Some((id, held)) = held {
        return match may_run(cx, id)? {
            Some(_) => order(&platform.world, id, &held.state).await.map(Some),
            None => Err(Fault::NotFound("build")),
        };
    }
    let mut claimed_by_others = Vec::new();
    for id in waiting_for(&platform.world, p, served)? {
        let Some(_claiming) = platform.world.waiting_builds.begin_claim(id) else {
            claimed_by_others.push(id);
            continue;
        };
        if let Some(order) = claim_one(cx, p, served, id, &runner).await? {
            return Ok(Some(order));
        }
    }
    // The others may not get what they claimed.
    for id in claimed_by_others {
        if let Some(order) = claim_one(cx, p, served, id, &runner).await? {
            return Ok(Some(order));
        }
    }
    Ok(None)
}

/// The waiting builds of the organizations and apps that the runner serves, oldest first.
fn waiting_for(world: &World, p: &ClaimBuild, served: &Served) -> Result<BTreeSet<BuildId>, Fault> {
    let mut found = BTreeSet::new();
    for os in Os::ALL.iter().filter(|os| p.labels.iter().any(|l| l.as_str() == os.name())) {
        let platform = || os.name().to_owned();
        let organizations = served.organizations.iter().map(|organization| BuildIndex::WaitingIn {
            organization: *organization,
            platform: platform(),
        });
        let apps =
            served.apps.iter().map(|app| BuildIndex::WaitingOf { app: *app, platform: platform() });
        let unknown = BuildIndex::Waiting { platform: platform() };
        for entry in organizations.chain(apps).chain([unknown]) {
            for id in world.store.oldest::<Builds>(&entry, None).keys().take(MOST_WAITING) {
                found.insert(id?);
            }
        }
    }
    Ok(found)
}

/// What the runner names, or the app of its token. Fails unless the caller may run all of it.
fn served(cx: &Call, p: &ClaimBuild) -> Result<Served, Fault> {
    let mut served = Served {
        organizations: p.organization_ids.iter().copied().collect(),
        apps: p.app_ids.iter().copied().collect(),
    };
    match cx.caller.token().and_then(|token| token.state.app_id) {
        Some(_) if !served.organizations.is_empty() => {
            return Err(Fault::invalid(
                "organizationIds",
                "must be empty: the token is bound to an app, whose builds alone it may run",
            ));
        }
        Some(bound) => served.apps.extend(served.apps.is_empty().then_some(bound)),
        None if served.organizations.is_empty() && served.apps.is_empty() => {
            return Err(Fault::invalid(
                "organizationIds",
                "name the organizations or apps whose builds the runner executes, here or in \
                 appIds (svc runner --organization, --app)",
            ));
        }
        None => {}
    }
    let organizations = served.organizations.iter().map(|id| Subject::Organization(*id));
    for subject in organizations.chain(served.apps.iter().map(|id| Subject::App(*id))) {
        let ancestry = lookup::find(&cx.world, &cx.caller, subject)?;
        authz::authorize_runner(&cx.world, &cx.caller, subject, &ancestry)?;
    }
    Ok(served)
}

/// Waits until there may be a build for the runner. False: the time is over, or the service
/// stops.
async fn heard(world: &World, listener: &mut Listener, served: &Served, until: Timestamp) -> bool {
    let clock = &world.ports.clock;
    loop {
        let left = until.since(clock.now());
        if left.is_zero() || world.is_stopping() {
            return false;
        }
        if clock.limit(left.min(STOPS_WITHIN), listener.heard(served)).await.is_some() {
            return true;
        }
    }
}

/// Gives a build to the runner; `None` if the runner may not have it or another one got it.
async fn claim_one(
    cx: &Call,
    p: &ClaimBuild,
    served: &Served,
    id: BuildId,
    runner: &str,
) -> Result<Option<BuildOrder>, Fault> {
    let world = &cx.world;
    let Some(waits) = world.store.get::<Builds>(&id)? else { return Ok(None) };
    let fits =
        waits.waits_for_runner() && waits.build.labels.iter().all(|label| p.labels.contains(label));
    if !fits {
        return Ok(None);
    }
    let Some(ancestry) = may_run(cx, id)? else { return Ok(None) };
    // A build may not know its organization.
    if !served.has(ancestry.app()?.0, ancestry.organization()?.0) {
        return Ok(None);
    }
    let cx = Call { ancestry: Arc::new(ancestry), idempotency: None, ..cx.clone() };
    let command = Command::Claim { runner: runner.to_owned(), name: p.name.clone() };
    match cx.to::<Builds>(id).change(command, show).await {
        Ok(_) => {}
        Err(Fault::NotNow(_) | Fault::NotFound(_)) => return Ok(None),
        Err(fault) => return Err(fault),
    }
    log::say(world, id, format!("The runner {} got the build.", p.name));
    order(world, id, &waits.state).await.map(Some)
}

/// The build with its ancestors, if the caller may run it.
fn may_run(cx: &Call, id: BuildId) -> Result<Option<Ancestry>, Fault> {
    let ancestry = match lookup::find(&cx.world, &cx.caller, Subject::Build(id)) {
        Ok(ancestry) => ancestry,
        Err(Fault::NotFound(_)) => return Ok(None),
        Err(fault) => return Err(fault),
    };
    match authz::authorize_runner(&cx.world, &cx.caller, Subject::Build(id), &ancestry) {
        Ok(()) => Ok(Some(ancestry)),
        Err(Fault::NotFound(_) | Fault::Forbidden(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

pub(crate) async fn order(world: &World, id: BuildId, state: &State) -> Result<BuildOrder, Fault> {
    let plan = state.plan.clone().ok_or(Fault::Internal)?;
    let build = &state.build;
    let credential = repositories::credential_for(world, build.app_id, &plan.url).await;
    let (token, ssh) = match credential.map_err(|why| Fault::NotNow(why.to_string()))? {
        Some(GitCredential::Token(token)) => (Some(token), None),
        Some(GitCredential::DeployKey { access, .. }) => (None, Some(access)),
        None => (None, None),
    };
    Ok(BuildOrder {
        build_id: id,
        app_id: build.app_id,
        platform: build.platform,
        profile: build.profile.clone(),
        url: plan.url,
        token,
        ssh,
        commit: plan.commit,
        git_ref: plan.git_ref,
        command: plan.command,
        artifact: plan.artifact,
        limit_seconds: state.limit_seconds,
    })
}

impl Serves<ClaimBuild> for Platform {
    async fn serve(&self, cx: &Call, p: ClaimBuild) -> Result<ClaimedBuild, Fault> {
        if !Os::ALL.iter().any(|os| p.labels.iter().any(|label| label.as_str() == os.name())) {
            return Err(Fault::invalid("labels", "must contain android or ios"));
        }
        let clock = &self.world.ports.clock;
        let until = clock.now() + WAITS.min(self.settings.function_limit / 2);
        let served = served(cx, &p)?;
        if let Some(user) = &cx.caller.user {
            self.world.seen_runners.saw(user.id, &served, &p.labels);
        }
        // From before the first look at the store, so that no build is missed.
        let mut listener = self.world.waiting_builds.listen();
        loop {
            let job = claim(self, cx, &p, &served).await?;
            if job.is_some() || !heard(&self.world, &mut listener, &served, until).await {
                return Ok(ClaimedBuild { job });
            }
            // The credential may have ended meanwhile.
            self.world.store.fence().await?;
            authn::check_again(&self.world, &cx.caller, clock.now())?;
        }
    }
}

/// The line, or its first characters.
fn cut(mut line: String) -> String {
    if line.len() > LONGEST_LINE
        && let Some((end, _)) = line.char_indices().nth(LONGEST_LINE)
    {
        line.truncate(end);
    }
    line
}

impl Serves<ReportBuild> for Platform {
    async fn serve(&self, cx: &Call, p: ReportBuild) -> Result<BuildReported, Fault> {
        if p.lines.len() > MOST_LINES {
            return Err(Fault::invalid("lines", format!("must list at most {MOST_LINES}")));
        }
        let (organization, _) = cx.ancestry.organization()?;
        let room = usage::left(&self.world, organization, Quota::LogBytes)?;
        let command = Command::Report {
            runner: runner(self, &p.runner),
            from: p.from,
            lines: p.lines.into_iter().map(cut).collect(),
            room: room.unwrap_or(u64::MAX),
            key: self.world.ports.random.id(cx.now),
        };
        // Reports are too frequent for the audit log.
        let state = self.world.to::<Builds>(p.build_id).ask(command).await?;
        let lines = state.lease.as_ref().map_or(0, |lease| lease.lines);
        Ok(BuildReported { state: state.build.state, lines })
    }
}

impl Serves<FinishBuild> for Platform {
    async fn serve(&self, cx: &Call, p: FinishBuild) -> Result<Build, Fault> {
        let made = match (p.artifact_id, p.error) {
            (Some(artifact), None) => {
                let found = read_upload(&self.world, artifact)?;
                let artifact = &found.state.artifact;
                if artifact.provenance.build_id != Some(p.build_id)
                    || artifact.state != ArtifactState::Verified
                {
                    return Err(Fault::NotNow(
                        "this is not a verified artifact of this build; upload it with `build`, \
                         and finalize it"
                            .into(),
                    ));
                }
                Ok(artifact.id)
            }
            (None, Some(why)) => Err(why.as_str().to_owned()),
            _ => return Err(Fault::invalid("artifactId", "give it, or else error")),
        };
        let command = Command::Finish { runner: runner(self, &p.runner), made };
        cx.to::<Builds>(p.build_id).change(command, show).await
    }
}
