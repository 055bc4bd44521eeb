//! Backend instances: a server of an app with its database, in containers.

use crate::{
    AppId, InstanceId, Name, Page, ProjectId, TemplateId,
    env::Env,
    instances::{Instance, Metrics, Resources},
    page::*,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Backend instances";

    /// Provision a backend instance. Answers at once; the instance is in `provisioning`, and starts
    /// as soon as it can.
    "svc_createBackendInstance": CreateBackendInstance {
        project_id: ProjectId,
        name: Name,
        /// An app of the project that has no backend yet; an app is made where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app_id: Option<AppId>,
        /// A published backend template; the service's default where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        template_id: Option<TemplateId>,
        /// For the server. What the template sets itself cannot be replaced.
        #[serde(default)]
        env: Env,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resources: Option<Resources>,
    } -> Instance { who: Member of (project_id), effect: Change,
        errors: [Exists "the app has a backend", NotNow "the template is not published, or an image version is deprecated"] }

    /// List the backend instances of a project.
    "svc_getBackendInstances": GetBackendInstances {
        project_id: ProjectId,
        /// List the deleted instances instead: those that `svc_undeleteBackendInstance` can bring back.
        #[serde(default)]
        deleted: bool,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Instance> { who: Member of (project_id), effect: Read }

    /// Read an instance.
    "svc_getBackendInstance": GetBackendInstance { instance_id: InstanceId } -> Instance
    { who: Member of (instance_id), effect: Read }

    /// Start a stopped instance. One that runs is answered unchanged.
    "svc_startBackendInstance": StartBackendInstance {
        instance_id: InstanceId,
        /// Answer when it has come to rest, or after 25 seconds as it is then.
        #[serde(default)]
        wait: bool,
    } -> Instance { who: Member of (instance_id), effect: Change }

    /// Stop an instance. Its data stays.
    "svc_stopBackendInstance": StopBackendInstance {
        instance_id: InstanceId,
        /// Answer when it has come to rest, or after 25 seconds as it is then.
        #[serde(default)]
        wait: bool,
    } -> Instance { who: Member of (instance_id), effect: Change }

    /// Stop an instance and start it again.
    "svc_restartBackendInstance": RestartBackendInstance {
        instance_id: InstanceId,
        /// Answer when it has come to rest, or after 25 seconds as it is then.
        #[serde(default)]
        wait: bool,
    } -> Instance { who: Member of (instance_id), effect: Change, errors: [NotNow "it is provisioning, starting or stopping"] }

    /// Change an instance. What its server may use, and its environment, come with a new container,
    /// which takes the place of the one that serves once it is healthy.
    "svc_updateBackendInstance": UpdateBackendInstance {
        instance_id: InstanceId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Name>,
        /// For the server, in place of what was set before. What the template sets itself cannot be
        /// replaced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        env: Option<Env>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resources: Option<Resources>,
    } -> Instance { who: Member of (instance_id), effect: Change,
        errors: [NotNow "the instance is on its way to another state, or another container is starting"] }

    /// Delete an instance. Its volumes are kept for seven days, in which
    /// `svc_undeleteBackendInstance` brings it back; with `deleteData` they are removed at once.
    "svc_deleteBackendInstance": DeleteBackendInstance {
        instance_id: InstanceId,
        #[serde(default)]
        delete_data: bool,
    } -> DeletedInstance { who: OwnerOrAdmin of (instance_id), effect: Change }

    /// Bring back a deleted instance with its data, its variables and its secrets, and start it. Of an
    /// instance whose data was removed nothing is left to bring back.
    "svc_undeleteBackendInstance": UndeleteBackendInstance { instance_id: DeletedInstanceId } -> Instance
    { who: OwnerOrAdmin of (instance_id), effect: Change,
        errors: [NotFound "it was not deleted, or its data was removed", Exists "the app has another instance of this kind", NotNow "its containers are still being removed, or its template was deleted"] }

    /// Read what an instance uses now, and has used.
    "svc_getServerMetrics": GetServerMetrics {
        instance_id: InstanceId,
        /// How far back the history goes, 1 to 1440; 60 where nothing is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        minutes: Option<u32>,
    } -> ServerMetrics { who: Member of (instance_id), effect: Read }
}

/// The id of an instance that was deleted, and whose data is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DeletedInstanceId(pub InstanceId);

records! {
    /// What was deleted.
    pub struct DeletedInstance { deleted: InstanceId }

    /// What an instance uses and has used.
    pub struct ServerMetrics {
        /// Null while the instance does not run.
        current: Option<Metrics>,
        /// Oldest first, one for each minute.
        history: Vec<Metrics>,
    }
}
