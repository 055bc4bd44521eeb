//! Reports of the host of a repository: pushes, and changes of runs.

use crate::{
    call::platform::Platform,
    functions::delivery::repositories::push::{Proof, take_push},
    kinds::{
        delivery::{
            builds::{Builds, Command, ci},
            repositories,
        },
        world::World,
    },
};
use contract::{AppId, Fault, repositories::PushReceived};
use serde::Deserialize;

/// The part of GitHub's event `workflow_run` that counts.
#[derive(Deserialize)]
struct Report {
    workflow_run: Option<WorkflowRunBody>,
}

#[derive(Deserialize)]
struct WorkflowRunBody {
    id: u64,
}

/// Takes a report. A push begins a check of the repository; a change of a run lets its build
/// look at the run now instead of later.
pub async fn take_report(
    platform: &Platform,
    app: AppId,
    proof: &Proof,
    body: &[u8],
) -> Result<PushReceived, Fault> {
    let received = take_push(platform, app, proof, body).await?;
    let report = serde_json::from_slice::<Report>(body).ok();
    if let Some(WorkflowRunBody { id }) = report.and_then(|report| report.workflow_run) {
        run_changed(&platform.world, app, id).await?;
    }
    Ok(received)
}

async fn run_changed(world: &World, app: AppId, run: u64) -> Result<(), Fault> {
    let store = &world.store;
    let Some((_, repository)) = repositories::connected(store, app)? else { return Ok(()) };
    let ci = world.ports.ci.as_ref();
    let name = ci.and_then(|ci| ci.repository(&repository.source.url));
    let Some(name) = name else { return Ok(()) };
    match ci::build_of_run(store, name.as_str(), run)? {
        Some((id, build)) if build.build.app_id == app => {
            world.to::<Builds>(id).ask(Command::RunChanged { run }).await.map(|_| ())
        }
        _ => Ok(()),
    }
}
