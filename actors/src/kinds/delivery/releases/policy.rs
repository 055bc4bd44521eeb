//! Decides whether a channel takes an artifact. Pure.

use contract::{
    Fault,
    apps::ChannelPolicy,
    artifacts::{Artifact, Trust},
};

/// Refuses an artifact that the policy of the channel does not allow.
pub fn check(policy: &ChannelPolicy, artifact: &Artifact) -> Result<(), Fault> {
    let ChannelPolicy { channel, minimum_trust, signer, attested_by } = policy;
    let refused = |wants: String, has: String| {
        Err(Fault::NotNow(format!(
            "the channel {channel} takes only artifacts {wants}; {} {has}",
            artifact.id
        )))
    };
    if let Some(least) = minimum_trust.filter(|least| artifact.trust < *least) {
        let (wants, has) = (name(least), name(artifact.trust));
        return refused(format!("with the trust {wants} or more"), format!("has the trust {has}"));
    }
    let signed = artifact.signer.as_ref().map(|signer| &signer.sha256);
    if let Some(wanted) = signer.as_ref().filter(|wanted| signed != Some(wanted)) {
        let has = signed.map_or("is not signed".into(), |by| format!("is signed with {by}"));
        return refused(format!("signed with the certificate {wanted}"), has);
    }
    let attested = artifact.attestation.as_ref().map(|by| by.signer_workflow.as_str());
    if let Some(wanted) = attested_by.as_ref().filter(|wanted| !is_of(wanted.as_str(), attested)) {
        let has = attested.map_or("is not attested".into(), |by| format!("is attested by {by}"));
        return refused(format!("attested by {wanted}"), has);
    }
    Ok(())
}

/// Whether a workflow with its reference is the wanted one. One that is wanted without a reference
/// may have any.
fn is_of(wanted: &str, workflow: Option<&str>) -> bool {
    let path = workflow.and_then(|workflow| workflow.split_once('@')).map(|(path, _)| path);
    workflow == Some(wanted) || path == Some(wanted)
}

fn name(trust: Trust) -> &'static str {
    match trust {
        Trust::Unverified => "unverified",
        Trust::Token => "token",
        Trust::Oidc => "oidc",
        Trust::Attested => "attested",
    }
}
