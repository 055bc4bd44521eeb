//! Who may: the standings that functions ask for, the objects they are asked about, and the scopes
//! of deploy tokens.

use crate::{backend_instances::DeletedInstanceId, id::*};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;

/// Who may call a function. Where it depends on an object, the function names that object as its
/// [`Subject`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Anyone, signed in or not.
    Public,
    /// Any signed-in user.
    User,
    /// A member of the organization; below an organization: the project's creator and listed
    /// members, and every supervisor, admin and owner of its organization.
    Member,
    /// An admin or the owner of the organization the subject hangs from.
    OwnerOrAdmin,
    /// The organization's owner; for a project also its creator; for a token also its maker.
    Owner,
    /// An admin or owner of any organization with two or more members.
    Admin,
    /// The platform's own administrators.
    SuperAdmin,
    /// Whoever presents the master key.
    Master,
}

impl Standing {
    /// The words that errors and documents use for this standing.
    pub const fn label(self) -> &'static str {
        match self {
            Standing::Public => "Public",
            Standing::User => "User",
            Standing::Member => "Member",
            Standing::OwnerOrAdmin => "Owner/Admin",
            Standing::Owner => "Owner",
            Standing::Admin => "Admin",
            Standing::SuperAdmin => "SuperAdmin",
            Standing::Master => "Master key",
        }
    }

    /// What a caller must have, as the end of "this requires …".
    pub const fn required(self) -> &'static str {
        match self {
            Standing::Public => "nothing",
            Standing::User => "a session",
            Standing::Member => "the role Member",
            Standing::OwnerOrAdmin => "the role Owner or Admin",
            Standing::Owner => "the role Owner",
            Standing::Admin => "the role Admin",
            Standing::SuperAdmin => "the role SuperAdmin",
            Standing::Master => "the master key",
        }
    }
}

/// The object that a standing is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The standing does not depend on an object.
    None,
    /// The caller's own personal organization.
    Personal,
    /// An organization.
    Organization(OrganizationId),
    /// One membership: its holder passes whatever the standing.
    Membership(OrganizationId, UserId),
    /// A project.
    Project(ProjectId),
    /// An app.
    App(AppId),
    /// A backend or market instance.
    Instance(InstanceId),
    /// An instance that was deleted, and whose data is kept.
    DeletedInstance(InstanceId),
    /// A backup.
    Backup(BackupId),
    /// A deployment.
    Deployment(DeploymentId),
    /// An artifact.
    Artifact(ArtifactId),
    /// A release.
    Release(ReleaseId),
    /// A deploy token.
    Token(TokenId),
}

macro_rules! subject_from {
    ($($id:ty => $variant:ident),+ $(,)?) => {
        $(impl From<$id> for Subject {
            fn from(id: $id) -> Self {
                Subject::$variant(id)
            }
        })+
    };
}
subject_from! {
    OrganizationId => Organization, ProjectId => Project, AppId => App, InstanceId => Instance, DeploymentId => Deployment, BackupId => Backup,
    ArtifactId => Artifact, ReleaseId => Release, TokenId => Token,
}
impl From<DeletedInstanceId> for Subject {
    fn from(DeletedInstanceId(id): DeletedInstanceId) -> Self {
        Subject::DeletedInstance(id)
    }
}
impl From<Option<OrganizationId>> for Subject {
    fn from(id: Option<OrganizationId>) -> Self {
        id.map_or(Subject::Personal, Subject::Organization)
    }
}
impl From<Option<AppId>> for Subject {
    fn from(id: Option<AppId>) -> Self {
        id.map_or(Subject::None, Subject::App)
    }
}
/// A deployment says which app is meant, better than the app's own id beside it.
impl From<(Option<AppId>, Option<DeploymentId>)> for Subject {
    fn from((app, deployment): (Option<AppId>, Option<DeploymentId>)) -> Self {
        deployment.map_or(Subject::from(app), Subject::Deployment)
    }
}
impl From<(OrganizationId, UserId)> for Subject {
    fn from((organization, user): (OrganizationId, UserId)) -> Self {
        Subject::Membership(organization, user)
    }
}

/// What an operation requires of its caller, given its parameters.
#[derive(Debug, Clone)]
pub struct Requirement {
    /// The standing.
    pub who: Standing,
    /// What a deploy token needs: all of these.
    pub scopes: Cow<'static, [ScopeRule]>,
    /// The object that the standing is asked about.
    pub subject: Subject,
}

/// A scope that a deploy token needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeRule {
    /// The scope.
    pub scope: Scope,
    /// A scope that is enough for an object that the token itself made.
    pub own: Option<Scope>,
    /// With which parameters it is needed; `None`: always.
    pub when: Option<&'static str>,
}

/// What a deploy token may be used for.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    serde::Deserialize,
    JsonSchema,
)]
pub enum Scope {
    /// Upload and finalize artifacts.
    #[serde(rename = "artifact:upload")]
    ArtifactUpload,
    /// Create releases, and publish those that the same token created.
    #[serde(rename = "release:create")]
    ReleaseCreate,
    /// Publish releases and roll them back, whoever created them.
    #[serde(rename = "release:publish")]
    ReleasePublish,
}

impl Scope {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::ArtifactUpload => "artifact:upload",
            Scope::ReleaseCreate => "release:create",
            Scope::ReleasePublish => "release:publish",
        }
    }
}
