//! The standings that functions require, the objects that they refer to, and the scopes of deploy
//! tokens.

use crate::{backend_instances::DeletedInstanceId, checkouts::Reference, id::*};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;

/// The access that a function needs. If it depends on an object, the function names the object as
/// its [`Subject`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Everybody, with or without a session.
    Public,
    /// Any signed-in user.
    User,
    /// A member of the organization. For a project and objects in it: the project's creator and
    /// listed members, and every supervisor, admin and owner of the organization.
    Member,
    /// An admin or the owner of the subject's organization. For an app and objects in it, also the
    /// creator of its project; for a deploy token also its creator.
    OwnerOrAdmin,
    /// The organization's owner; for a project also its creator.
    Owner,
    /// An admin or owner of any organization with two or more members.
    Admin,
    /// An administrator of the platform.
    SuperAdmin,
    /// The master key.
    Master,
}

impl Standing {
    /// The name of the standing in documents.
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

    /// What a caller needs, to complete the sentence "this requires …".
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

/// The object for which a caller needs a standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the object of its id")]
pub enum Subject {
    /// The standing does not depend on an object.
    None,
    /// The caller's own personal organization.
    Personal,
    Organization(OrganizationId),
    /// A membership. Its own user passes every check.
    Membership(OrganizationId, UserId),
    Project(ProjectId),
    App(AppId),
    /// A backend or market instance.
    Instance(InstanceId),
    /// An instance that was deleted, and whose data is kept.
    DeletedInstance(InstanceId),
    Backup(BackupId),
    Deployment(DeploymentId),
    Domain(DomainId),
    Artifact(ArtifactId),
    Release(ReleaseId),
    Build(BuildId),
    Credential(CredentialId),
    Checkout(CheckoutId),
    /// A trusted publisher.
    Publisher(PublisherId),
    /// A deploy token.
    Token(TokenId),
    Webhook(WebhookId),
    /// A delivery of a webhook.
    Delivery(DeliveryId),
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
    OrganizationId => Organization, ProjectId => Project, AppId => App, InstanceId => Instance, DeploymentId => Deployment, DomainId => Domain, BackupId => Backup,
    ArtifactId => Artifact, ReleaseId => Release, BuildId => Build, CredentialId => Credential,
    PublisherId => Publisher, TokenId => Token, WebhookId => Webhook, DeliveryId => Delivery,
}
impl From<Reference> for Subject {
    fn from(Reference(id): Reference) -> Self {
        Subject::Checkout(id)
    }
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
/// The app of the deployment counts, not the app id next to it.
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

/// The access that a call needs, given its parameters.
#[derive(Debug, Clone)]
pub struct Requirement {
    /// The standing.
    pub who: Standing,
    /// The scopes that a deploy token needs. It needs all of them.
    pub scopes: Cow<'static, [ScopeRule]>,
    /// The object for which the caller needs the standing.
    pub subject: Subject,
}

/// A scope that a deploy token needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeRule {
    /// The scope that is needed.
    pub scope: Scope,
    /// A weaker scope that is sufficient for objects that the same token created.
    pub own: Option<Scope>,
    /// The condition on the parameters, in words. `None` means always.
    pub when: Option<&'static str>,
}

/// A permission of a deploy token.
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
    /// Create releases, and publish releases that the same token created.
    #[serde(rename = "release:create")]
    ReleaseCreate,
    /// Publish and roll back all releases of the app.
    #[serde(rename = "release:publish")]
    ReleasePublish,
    /// Run builds. A runner also needs `artifact:upload`.
    #[serde(rename = "build:run")]
    BuildRun,
    /// Trigger builds, follow and cancel them.
    #[serde(rename = "build:trigger")]
    BuildTrigger,
    /// Send folders, deploy, follow deployments, cancel them and roll back.
    #[serde(rename = "deploy")]
    Deploy,
    /// Read instances, their logs and their metrics.
    #[serde(rename = "instance:read")]
    InstanceRead,
}

impl Scope {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::ArtifactUpload => "artifact:upload",
            Scope::ReleaseCreate => "release:create",
            Scope::ReleasePublish => "release:publish",
            Scope::BuildRun => "build:run",
            Scope::BuildTrigger => "build:trigger",
            Scope::Deploy => "deploy",
            Scope::InstanceRead => "instance:read",
        }
    }
}
