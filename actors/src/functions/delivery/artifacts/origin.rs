//! Where an upload comes from: what the service knows, what a CI job proves, and what the uploader
//! says.

use crate::{
    call::{context::Call, platform::Platform},
    functions::delivery::builds::runners::build_of,
    kinds::{delivery::builds, people::tokens::Identity, world::World},
};
use contract::{
    BuildId, Fault, UserId,
    artifacts::{Provenance, ProvenancePath, Trust},
    endpoint::UploadUrlRequest,
    trusted_publishers::CiRun,
};

/// Where an upload comes from.
pub(super) struct Origin {
    pub provenance: Provenance,
    pub trust: Trust,
}

impl Origin {
    pub fn build(&self) -> Option<BuildId> {
        self.provenance.build_id
    }
}

/// The origin of an upload. Fails if it names a build that its runner does not have.
pub(super) fn origin_of(
    platform: &Platform,
    cx: &Call,
    request: &UploadUrlRequest,
) -> Result<Origin, Fault> {
    let by_token = cx.caller.is_token();
    let by = cx.caller.user.as_ref().map(|user| user.id);
    let identity = cx.caller.token().and_then(|token| token.identity.as_ref());
    let trust = match (by_token, identity) {
        (_, Some(_)) => Trust::Oidc,
        (true, None) => Trust::Token,
        (false, None) => Trust::Unverified,
    };
    let provenance = if let Some(named) = &request.build {
        let build = build_of(platform, request.app_id, named)?;
        if build.build.platform != request.platform {
            return Err(Fault::invalid("platform", "is not the platform of the build"));
        }
        known(&build.state, by)
    } else if let Some(Identity { run, .. }) = identity {
        match build_of_run(&platform.world, request, &run.repository, &run.run_id)? {
            Some(build) if is_of_own_workflow(&build) => {
                Provenance { commit: Some(run.commit.clone()), ..known(&build, by) }
            }
            Some(build) => known(&build, by),
            None => proven(request, run, by),
        }
    } else {
        let said = claimed(request, by, by_token);
        let run = said.run_url.as_ref().filter(|_| by_token).and_then(|url| run_in(url.as_str()));
        let build =
            run.map(|(of, run)| build_of_run(&platform.world, request, of, run)).transpose()?;
        match build.flatten().filter(|build| build.build.run_url == said.run_url) {
            Some(build) => Provenance { claimed: true, ..known(&build, by) },
            None => said,
        }
    };
    Ok(Origin { provenance, trust })
}

/// The build that is under way in a run of a CI, if the upload may be its artifact.
fn build_of_run(
    world: &World,
    request: &UploadUrlRequest,
    repository: &str,
    run: &str,
) -> Result<Option<builds::State>, Fault> {
    let found = builds::build_of_run(&world.store, repository, run)?;
    let found = found.map(|(_, seen)| seen.state.clone());
    Ok(found.filter(|build| {
        build.build.app_id == request.app_id
            && build.build.platform == request.platform
            && !build.build.state.is_final()
    }))
}

/// Whether the run of a build is one of the app's own repository, and builds its commit.
fn is_of_own_workflow(build: &builds::State) -> bool {
    build.run.as_ref().is_some_and(|run| run.workflow == builds::Workflow::Own)
}

/// The repository and the number of a run, from the address of its page, such as
/// `https://github.com/acme/app/actions/runs/7`.
fn run_in(url: &str) -> Option<(&str, &str)> {
    let (page, run) = url.split_once("/actions/runs/")?;
    let (_, path) = page.split_once("://")?;
    let (_, repository) = path.split_once('/')?;
    Some((repository, run.trim_end_matches('/')))
}

/// The provenance of the artifact of a build, as the service knows it.
fn known(build: &builds::State, uploaded_by: Option<UserId>) -> Provenance {
    let builds::State { build, plan, .. } = build;
    Provenance {
        path: build.execution_path,
        uploaded_by,
        repository: plan.as_ref().map(|plan| plan.url.as_str().to_owned()),
        commit: build.commit.clone(),
        git_ref: build.git_ref.clone(),
        run_url: build.run_url.clone(),
        profile: Some(build.profile.clone()),
        build_id: Some(build.id),
        claimed: false,
    }
}

/// The provenance of the artifact of a CI job, as its identity token proves it.
fn proven(request: &UploadUrlRequest, run: &CiRun, uploaded_by: Option<UserId>) -> Provenance {
    Provenance {
        path: ProvenancePath::ExternalCi,
        uploaded_by,
        repository: Some(run.repository.clone()),
        commit: Some(run.commit.clone()),
        git_ref: Some(run.git_ref.clone()),
        run_url: run.run_url(),
        profile: request.profile.clone(),
        build_id: None,
        claimed: false,
    }
}

/// The provenance that the uploader declares.
fn claimed(request: &UploadUrlRequest, uploaded_by: Option<UserId>, by_token: bool) -> Provenance {
    let default_path =
        if by_token { ProvenancePath::ExternalCi } else { ProvenancePath::ManualUpload };
    let (path, repository, commit, git_ref, run_url) = match request.provenance.clone() {
        Some(d) => (d.path, d.repository, d.commit, d.git_ref, d.run_url),
        None => (default_path, None, None, None, None),
    };
    Provenance {
        path,
        uploaded_by,
        repository: repository.map(String::from),
        commit: commit.map(String::from),
        git_ref: git_ref.map(String::from),
        run_url,
        profile: request.profile.clone(),
        build_id: None,
        claimed: true,
    }
}
