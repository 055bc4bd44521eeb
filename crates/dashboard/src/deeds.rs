//! What calls did, in words that follow the name of the object: "1.5.0 published".

use crate::tone::Tone::{self, Bad, Busy, Good, Idle, Warn};
use messages::{Messages, Sentence};

/// What a call of this function did, and how good the news is. Without a row, it did what the function is
/// called: its first sentence without the stop.
pub fn of(say: &Messages, function: &str) -> (String, Tone) {
    if let Some((_, words, tone)) = row(function) {
        return (words(*say), *tone);
    }
    let spec = contract::all().find(|spec| spec.name == function).map(|spec| spec.summary());
    let endpoint = || contract::endpoint::all().find(|endpoint| endpoint.name == function);
    let summary = spec.or_else(|| endpoint().map(|endpoint| endpoint.summary()));
    let summary = summary.unwrap_or_else(|| function.to_owned());
    let sentence = summary.split_once(". ").map_or(summary.as_str(), |(first, _)| first);
    (sentence.trim_end_matches('.').to_lowercase(), Tone::Idle)
}

fn row(function: &str) -> Option<&'static Deed> {
    DEEDS.iter().find(|(name, ..)| *name == function)
}

/// A function, what a call of it did, and how good the news is.
type Deed = (&'static str, Sentence, Tone);

const DEEDS: &[Deed] = &[
    ("createApp", Messages::deed_made, Good),
    ("updateApp", Messages::deed_changed, Idle),
    ("svc_setChannelPolicy", Messages::deed_got_a_rule_for_a_channel, Idle),
    ("deleteApp", Messages::deed_deleted, Bad),
    ("svc_createProject", Messages::deed_made, Good),
    ("svc_updateProject", Messages::deed_changed, Idle),
    ("svc_deleteProject", Messages::deed_deleted, Bad),
    ("createOrganization", Messages::deed_made, Good),
    ("updateOrganization", Messages::deed_renamed, Idle),
    ("deleteOrganization", Messages::deed_deleted, Bad),
    ("inviteMember", Messages::deed_has_an_invitation_out, Idle),
    ("svc_revokeInvitation", Messages::deed_withdrew_an_invitation, Idle),
    ("acceptInvitation", Messages::deed_has_a_new_member, Good),
    ("updateMember", Messages::deed_changed_a_member, Idle),
    ("removeMember", Messages::deed_lost_a_member, Warn),
    ("finalizeArtifact", Messages::deed_uploaded, Good),
    ("svc_deleteArtifact", Messages::deed_deleted, Idle),
    ("svc_getArtifactDownloadUrl", Messages::deed_downloaded, Idle),
    ("svc_createRelease", Messages::deed_drafted, Idle),
    ("svc_updateRelease", Messages::deed_changed, Idle),
    ("svc_deleteRelease", Messages::deed_deleted, Idle),
    ("svc_checkRelease", Messages::deed_looked_up_at_the_stores, Idle),
    ("svc_publishRelease", Messages::deed_sent_to_its_targets, Good),
    ("svc_setRollout", Messages::deed_to_be_given_to_more_users, Good),
    ("svc_haltRollout", Messages::deed_halted, Warn),
    ("svc_resumeRollout", Messages::deed_resumed, Good),
    ("svc_rollbackRelease", Messages::deed_rolled_back, Warn),
    ("svc_connectRepository", Messages::deed_connected_to_a_repository, Good),
    ("svc_checkRepository", Messages::deed_had_its_repository_checked, Idle),
    ("svc_disconnectRepository", Messages::deed_lost_its_repository, Idle),
    ("svc_build_dispatch", Messages::deed_build_begun, Busy),
    ("svc_triggerBuild", Messages::deed_build_begun, Busy),
    ("svc_triggerMobileWorkflow", Messages::deed_build_begun, Busy),
    ("svc_cancelBuild", Messages::deed_cancelled, Idle),
    ("svc_claimBuild", Messages::deed_taken_by_a_runner, Busy),
    ("svc_finishBuild", Messages::deed_ended, Idle),
    ("svc_reportBuild", Messages::deed_went_on, Idle),
    ("svc_setCredential", Messages::deed_stored, Good),
    ("svc_updateCredential", Messages::deed_changed, Idle),
    ("svc_checkCredential", Messages::deed_checked, Idle),
    ("svc_deleteCredential", Messages::deed_deleted, Warn),
    ("svc_createDeployToken", Messages::deed_made, Idle),
    ("svc_revokeDeployToken", Messages::deed_revoked, Warn),
    ("svc_addTrustedPublisher", Messages::deed_trusts_a_workflow, Idle),
    ("svc_removeTrustedPublisher", Messages::deed_trusts_a_workflow_no_more, Idle),
    ("exchangeIdentity", Messages::deed_reached_by_a_trusted_workflow, Idle),
    ("svc_createWebhook", Messages::deed_has_a_new_webhook, Idle),
    ("svc_updateWebhook", Messages::deed_changed_a_webhook, Idle),
    ("svc_deleteWebhook", Messages::deed_lost_a_webhook, Idle),
    ("svc_rotateWebhookSecret", Messages::deed_has_a_new_webhook_secret, Idle),
    ("svc_testWebhook", Messages::deed_tested_a_webhook, Idle),
    ("svc_redeliverWebhook", Messages::deed_sent_an_event_again, Idle),
    ("svc_createBackendInstance", Messages::deed_is_being_made, Busy),
    ("svc_startBackendInstance", Messages::deed_started, Good),
    ("svc_stopBackendInstance", Messages::deed_stopped, Warn),
    ("svc_restartBackendInstance", Messages::deed_restarted, Busy),
    ("svc_updateBackendInstance", Messages::deed_changed, Idle),
    ("svc_deleteBackendInstance", Messages::deed_deleted, Bad),
    ("svc_undeleteBackendInstance", Messages::deed_brought_back, Good),
    ("svc_deployMarketServer", Messages::deed_is_being_made, Busy),
    ("svc_deployMarketDashboard", Messages::deed_got_a_dashboard, Good),
    ("svc_deployMarketStorefront", Messages::deed_got_a_storefront, Good),
    ("svc_startMarketServer", Messages::deed_started, Good),
    ("svc_stopMarketServer", Messages::deed_stopped, Warn),
    ("svc_restartMarketServer", Messages::deed_restarted, Busy),
    ("svc_getInstanceSecrets", Messages::deed_showed_its_secrets, Warn),
    ("svc_runCloudFunction", Messages::deed_ran_a_cloud_function, Idle),
    ("triggerDeployment", Messages::deed_begun, Busy),
    ("cancelDeployment", Messages::deed_cancelled, Idle),
    ("rollbackDeployment", Messages::deed_begun_to_an_earlier_state, Warn),
    ("svc_addDomain", Messages::deed_has_a_new_domain, Idle),
    ("svc_verifyDomain", Messages::deed_is_being_verified, Busy),
    ("svc_removeDomain", Messages::deed_has_a_domain_less, Idle),
    ("svc_createDocumentDbBackup", Messages::deed_begun, Busy),
    ("svc_createSqlDbBackup", Messages::deed_begun, Busy),
    ("svc_getBackupDownloadUrl", Messages::deed_downloaded, Warn),
    ("svc_restoreBackup", Messages::deed_is_being_restored, Warn),
    ("svc_verifyBackup", Messages::deed_is_being_verified, Busy),
    ("svc_deleteBackup", Messages::deed_deleted, Idle),
    ("svc_scheduleBackups", Messages::deed_is_backed_up_on_a_schedule, Good),
    ("svc_unscheduleBackups", Messages::deed_is_backed_up_on_no_schedule, Warn),
    ("svc_checkout_create", Messages::deed_opened_a_checkout, Idle),
    ("svc_settleCheckout", Messages::deed_a_checkout_is_being_settled, Busy),
];

#[cfg(test)]
mod tests {
    use super::{DEEDS, row};
    use contract::{Effect, Standing};

    /// Changes of the account of the caller, and a failpoint.
    const ELSEWHERE: [&str; 6] = [
        "updateProfile",
        "changePassword",
        "svc_changeEmail",
        "logout",
        "svc_revokeSession",
        "svc_test_panic",
    ];

    #[test]
    fn each_change_in_an_organization_has_words() {
        let is_of_a_team = |who| {
            !matches!(
                who,
                Standing::Public | Standing::SuperAdmin | Standing::Admin | Standing::Master
            )
        };
        let changes = contract::all().filter(|spec| spec.effect != Effect::Read);
        let without = changes.filter(|spec| is_of_a_team(spec.who) && row(spec.name).is_none());
        let names: Vec<_> =
            without.map(|spec| spec.name).filter(|name| !ELSEWHERE.contains(name)).collect();
        assert_eq!(names, Vec::<&str>::new());
        let endpoints = || contract::endpoint::all().map(|endpoint| endpoint.name);
        let is_known = |name: &str| {
            contract::all().any(|spec| spec.name == name) || endpoints().any(|e| e == name)
        };
        let rows = DEEDS.iter().map(|(name, ..)| *name);
        assert_eq!(rows.filter(|name| !is_known(name)).collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
