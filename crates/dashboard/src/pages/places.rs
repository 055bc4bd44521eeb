//! Where things have their page.

use contract::{
    AppId, ArtifactId, BackupId, BuildId, CredentialId, DeploymentId, Id, InstanceId,
    OrganizationId, ProjectId, ReleaseId, TokenId, WebhookId,
    operators::{Attention, AttentionReason},
};
use messages::Messages;

/// The page of an object, or the one that lists it. `None`: it has none.
pub fn of(id: &str, app: Option<AppId>) -> Option<String> {
    let kind = id.split_once('_').map(|(kind, _)| kind)?;
    let of_app = |tab: &str| app.map(|app| format!("/apps/{app}{tab}"));
    match kind {
        AppId::PREFIX => Some(format!("/apps/{id}")),
        ArtifactId::PREFIX => Some(format!("/artifacts/{id}")),
        BuildId::PREFIX => Some(format!("/builds/{id}")),
        DeploymentId::PREFIX => Some(format!("/deployments/{id}")),
        InstanceId::PREFIX => Some(format!("/instances/{id}")),
        OrganizationId::PREFIX => Some(format!("/organizations/{id}")),
        ProjectId::PREFIX => Some(format!("/projects/{id}")),
        ReleaseId::PREFIX => Some(format!("/releases/{id}")),
        WebhookId::PREFIX => Some(format!("/webhooks/{id}")),
        CredentialId::PREFIX => of_app("/credentials"),
        TokenId::PREFIX => of_app("/access"),
        _ => of_app(""),
    }
}

/// What an object is, by its id, such as `A release`: for one that is gone, or has no name.
pub fn kind(say: &Messages, id: &str) -> Option<String> {
    Some(match id.split_once('_').map_or("", |(kind, _)| kind) {
        AppId::PREFIX => say.an_app(),
        ArtifactId::PREFIX => say.an_artifact(),
        BackupId::PREFIX => say.a_backup(),
        BuildId::PREFIX => say.a_build(),
        CredentialId::PREFIX => say.a_credential(),
        DeploymentId::PREFIX => say.a_deployment(),
        InstanceId::PREFIX => say.an_instance(),
        OrganizationId::PREFIX => say.an_organization(),
        ProjectId::PREFIX => say.a_project(),
        ReleaseId::PREFIX => say.a_release(),
        TokenId::PREFIX => say.a_deploy_token(),
        WebhookId::PREFIX => say.a_webhook(),
        _ => return None,
    })
}

/// The page on which a person can do something about an entry, and what its link says.
pub fn remedy(say: &Messages, entry: &Attention) -> Option<(String, String)> {
    let subject = entry.subject.as_deref().unwrap_or_default();
    if entry.reason == AttentionReason::CheckoutNotSettled {
        return Some((format!("/checkouts/{subject}"), say.open_the_checkout()));
    }
    let label = match subject.split_once('_').map(|(kind, _)| kind) {
        Some(InstanceId::PREFIX) => say.open_the_instance(),
        Some(DeploymentId::PREFIX) => say.open_the_deployment(),
        Some(BuildId::PREFIX) => say.open_the_build(),
        Some(ReleaseId::PREFIX) => say.open_the_release(),
        Some(CredentialId::PREFIX) => say.open_the_credentials(),
        _ => return entry.app_id.map(|app| (format!("/apps/{app}"), say.open_the_app())),
    };
    of(subject, entry.app_id).map(|address| (address, label))
}
