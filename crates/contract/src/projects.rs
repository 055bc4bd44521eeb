//! Projects, which own apps and instances.

use crate::{
    BoundedSet, Description, InstanceId, Name, NewName, OrganizationId, Page, ProjectId, Timestamp,
    UserId, apps::Contents, page::*, patch::Patch, text::Query,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Projects";

    /// Create a project in an organization.
    "svc_createProject": CreateProject {
        /// What people call the project. It need not be unique.
        name: NewName,
        /// The caller must be a member of it. The default is the caller's personal organization. The
        /// master key has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        organization_id: Option<OrganizationId>,
        /// What people should know of the project, at most 2,000 characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<Description>,
    } -> Project { who: Member of (organization_id) or User, effect: Change }

    /// List the projects that the caller may see. The master key lists all projects.
    "svc_getProjects": GetProjects {
        /// Return only projects of this organization.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        organization_id: Option<OrganizationId>,
        /// Return only projects that have this in their name or description, in any case, or the
        /// project with this id. A page may then have few or no projects and still a `nextCursor`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<Query>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Project> { who: User, effect: Read }

    /// Read a project.
    "svc_getProject": GetProject { project_id: ProjectId } -> Project { who: Member of (project_id), effect: Read }

    /// Change a project.
    "svc_updateProject": UpdateProject {
        project_id: ProjectId,
        /// The new name. Without it, the name stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<NewName>,
        /// Replaces the description. Null clears it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        description: Patch<Description>,
        /// Replaces the list of members who work on the project. They must be members of the
        /// organization. At most 200.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member_ids: Option<BoundedSet<UserId, 0, 200>>,
    } -> Project { who: Member of (project_id), effect: Change, errors: [Invalid "a member is not in the organization"] }

    /// Delete a project and everything in it.
    ///
    /// The project disappears at once. Its apps are deleted afterwards with everything that
    /// `deleteApp` names; a restart of the service does not stop this. The volumes of its instances
    /// are kept for seven days, in which `svc_undeleteBackendInstance` brings them back into an app
    /// of another project.
    "svc_deleteProject": DeleteProject { project_id: ProjectId } -> DeletedProject
    { who: Owner of (project_id), effect: Change, errors: [NotNow "a payment is not settled"] }
}

records! {
    /// A project of an organization. Apps and instances belong to it.
    pub struct Project {
        id: ProjectId,
        organization_id: OrganizationId,
        /// The user who created the project. Null for the master key.
        owner_id: Option<UserId>,
        /// What people call the project. It need not be unique.
        name: Name,
        /// What people should know of the project. Null if nobody wrote it.
        description: Option<Description>,
        /// The ids of the members who work on it. Its creator, supervisors, admins and the owner
        /// need no entry.
        member_ids: Vec<UserId>,
        /// Whether the project is in use. It is `active` in replies: nobody sees a project that is
        /// being deleted.
        state: ProjectState,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// What was deleted with a project.
    pub struct DeletedProject {
        /// How many objects of each kind are deleted.
        deleted: Contents,
        /// The instances whose volumes are kept for seven days.
        kept_instances: Vec<InstanceId>,
    }
}

/// Whether a project is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProjectState {
    /// The project is in use.
    Active,
    /// The project is being deleted. Nobody can see it.
    Deleting,
}
