//! Projects: what apps and instances hang from.

use crate::{
    BoundedSet, Description, Name, OrganizationId, Page, ProjectId, Timestamp, UserId, page::*,
    patch::Patch,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Projects";

    /// Create a project.
    "svc_createProject": CreateProject {
        name: Name,
        /// The personal organization where nothing is given. The master key has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        organization_id: Option<OrganizationId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<Description>,
    } -> Project { who: Member of (organization_id), effect: Change }

    /// List the projects that the user reaches; all, for the master key.
    "svc_getProjects": GetProjects {
        /// Only those of this organization.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        organization_id: Option<OrganizationId>,
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
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Name>,
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        description: Patch<Description>,
        /// Members of the organization who work on it: replaces the list. At most 200.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member_ids: Option<BoundedSet<UserId, 0, 200>>,
    } -> Project { who: Member of (project_id), effect: Change, errors: [Invalid "a member is not in the organization"] }

    /// Delete a project and all below it.
    ///
    /// It is gone for everyone as soon as the reply is sent; apps, artifacts with their bytes,
    /// releases and tokens are removed after that. The removal survives a crash and goes on.
    "svc_deleteProject": DeleteProject { project_id: ProjectId } -> DeletedProject
    { who: Owner of (project_id), effect: Change }
}

records! {
    /// A project.
    pub struct Project {
        id: ProjectId,
        organization_id: OrganizationId,
        /// Who made it; null for the master key.
        owner_id: Option<UserId>,
        name: Name,
        description: Option<Description>,
        member_ids: Vec<UserId>,
        state: ProjectState,
        created_at: Timestamp,
        updated_at: Timestamp,
    }

    /// What went with a project.
    pub struct DeletedProject { deleted: ProjectContents }

    /// How much hangs from a project.
    pub struct ProjectContents { apps: u64, instances: u64, artifacts: u64, releases: u64 }
}

/// The states of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProjectState {
    /// In use.
    Active,
    /// Being removed; nobody sees it any more.
    Deleting,
}
