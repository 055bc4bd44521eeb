//! What a state or a note means for the person who looks, shown as a colour and a mark beside its
//! words. Every state has a tone: without one, it does not compile here.

use contract::{
    artifacts::ArtifactState,
    backups::{BackupState, RestoreState},
    builds::BuildState,
    certificates::CertificateState,
    checkouts::{CheckoutState, DisputeState, SubscriptionStatus},
    deployments::{DeploymentState, StepState},
    domains::DomainState,
    endpoint::ReadyState,
    engines::EngineState,
    image_builds::BuildJobState,
    images::ImageVersionState,
    instances::{InstanceState, ServiceHealth, ServiceState},
    operators::{ActorState, AttentionReason},
    releases::{PublicationState, ReleaseState},
    repositories::Severity,
    templates::TemplateStatus,
    webhooks::DeliveryState,
};

/// What a state or a note means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// It is as the person wants it.
    Good,
    /// Work on it is under way.
    Busy,
    /// It works, and somebody should look.
    Warn,
    /// It failed.
    Bad,
    /// Nothing happens.
    Idle,
}

impl Tone {
    /// The class in style.css.
    pub const fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Busy => "busy",
            Tone::Warn => "warn",
            Tone::Bad => "bad",
            Tone::Idle => "idle",
        }
    }
}

/// A state that pages show.
pub trait Toned {
    fn tone(&self) -> Tone;
}

impl<T: Toned> Toned for &T {
    fn tone(&self) -> Tone {
        (**self).tone()
    }
}

/// The tone of a state. It may be a reference, as templates pass it.
pub fn of(state: impl Toned) -> Tone {
    state.tone()
}

/// Each row names all values of a state by their tone.
macro_rules! tones {
    ($($state:ident { $($tone:ident: $first:ident $(| $other:ident)*),+ $(,)? })+) => {
        $(impl Toned for $state {
            fn tone(&self) -> Tone {
                match self {
                    $($state::$first $(| $state::$other)* => Tone::$tone,)+
                }
            }
        })+
    };
}

tones! {
    ActorState { Good: Running, Busy: Restarting, Bad: GaveUp | Stuck }
    ArtifactState {
        Good: Verified,
        Busy: Pending | Verifying,
        Bad: Rejected,
        Idle: Expired | Deleted,
    }
    AttentionReason {
        Warn: DiskNearlyFull | ClockJumped | BackupNotVerified | InstanceOutdated
            | CredentialExpiring | Orphans,
        Bad: StoreReadOnly | EngineUnreachable | EgressOpen | ActorGaveUp | ActorStuck | CheckoutNotSettled
            | CrashLoop | InstanceFailed | WorkStuck | WorkFailed | PublicationFailed | BackupFailed
            | CertificateFailing,
    }
    BackupState { Good: Ready, Busy: Running, Bad: Failed }
    BuildJobState {
        Good: Succeeded,
        Busy: Queued | Building | Pushing,
        Bad: Failed,
        Idle: Cancelled,
    }
    BuildState {
        Good: Succeeded,
        Busy: Queued | Dispatched | Running,
        Bad: Failed | TimedOut,
        Idle: Cancelled,
    }
    CertificateState { Good: Valid, Busy: Ordering, Warn: RenewalFailing, Bad: Failing }
    CheckoutState {
        Good: Paid | Settled,
        Busy: Created | OrderBuilding | Initialized | AwaitingPayment | Settling,
        Bad: Failed | AmountMismatch,
        Idle: Abandoned | Expired,
    }
    DomainState { Good: Verified, Busy: Pending, Bad: Failed, Idle: Taken }
    DeliveryState { Good: Succeeded, Busy: Pending, Bad: Failed }
    DeploymentState {
        Good: Live,
        Busy: Queued | Building | Deploying | Verifying | Cancelling,
        Bad: Failed,
        Idle: Superseded | Cancelled | RolledBack,
    }
    DisputeState { Good: Won, Warn: Open, Bad: Lost }
    EngineState { Good: Reachable, Busy: Unknown, Bad: Unreachable }
    ImageVersionState { Good: Active, Warn: Deprecated }
    InstanceState {
        Good: Running,
        Busy: Provisioning | Starting | Stopping | Restarting | Deleting,
        Warn: Degraded,
        Bad: Failed,
        Idle: Stopped | Deleted,
    }
    PublicationState {
        Good: Live,
        Busy: Queued | Uploading | Processing | InReview,
        Warn: Halted,
        Bad: Failed,
    }
    ReadyState { Good: Ready, Busy: Starting, Warn: Degraded }
    ReleaseState {
        Good: Published,
        Busy: Publishing,
        Warn: PartiallyPublished,
        Bad: Failed,
        Idle: Draft | Superseded | RolledBack,
    }
    RestoreState { Good: Succeeded, Busy: Running, Bad: Failed }
    ServiceHealth { Good: Healthy, Busy: Starting, Bad: Unhealthy, Idle: Unknown }
    ServiceState { Good: Running, Busy: Created, Idle: Missing | Exited }
    Severity { Warn: Warning, Bad: Error, Idle: Info }
    StepState { Good: Succeeded, Busy: Running, Bad: Failed, Idle: Pending | Skipped }
    SubscriptionStatus { Good: Active, Busy: Incomplete, Warn: Ending, Bad: PastDue, Idle: Ended }
    TemplateStatus { Good: Published, Idle: Draft | Archived }
}
