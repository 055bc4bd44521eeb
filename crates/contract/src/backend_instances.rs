//! Backend instances: the server of an app and its database, in containers.

use crate::{
    AppId, BackupId, InstanceId, NewName, Page, ProjectId, TemplateId,
    engines::EngineLabels,
    env::Env,
    instances::{Instance, InstanceKind, InstanceState, Metrics, Resources},
    page::*,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Backend instances";

    /// Create a backend instance.
    ///
    /// The call returns at once. The instance is in `provisioning` and starts as soon as possible.
    "svc_createBackendInstance": CreateBackendInstance {
        project_id: ProjectId,
        /// What people call the instance. An app that the call creates gets the same name.
        name: NewName,
        /// An app of the project without a backend. By default, the call creates an app.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app_id: Option<AppId>,
        /// A published backend template. The default is the service's default template.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template_id: Option<TemplateId>,
        /// Environment of the server, at most 128 KiB of names and values. Variables that the template
        /// sets cannot be replaced.
        #[serde(default)]
        env: Env,
        /// The limits of the server. The default is 512 MB of memory and one processor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resources: Option<Resources>,
        /// The labels that its container engine must have, such as `{"region": "eu"}`. By default, it is placed on
        /// the engine with the most memory left. It stays where it is placed.
        #[serde(default, skip_serializing_if = "EngineLabels::is_empty")]
        engine_labels: EngineLabels,
        /// A ready backup in the same project, also of a deleted instance. It is restored into the
        /// database before the server starts; passwords that the server keeps in its database are
        /// those of the backup. By default, the database is empty.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_backup_id: Option<BackupId>,
    } -> Instance { who: Member of (project_id), effect: Change,
        errors: [Exists "the app has a backend", NotNow "the template is not published, an image version is deprecated, or the backup is not ready"] }

    /// List the instances of a project.
    "svc_getBackendInstances": GetBackendInstances {
        project_id: ProjectId,
        /// The default is `backend`.
        #[serde(default)]
        kind: InstanceKinds,
        /// Return only instances in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<InstanceState>,
        /// List the deleted instances instead: those that `svc_undeleteBackendInstance` can bring back.
        #[serde(default)]
        deleted: bool,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Instance> { who: Member of (project_id), effect: Read, scope: InstanceRead }

    /// Read an instance, also a market server.
    "svc_getBackendInstance": GetBackendInstance { instance_id: InstanceId } -> Instance
    { who: Member of (instance_id), effect: Read, scope: InstanceRead }

    /// Start a stopped instance, also a market server. A running instance stays as it is.
    "svc_startBackendInstance": StartBackendInstance {
        instance_id: InstanceId,
        /// Where the volume with the data of a service is gone, begin with an empty one. What is there
        /// is kept.
        #[serde(default)]
        accept_data_loss: bool,
        /// Wait until the instance is at rest, for at most 25 seconds.
        #[serde(default)]
        wait: bool,
    } -> Instance { who: Member of (instance_id), effect: Change }

    /// Stop an instance, also a market server. Its data is kept.
    "svc_stopBackendInstance": StopBackendInstance {
        instance_id: InstanceId,
        /// Wait until the instance is at rest, for at most 25 seconds.
        #[serde(default)]
        wait: bool,
    } -> Instance { who: Member of (instance_id), effect: Change }

    /// Stop an instance, also a market server, and start it again.
    "svc_restartBackendInstance": RestartBackendInstance {
        instance_id: InstanceId,
        /// Wait until the instance is at rest, for at most 25 seconds.
        #[serde(default)]
        wait: bool,
    } -> Instance { who: Member of (instance_id), effect: Change, errors: [NotNow "it is provisioning, starting or stopping"] }

    /// Change an instance, also a market server.
    ///
    /// New resources and a new environment need a new container of the server. It replaces the
    /// running container once it is healthy.
    "svc_updateBackendInstance": UpdateBackendInstance {
        instance_id: InstanceId,
        /// The new name. Without it, the name stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<NewName>,
        /// Replaces the environment of the server, at most 128 KiB of names and values. Variables that
        /// the template sets cannot be replaced. A masked value, as replies show it, keeps the present one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        env: Option<Env>,
        /// The new limits of the server. Without them, the limits stay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resources: Option<Resources>,
    } -> Instance { who: Member of (instance_id), effect: Change,
        errors: [NotNow "the instance is on its way to another state, or another container is starting"] }

    /// Delete an instance, also a market server.
    ///
    /// Its volumes are kept for seven days, in which `svc_undeleteBackendInstance` brings it back.
    /// With `deleteData` they are removed at once. Its backups stay with the app.
    "svc_deleteBackendInstance": DeleteBackendInstance {
        instance_id: InstanceId,
        /// Remove the volumes with all data at once. By default, they are kept for seven days.
        #[serde(default)]
        delete_data: bool,
    } -> DeletedInstance { who: OwnerOrAdmin of (instance_id), effect: Change }

    /// Bring back a deleted instance, also a market server, and start it.
    ///
    /// It keeps its data, its variables and its secrets. In another app it begins without the
    /// deployments, backups and schedules of the app that it leaves.
    "svc_undeleteBackendInstance": UndeleteBackendInstance {
        /// The id of the deleted instance, from `svc_getBackendInstances` with `deleted`.
        instance_id: DeletedInstanceId,
        /// The app that gets the instance, without another one of its kind. The default is the app
        /// that had it; one that was deleted cannot get it back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app_id: Option<AppId>,
    } -> Instance
    { who: OwnerOrAdmin of (instance_id), effect: Change,
        errors: [NotFound "it was not deleted, its data was removed, or there is no such app", Exists "the app has another instance of this kind", NotNow "its containers are still being removed, or its template was deleted"] }

    /// Read the current and past resource usage of an instance, also of a market server.
    "svc_getServerMetrics": GetServerMetrics {
        instance_id: InstanceId,
        /// How many minutes of history to return, from 1 to 1440. The default is 60.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        minutes: Option<u32>,
    } -> ServerMetrics { who: Member of (instance_id), effect: Read, scope: InstanceRead }
}

/// Which kinds of instances a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InstanceKinds {
    /// Backends only.
    #[default]
    Backend,
    /// Market servers.
    Market,
    /// Both.
    All,
}

impl InstanceKinds {
    /// Whether a list has instances of this kind.
    pub fn includes(self, kind: InstanceKind) -> bool {
        match self {
            InstanceKinds::Backend => kind == InstanceKind::Backend,
            InstanceKinds::Market => kind == InstanceKind::Market,
            InstanceKinds::All => true,
        }
    }
}

/// The id of an instance that was deleted, and whose data is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DeletedInstanceId(pub InstanceId);

records! {
    /// The instance that the call deletes.
    pub struct DeletedInstance { deleted: InstanceId }

    /// The current and past resource usage of an instance.
    pub struct ServerMetrics {
        /// Null unless the instance runs.
        current: Option<Metrics>,
        /// One sample per minute, oldest first.
        history: Vec<Metrics>,
    }
}
