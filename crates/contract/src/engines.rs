//! Container engines: the machines that have the containers of instances.

use crate::{
    BackupId, EngineId, InstanceId, Name, Timestamp,
    instances::InstanceState,
    page::*,
    ssh::SshHostKey,
    text::{CertificatePem, EngineAddress, PrivateAddress, PrivateKeyPem, Slug},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an engine is labelled with, or an instance asks for.
pub type EngineLabels = BTreeMap<Slug, Slug>;

functions! {
    group "Container engines";

    /// Add a Docker engine of another machine, which is reached over TLS or over ssh.
    ///
    /// The service asks the engine who it is before it adds it. From then on, new instances are placed on the
    /// engine with the most memory left; an instance stays where it was placed. Whoever has the key of the
    /// client has all rights on the engine's machine: it is stored encrypted and never shown.
    "svc_admin_addEngine": AddEngine {
        /// What people call the engine, unique among engines.
        name: Name,
        /// Where its Docker API is: `10.0.0.21:2376` over TLS, or `ssh://docker@10.0.0.21`, for a user who may use
        /// Docker there.
        address: EngineAddress,
        /// The address of its machine on which servers are published, such as `10.0.0.21`. All nodes of the
        /// service must reach it, and nobody else should.
        private_address: PrivateAddress,
        /// Over TLS: the authority that signed the certificate of the engine (`ca.pem`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        authority: Option<CertificatePem>,
        /// Over TLS: the certificate of the client (`cert.pem`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        certificate: Option<CertificatePem>,
        /// Over ssh: the only key that the host may have, as in `/etc/ssh/ssh_host_ed25519_key.pub` without the comment.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host_key: Option<SshHostKey>,
        /// The private key of the client: `key.pem`, or a key of OpenSSH without a pass phrase.
        key: PrivateKeyPem,
        /// What an instance may ask for by the same labels, such as `{"region": "eu"}`.
        #[serde(default, skip_serializing_if = "EngineLabels::is_empty")]
        labels: EngineLabels,
    } -> ContainerEngine { who: SuperAdmin, effect: Change,
        errors: [Exists "an engine of this name, or this engine, was added already", Invalid "the keys do not fit, or the engine refuses them", NotNow "there are 100 engines", Unavailable "the engine does not answer"] }

    /// List the container engines, with their instances and the room that they have.
    ///
    /// The first one is the engine of `SVC_DOCKER_HOST`, whose id is null.
    "svc_admin_getEngines": GetEngines {} -> EngineList { who: SuperAdmin, effect: Read }

    /// Change the name, the labels or the keys of an added engine.
    "svc_admin_updateEngine": UpdateEngine {
        engine_id: EngineId,
        /// The new name. Without it, the name stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Name>,
        /// The new labels. Without them, the labels stay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        labels: Option<EngineLabels>,
        /// The new authority. Over TLS, give all three of `authority`, `certificate` and `key`, or none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        authority: Option<CertificatePem>,
        /// The new certificate of the client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        certificate: Option<CertificatePem>,
        /// The new key of the host. Over ssh, give both `hostKey` and `key`, or none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host_key: Option<SshHostKey>,
        /// The new private key of the client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<PrivateKeyPem>,
    } -> ContainerEngine { who: SuperAdmin, effect: Change,
        errors: [Exists "an engine of this name was added already", Invalid "the keys do not fit, or the engine refuses them", Unavailable "the engine does not answer"] }

    /// Place no more instances on an engine, or place some there again.
    ///
    /// Its instances stay and keep running.
    "svc_admin_drainEngine": DrainEngine {
        /// The engine. Without it, the engine of `SVC_DOCKER_HOST`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        engine_id: Option<EngineId>,
        /// Whether it takes no more instances.
        #[serde(default = "yes")]
        draining: bool,
    } -> ContainerEngine { who: SuperAdmin, effect: Change }

    /// Move an instance to another engine, with its data.
    ///
    /// The call returns at once. While the instance serves, its images are brought to the other engine. Then it
    /// stops, its volumes are copied and compared, and it starts there: it does not serve for as long as that
    /// takes. If that fails, it starts where it was, and `lastError` says why. The volumes at the old engine are
    /// removed after seven days. A move to where the instance is calls off the one that is under way.
    "svc_admin_moveInstance": MoveInstance {
        instance_id: InstanceId,
        /// Where it goes. Without it, the engine of `SVC_DOCKER_HOST`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        engine_id: Option<EngineId>,
    } -> PlacedInstance { who: SuperAdmin, effect: Change,
        errors: [NotFound "no such instance or engine", NotNow "the instance is starting or stopping, or the engine takes no instances or has no room", Unavailable "the engine does not answer"] }

    /// Begin an instance anew on another engine, from a backup, because its own engine is lost.
    ///
    /// What was written since the backup, and the files of its servers that are in no database, stay at the lost
    /// engine. Without `backupId`, the call is refused, and says which verified backup is the newest and from when it
    /// is. If the engine comes back, it finds the instance's containers stopped, and its volumes are kept for seven
    /// days.
    "svc_admin_recoverInstance": RecoverInstance {
        instance_id: InstanceId,
        /// Where it begins anew. Without it, the engine of `SVC_DOCKER_HOST`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        engine_id: Option<EngineId>,
        /// The backup that it begins with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backup_id: Option<BackupId>,
    } -> PlacedInstance { who: SuperAdmin, effect: Change,
        errors: [NotFound "no such instance, engine or backup", NotNow "its engine answers, no backup is named, or the other engine takes no instances or has no room", Unavailable "the other engine does not answer"] }

    /// Forget an engine that has no instance, nor the kept data of a deleted one.
    "svc_admin_removeEngine": RemoveEngine {
        engine_id: EngineId,
        /// Whether its machine is gone for good: the data of instances that were deleted or moved away goes with
        /// it. Refused while the engine answers.
        #[serde(default)]
        lost: bool,
    } -> RemovedEngine
    { who: SuperAdmin, effect: Change, errors: [NotNow "the engine has instances, or the data of some that were deleted or moved away"] }

    /// List the instances of an engine, also deleted ones whose data is kept.
    "svc_admin_getEngineInstances": GetEngineInstances {
        /// The engine. Without it, the engine of `SVC_DOCKER_HOST`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        engine_id: Option<EngineId>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> crate::Page<PlacedInstance> { who: SuperAdmin, effect: Read }
}

fn yes() -> bool {
    true
}

records! {
    /// The container engines.
    pub struct EngineList { items: Vec<ContainerEngine> }

    /// A container engine and its machine.
    pub struct ContainerEngine {
        /// Null for the engine of `SVC_DOCKER_HOST`.
        id: Option<EngineId>,
        /// What people call the engine.
        name: Name,
        /// Where its Docker API is. Null for the engine of `SVC_DOCKER_HOST`.
        address: Option<EngineAddress>,
        /// The address on which its servers are published.
        private_address: PrivateAddress,
        /// What an instance may ask for by the same labels.
        labels: EngineLabels,
        /// Whether it takes no more instances.
        draining: bool,
        /// Whether the node that answered this call reaches it.
        state: EngineState,
        /// Since when it is not reached. Null if it is.
        since: Option<Timestamp>,
        /// The instances that are placed on it, also deleted ones whose data is kept.
        instances: u64,
        /// The memory that its instances are promised, also stopped ones, in bytes.
        promised_memory: u64,
        /// The memory of its machine, in bytes. Null until the engine has told.
        memory: Option<u64>,
        /// The processors of its machine. Null until the engine has told.
        cpus: Option<u32>,
        /// The version of Docker. Null until the engine has told.
        version: Option<String>,
        /// What is free on the disk that has the volumes, in bytes. Null until that was measured.
        disk_free_bytes: Option<u64>,
        /// When the certificate of the client expires. Null without one: for the engine of `SVC_DOCKER_HOST`, and over
        /// ssh.
        certificate_expires_at: Option<Timestamp>,
    }

    /// The engine that the call removed.
    pub struct RemovedEngine {
        /// The id of the engine.
        removed: EngineId,
    }

    /// An instance and its place.
    pub struct PlacedInstance {
        id: InstanceId,
        /// What people call the instance.
        name: Name,
        /// What the instance does.
        state: InstanceState,
        /// The engine that has it. Null for the engine of `SVC_DOCKER_HOST`.
        engine_id: Option<EngineId>,
        /// Whether it is being moved.
        moving: bool,
        /// What is wrong with it, or why it was not moved. Null if nothing is.
        last_error: Option<String>,
    }
}

/// Whether an engine is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum EngineState {
    /// It was not looked at yet.
    Unknown,
    /// It answers.
    Reachable,
    /// It did not answer several times in a row. Its instances may run still.
    Unreachable,
}
