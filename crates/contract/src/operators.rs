//! Functions for the administrators of the platform.

use crate::{
    AppId, Email, EventId, Name, NewName, OrganizationId, Page, ProjectId, Timestamp, UserId,
    authentication::{Tier, User},
    endpoint::{ClockCheck, Readiness, ReadyState},
    organizations::Organization,
    page::*,
    projects::Project,
    quotas::{Quota, QuotaUse, Unit},
    text::Query,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::attention::{AttentionAction, AttentionReason};

functions! {
    group "Operators";

    /// Read the state of the installation, and what needs the attention of an operator.
    ///
    /// `attention` begins with the most urgent entry, and has at most 200 entries.
    "svc_admin_getOverview": GetOverview {} -> Overview { who: SuperAdmin, effect: Read }

    /// List the actors in memory with their health.
    ///
    /// Where the service has several nodes, these are the actors of the node that answers, and those of
    /// others that are not well.
    "svc_admin_getActors": GetActors {
        /// Return only actors of this kind, such as `release`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<Name>,
        /// Return only actors in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<ActorState>,
        /// Return only actors whose id contains this text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Name>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> ActorList { who: SuperAdmin, effect: Read }

    /// Restart an actor from its stored state. This also restarts a parked actor.
    "svc_admin_restartActor": RestartActor {
        /// The id of the actor, from `svc_admin_getActors`.
        actor_id: Name,
    } -> Actor
    { who: SuperAdmin, effect: Change, errors: [NotFound "no such actor is in memory"] }

    /// Confirm that the clock of the machine is right after a jump.
    ///
    /// After a jump of more than an hour, in either direction, nothing is deleted by time: sessions,
    /// stored replies, uploads, logs, deliveries, and the data of deleted instances. The next minute
    /// deletes what has expired by the clock as it is. Without a call, the service trusts a clock that
    /// has run evenly for 12 hours.
    "svc_admin_confirmClock": ConfirmClock {} -> ClockCheck { who: SuperAdmin, effect: Change }

    /// Set the rate limit tier of an account. It applies from the account's next call.
    "svc_admin_setTier": SetTier { user_id: UserId, tier: Tier } -> User
    { who: SuperAdmin, effect: Change, errors: [NotFound "no such user"] }

    /// List the organizations that use the most of a quota, the largest first.
    "svc_admin_getUsage": GetLargestUsers {
        /// The quota that is compared.
        quota: Quota,
        /// The most organizations that are listed.
        #[serde(default)]
        limit: Limit,
    } -> LargestUsers { who: SuperAdmin, effect: Read, cost: 5 }

    /// Create a user account for somebody else.
    ///
    /// The account has a personal organization and no password. Whoever has the token sets the
    /// password with `resetPassword`, or on the page of the dashboard that `url` names. Only this reply
    /// contains the token. After 7 days, `requestPasswordReset` sends another one.
    "svc_admin_createUser": CreateUser {
        email: Email,
        /// The display name. The default is the part of the e-mail address before the `@`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<NewName>,
    } -> CreatedUser
    { who: SuperAdmin, effect: Change, secret: true, errors: [Exists "an account with this e-mail exists"] }

    /// List the users of the platform.
    ///
    /// A search for a whole e-mail address finds the account at once. A page may have fewer users
    /// than `limit`; there are more as long as `nextCursor` is not null.
    "svc_admin_getUsers": GetUsers {
        /// Return only users whose e-mail or name contains this text, or whose id equals it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<User> { who: SuperAdmin, effect: Read }

    /// List the organizations of the platform.
    ///
    /// A page may have fewer organizations than `limit`; there are more as long as `nextCursor` is
    /// not null.
    "svc_admin_getOrganizations": GetOrganizations {
        /// Return only organizations whose name contains this text, or whose id equals it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Organization> { who: SuperAdmin, effect: Read }

    /// List the projects of the platform.
    ///
    /// A page may have fewer projects than `limit`; there are more as long as `nextCursor` is not
    /// null.
    "svc_admin_getProjects": GetAllProjects {
        /// Return only projects whose name contains this text, or whose id equals it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Project> { who: SuperAdmin, effect: Read }

    /// Read the audit log: all changes, and all requests for a secret or a download URL.
    ///
    /// A page may have fewer events than `limit`; there are more as long as `nextCursor` is not
    /// null.
    "svc_admin_getAuditLog": GetAuditLog {
        /// Return only calls of this user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_id: Option<UserId>,
        /// Return only calls of this function.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<Name>,
        /// Return only events of the object with this id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<Name>,
        /// Return only events at or after this time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<AuditEvent> { who: SuperAdmin, effect: Read }
}

records! {
    /// The organizations that use the most of a quota.
    pub struct LargestUsers {
        /// The quota that was compared.
        quota: Quota,
        /// What the amounts count.
        unit: Unit,
        /// The largest use first. Organizations that use nothing are left out.
        organizations: Vec<QuotaUser>,
        /// The memory and the processors that the instances of everybody are promised, also stopped ones,
        /// and the most that may be promised. Null as the limit until the container engine has said what
        /// its machine has.
        promised: Vec<QuotaUse>,
    }

    /// An organization that uses a quota.
    pub struct QuotaUser {
        organization_id: OrganizationId,
        /// What people call the organization.
        name: Name,
        /// The tier of the owner. It sets the limit.
        tier: Tier,
        /// How much is used.
        used: u64,
        /// The most that the organization may use. Null if there is no limit.
        limit: Option<u64>,
    }

    /// A user whom an operator created.
    pub struct CreatedUser {
        /// The new account, which cannot sign in before its first password is set.
        user: User,
        /// Sets the first password, once.
        token: String,
        /// The page of the dashboard that does so. Null if the service does not know the address at
        /// which others reach its dashboard.
        url: Option<String>,
        /// When the token expires.
        expires_at: Timestamp,
    }

    /// The state of the installation.
    pub struct Overview {
        /// When the state was read.
        at: Timestamp,
        /// The reply of `GET /readyz`.
        readiness: Readiness,
        /// What the store uses on the disk, and what waits in it.
        store: StoreUsage,
        /// The disk of the data directory. Null if the system does not tell.
        disk: Option<DiskUsage>,
        /// The processes of the service: one, or the nodes that share its store.
        nodes: Vec<NodeStatus>,
        /// The actors in memory, by kind, of all nodes.
        actors: Vec<ActorCount>,
        /// What needs the attention of an operator.
        attention: Vec<Attention>,
    }

    /// A process of the service.
    pub struct NodeStatus {
        /// The name of its machine, and the number that the process has there.
        machine: String,
        /// Whether it is the one that answered this call.
        answers: bool,
        /// The status in its `GET /readyz`.
        status: ReadyState,
        /// The version of its program.
        version: String,
        /// When it started.
        started_at: Timestamp,
        /// For how many of the 256 shards of all objects it acts. Null if it is the only node.
        shards: Option<u64>,
        /// For how long its copy of the store has not had all changes, in seconds.
        copy_age: u64,
    }

    /// What the store uses, and what waits in it.
    pub struct StoreUsage {
        /// The size on the disk.
        bytes: u64,
        /// Changes that wait for the disk.
        changes_waiting: u64,
        /// Events that wait for their deliveries to webhooks.
        events_waiting: u64,
    }

    /// The size of a disk, and what is free for the service.
    #[derive(Copy, Eq)]
    pub struct DiskUsage {
        /// The size of the disk, in bytes.
        bytes: u64,
        /// What the service may still write, in bytes.
        free_bytes: u64,
    }

    /// The actors of one kind.
    pub struct ActorCount {
        /// The kind of the actors, such as `release`.
        kind: String,
        /// The number of actors that handle messages.
        running: u64,
        /// The number of actors that pause after a panic.
        restarting: u64,
        /// The number of actors that panicked too often, and wait for an operator.
        gave_up: u64,
        /// The number of actors that have handled one message for more than a minute.
        stuck: u64,
        /// Messages that wait in their mailboxes.
        messages: u64,
        /// How often they were restarted after a panic.
        restarts: u64,
    }

    /// Something that needs the attention of an operator.
    pub struct Attention {
        /// Why it needs attention. The reason decides the place in the list.
        reason: AttentionReason,
        /// The id of the actor or the object. Null if the entry is about the installation.
        subject: Option<String>,
        /// The id of the app that the entry is about. Null if it is not about one app.
        app_id: Option<AppId>,
        /// What is wrong, in a sentence.
        detail: String,
        /// Since when it is so. Null if that is not known.
        since: Option<Timestamp>,
        /// The one thing to do about it.
        action: AttentionAction,
    }

    /// Actors in memory.
    pub struct ActorList {
        items: Vec<Actor>,
        /// The total number of actors in the list.
        total: u64,
        /// The cursor of the next page. Null on the last page.
        next_cursor: Option<Cursor>,
    }

    /// An actor and its health.
    pub struct Actor {
        /// The id of the object that the actor owns, or else the actor's own name.
        id: String,
        /// The kind of the actor, such as `release`.
        kind: String,
        /// The id of the object that the actor owns.
        resource: Option<String>,
        /// Whether the actor works.
        state: ActorState,
        /// The messages that wait for the actor.
        mailbox: Mailbox,
        /// Messages handled since the actor was loaded.
        handled: u64,
        /// How often the actor was restarted after a panic, since it was loaded or an operator
        /// restarted it.
        restarts: u64,
        /// The last panic since the actor was loaded. Null if there was none.
        last_panic: Option<Panic>,
        /// The message that the actor handles at the moment.
        handling: Option<Handling>,
        /// How long it has been running, in milliseconds.
        uptime_ms: u64,
        /// Whether `svc_admin_restartActor` can restart it: the owners of objects, but no other actor.
        restartable: bool,
        /// The machine of the node that has it. Null if that is the node that answered.
        #[serde(default)]
        node: Option<String>,
    }

    /// The messages that wait in a mailbox.
    pub struct Mailbox {
        /// The number of messages that are not handled yet.
        length: u64,
        /// The number of messages that may wait at most. Further calls are refused as busy.
        capacity: u64,
    }

    /// The last panic of an actor.
    pub struct Panic {
        at: Timestamp,
        /// What the program said when it panicked.
        message: String,
    }

    /// A message that an actor handles at the moment.
    pub struct Handling {
        /// The name of the message, such as `Overdue`.
        message: String,
        /// How long the actor has handled it so far, in milliseconds.
        elapsed_ms: u64,
    }

    /// A change, or a request for a download URL.
    pub struct AuditEvent {
        id: EventId,
        at: Timestamp,
        /// The function that was called.
        function: String,
        /// The user who called, in person or with a deploy token. Null for anonymous callers and
        /// for the master key.
        user_id: Option<UserId>,
        /// How the caller authenticated.
        via: Via,
        /// The IP address of the caller.
        address: String,
        /// The id of the object.
        resource: String,
        /// The organization and the project that the object belongs to, where they are known.
        #[serde(default)]
        organization_id: Option<OrganizationId>,
        #[serde(default)]
        project_id: Option<ProjectId>,
        /// The id of the request: `X-Request-Id` of its answer. Empty for `svc admin`.
        request_id: String,
    }
}

/// How a caller authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Via {
    /// Without credentials.
    Nobody,
    /// With the session of a person.
    Session,
    /// With the deploy token of a job or a runner.
    DeployToken,
    /// With the master key of the operator.
    MasterKey,
    /// The service itself, or the command line `svc admin` on its machine.
    Service,
}

/// Whether an actor works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ActorState {
    /// The actor handles messages.
    Running,
    /// The actor pauses after a panic.
    Restarting,
    /// The actor panicked too often. An operator can restart it.
    GaveUp,
    /// The actor has handled one message for too long.
    Stuck,
}

impl ActorState {
    /// The state in the words of pages and terminals.
    pub const fn label(self) -> &'static str {
        match self {
            ActorState::Running => "running",
            ActorState::Restarting => "restarting",
            ActorState::GaveUp => "parked",
            ActorState::Stuck => "stuck",
        }
    }
}
