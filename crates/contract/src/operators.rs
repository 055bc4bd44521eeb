//! What the platform's own administrators see and do.

use crate::{
    EventId, Name, Page, Timestamp, UserId,
    authentication::{Tier, User},
    organizations::Organization,
    page::*,
    projects::Project,
    text::Query,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Operators";

    /// List the actors that live in memory, with their health.
    "svc_admin_getActors": GetActors {
        /// Only this kind, such as `release`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<Name>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<ActorState>,
        /// Only those whose id contains this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Name>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> ActorList { who: SuperAdmin, effect: Read }

    /// Restart an actor from its stored state, parked ones too.
    "svc_admin_restartActor": RestartActor { actor_id: Name } -> Actor
    { who: SuperAdmin, effect: Change, errors: [NotFound "no such actor is in memory"] }

    /// Set the tier of an account. It holds from the account's next call.
    "svc_admin_setTier": SetTier { user_id: UserId, tier: Tier } -> User
    { who: SuperAdmin, effect: Change, errors: [NotFound "no such user"] }

    /// List the users of the platform.
    ///
    /// The whole e-mail address of an account finds it at once. A page may hold fewer users than
    /// asked for, and the list still go on: `nextCursor` says so.
    "svc_admin_getUsers": GetUsers {
        /// Only those whose e-mail or name contains this, or whose id this is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<User> { who: SuperAdmin, effect: Read }

    /// List the organizations of the platform.
    ///
    /// A page may hold fewer than asked for, and the list still go on: `nextCursor` says so.
    "svc_admin_getOrganizations": GetOrganizations {
        /// Only those whose name contains this, or whose id this is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Organization> { who: SuperAdmin, effect: Read }

    /// List the projects of the platform.
    ///
    /// A page may hold fewer than asked for, and the list still go on: `nextCursor` says so.
    "svc_admin_getProjects": GetAllProjects {
        /// Only those whose name contains this, or whose id this is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Project> { who: SuperAdmin, effect: Read }

    /// Read the audit log: every change, and every address for a download.
    ///
    /// A page may hold fewer events than asked for, and the log still go on: `nextCursor` says so.
    "svc_admin_getAuditLog": GetAuditLog {
        /// Only what this user did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_id: Option<UserId>,
        /// Only calls of this function.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<Name>,
        /// Only what was done to the object with this id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource: Option<Name>,
        /// Only what was done at this moment or later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<AuditEvent> { who: SuperAdmin, effect: Read }
}

records! {
    /// Actors that live in memory.
    pub struct ActorList {
        items: Vec<Actor>,
        /// How many there are in all.
        total: u64,
        /// Where the next page starts; null on the last one.
        next_cursor: Option<Cursor>,
    }

    /// An actor and its health.
    pub struct Actor {
        id: String,
        kind: String,
        /// The id of the resource it owns.
        resource: Option<String>,
        state: ActorState,
        mailbox: Mailbox,
        /// Messages handled since it came into memory.
        handled: u64,
        /// How often it was restarted.
        restarts: u64,
        last_panic: Option<Panic>,
        /// What it does now.
        handling: Option<Handling>,
        uptime_ms: u64,
    }

    /// How full a mailbox is.
    pub struct Mailbox { length: u64, capacity: u64 }

    /// The last time an actor panicked.
    pub struct Panic { at: Timestamp, message: String }

    /// What an actor does now.
    pub struct Handling { message: String, elapsed_ms: u64 }

    /// Something that somebody changed, or asked to download.
    pub struct AuditEvent {
        id: EventId,
        at: Timestamp,
        /// The function that was called.
        function: String,
        /// The user who called it, or for whom a token did; null for nobody and the master key.
        user_id: Option<UserId>,
        /// How the caller proved who it is.
        via: Via,
        /// The address it called from.
        address: String,
        /// The object that changed.
        resource: String,
        request_id: String,
    }
}

/// How a caller proved who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Via {
    /// Not at all.
    Nobody,
    /// With a session.
    Session,
    /// With a deploy token.
    DeployToken,
    /// With the master key.
    MasterKey,
    /// The service itself, going on with something.
    Service,
}

/// The states of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ActorState {
    /// Takes messages.
    Running,
    /// Pauses after a panic.
    Restarting,
    /// Panicked too often; an operator can restart it.
    GaveUp,
    /// Has been at one message for too long.
    Stuck,
}
