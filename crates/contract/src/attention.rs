//! Why something needs an operator, and what can be done about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why something needs the attention of an operator, the most urgent first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum AttentionReason {
    /// The store takes no changes.
    StoreReadOnly,
    /// The disk of the store has little space left.
    DiskNearlyFull,
    /// The clock jumped, so nothing is deleted by time.
    ClockJumped,
    /// The container engine does not answer.
    EngineUnreachable,
    /// What instances reach is not restricted, so none is started.
    EgressOpen,
    /// An actor panicked too often, and waits for a restart.
    ActorGaveUp,
    /// An actor has handled one message for too long.
    ActorStuck,
    /// Money arrived, and is not settled.
    CheckoutNotSettled,
    /// An actor or a container restarts again and again.
    CrashLoop,
    /// An instance did not start or did not stay up.
    InstanceFailed,
    /// Work passed its deadline, and nothing happened.
    WorkStuck,
    /// The last build or deployment of its kind failed.
    WorkFailed,
    /// A target refused the last release of a channel.
    PublicationFailed,
    /// The last backup of a database failed.
    BackupFailed,
    /// No recent backup of a database is verified.
    BackupNotVerified,
    /// The server has no certificate for a host name, or could not renew one.
    CertificateFailing,
    /// A security advisory concerns the image of an instance.
    InstanceOutdated,
    /// A credential has expired, or expires within 30 days.
    CredentialExpiring,
    /// Containers belong to no instance.
    Orphans,
}

impl AttentionReason {
    /// The reason in the words of pages and terminals.
    pub const fn label(self) -> &'static str {
        match self {
            AttentionReason::StoreReadOnly => "Store takes no changes",
            AttentionReason::DiskNearlyFull => "Disk nearly full",
            AttentionReason::ClockJumped => "Clock jumped",
            AttentionReason::EngineUnreachable => "Engine unreachable",
            AttentionReason::EgressOpen => "Open egress",
            AttentionReason::ActorGaveUp => "Parked actor",
            AttentionReason::ActorStuck => "Stuck actor",
            AttentionReason::CheckoutNotSettled => "Unsettled payment",
            AttentionReason::CrashLoop => "Crash loop",
            AttentionReason::InstanceFailed => "Failed instance",
            AttentionReason::WorkStuck => "Stuck work",
            AttentionReason::WorkFailed => "Failed work",
            AttentionReason::PublicationFailed => "Refused release",
            AttentionReason::BackupFailed => "Failed backup",
            AttentionReason::BackupNotVerified => "Unverified backup",
            AttentionReason::CertificateFailing => "Failing certificate",
            AttentionReason::InstanceOutdated => "Outdated instance",
            AttentionReason::CredentialExpiring => "Expiring credential",
            AttentionReason::Orphans => "Orphaned containers",
        }
    }
}

/// The one thing to do about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AttentionAction {
    /// Call `svc_admin_restartActor`.
    RestartActor,
    /// Call `svc_settleCheckout`.
    SettleCheckout,
    /// Call `svc_verifyBackup`.
    VerifyBackup,
    /// Look at the app.
    OpenApp,
    /// Look at this machine: no function helps.
    CheckMachine,
    /// Wait: the service does it by itself.
    Wait,
}
