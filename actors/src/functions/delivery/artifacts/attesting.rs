//! Attestations of artifacts: a CI run that the app trusts says that it built the file.

use crate::{
    functions::delivery::trusted_publishers::exchange::publisher_of, kinds::world::World,
    ports::attestations::Attested,
};
use contract::{AppId, Fault, PublisherId, Sha256, artifacts::Attestation};
use serde_json::{Map, Value};

/// Verifies the attestation of a file. It must come from a run that a trusted publisher of the
/// app trusts: anybody can attest anything in a repository of their own. Returns the publisher
/// too.
pub(super) async fn check_attestation(
    world: &World,
    app: AppId,
    sha256: &Sha256,
    bundle: &Map<String, Value>,
) -> Result<(PublisherId, Attestation), Fault> {
    let bundle = serde_json::to_vec(bundle).map_err(|_| Fault::Internal)?;
    let attested = world.ports.attestations.verify(bundle, sha256).await.map_err(refused)?;
    let (publisher, _) = publisher_of(world, &attested.run, app)?.map_err(refused)?;
    let Attested { run, signer_workflow, runner_environment, run_url, signed_at } = attested;
    let attestation = Attestation {
        repository: run.repository,
        repository_id: run.repository_id,
        repository_owner_id: run.repository_owner_id,
        workflow: run.workflow_ref,
        signer_workflow,
        commit: run.commit,
        git_ref: run.git_ref,
        run_url: run_url.parse().ok(),
        runner_environment,
        signed_at,
    };
    Ok((publisher, attestation))
}

fn refused(why: String) -> Fault {
    Fault::NotAsDeclared(format!("the attestation proves nothing here: {why}"))
}
