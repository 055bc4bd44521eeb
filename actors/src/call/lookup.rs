//! What a call is about, and all that it hangs from, as it was read.

use crate::{
    call::context::Caller,
    kinds::{
        apps::Apps, artifacts::Artifacts, backups::Backups, deployments::Deployments,
        instances::Instances, organizations::Organizations, projects::Projects, releases::Releases,
        tokens::Tokens,
    },
    runtime::resource::{Kept, Resource},
    world::World,
};
use contract::{
    AppId, ArtifactId, BackupId, DeploymentId, Fault, InstanceId, OrganizationId, ProjectId,
    ReleaseId, Subject, TokenId, artifacts::ArtifactState, projects::ProjectState,
};
use std::sync::Arc;
use store::{Change, Store, StoreError, Stored};

/// A resource as it was read.
pub type Seen<R> = Arc<Stored<Kept<R>>>;

/// The object that a call is about, and what that hangs from.
#[derive(Clone, Default)]
#[allow(missing_docs, reason = "each field is the object it names")]
pub struct Place {
    pub organization: Option<(OrganizationId, Seen<Organizations>)>,
    pub project: Option<(ProjectId, Seen<Projects>)>,
    pub app: Option<(AppId, Seen<Apps>)>,
    pub instance: Option<(InstanceId, Seen<Instances>)>,
    pub deployment: Option<(DeploymentId, Seen<Deployments>)>,
    pub backup: Option<(BackupId, Seen<Backups>)>,
    pub artifact: Option<(ArtifactId, Seen<Artifacts>)>,
    pub release: Option<(ReleaseId, Seen<Releases>)>,
    pub token: Option<(TokenId, Seen<Tokens>)>,
}

impl Place {
    /// Holds a change to what was decided upon: all of this is still as it was read. The resource
    /// that is changed itself is left out; its owner knows its latest state.
    pub fn require(&self, change: Change, changed: &str) -> Change {
        fn one<R: Resource>(
            change: Change,
            seen: Option<&(R::Id, Seen<R>)>,
            changed: &str,
        ) -> Change {
            match seen.map(|(id, stored)| (id.to_string(), stored)) {
                Some((key, stored)) if key != changed => change.require(&key, stored),
                _ => change,
            }
        }
        let change = one::<Organizations>(change, self.organization.as_ref(), changed);
        let change = one::<Projects>(change, self.project.as_ref(), changed);
        one::<Apps>(change, self.app.as_ref(), changed)
    }

    /// The organization that the object hangs from.
    pub fn organization(&self) -> Result<(OrganizationId, &Seen<Organizations>), Fault> {
        self.organization
            .as_ref()
            .map(|(id, seen)| (*id, seen))
            .ok_or(Fault::NotFound("organization"))
    }

    /// The project that the object hangs from.
    pub fn project(&self) -> Result<(ProjectId, &Seen<Projects>), Fault> {
        self.project.as_ref().map(|(id, seen)| (*id, seen)).ok_or(Fault::NotFound("project"))
    }

    /// The app that the object hangs from.
    pub fn app(&self) -> Result<(AppId, &Seen<Apps>), Fault> {
        self.app.as_ref().map(|(id, seen)| (*id, seen)).ok_or(Fault::NotFound("app"))
    }

    /// The instance.
    pub fn instance(&self) -> Result<(InstanceId, &Seen<Instances>), Fault> {
        self.instance.as_ref().map(|(id, seen)| (*id, seen)).ok_or(Fault::NotFound("instance"))
    }

    /// The deployment.
    pub fn deployment(&self) -> Result<(DeploymentId, &Seen<Deployments>), Fault> {
        self.deployment.as_ref().map(|(id, seen)| (*id, seen)).ok_or(Fault::NotFound("deployment"))
    }

    /// The backup.
    pub fn backup(&self) -> Result<(BackupId, &Seen<Backups>), Fault> {
        self.backup.as_ref().map(|(id, seen)| (*id, seen)).ok_or(Fault::NotFound("backup"))
    }

    /// The artifact.
    pub fn artifact(&self) -> Result<(ArtifactId, &Seen<Artifacts>), Fault> {
        self.artifact.as_ref().map(|(id, seen)| (*id, seen)).ok_or(Fault::NotFound("artifact"))
    }

    /// The release.
    pub fn release(&self) -> Result<(ReleaseId, &Seen<Releases>), Fault> {
        self.release.as_ref().map(|(id, seen)| (*id, seen)).ok_or(Fault::NotFound("release"))
    }
}

/// Finds the object and what it hangs from. What is being deleted is not found.
pub fn find(world: &World, caller: &Caller, subject: Subject) -> Result<Place, Fault> {
    let mut place = Place::default();
    let store = &world.store;
    match subject {
        Subject::None => {}
        Subject::Personal => {
            if let Some(user) = &caller.user {
                place.find_organization(store, user.account.record.state.personal)?;
            }
        }
        Subject::Organization(id) | Subject::Membership(id, _) => {
            place.find_organization(store, id)?
        }
        Subject::Project(id) => place.find_project(store, id)?,
        Subject::App(id) => place.find_app(store, id)?,
        Subject::Instance(id) => place.find_instance(store, id)?,
        Subject::Deployment(id) => place.find_deployment(store, id)?,
        Subject::Backup(id) => place.find_backup(store, id)?,
        Subject::Artifact(id) => place.find_artifact(store, id)?,
        Subject::Release(id) => place.find_release(store, id)?,
        Subject::Token(id) => place.find_token(store, id)?,
    }
    Ok(place)
}

impl Place {
    fn find_organization(&mut self, store: &Store, id: OrganizationId) -> Result<(), Fault> {
        let seen = get::<Organizations>(store, id, "organization")?;
        if seen.record.state.deleting {
            return Err(Fault::NotFound("organization"));
        }
        self.organization = Some((id, seen));
        Ok(())
    }

    fn find_project(&mut self, store: &Store, id: ProjectId) -> Result<(), Fault> {
        let seen = get::<Projects>(store, id, "project")?;
        if seen.record.state.state == ProjectState::Deleting {
            return Err(Fault::NotFound("project"));
        }
        self.find_organization(store, seen.record.state.organization_id)
            .map_err(|_| Fault::NotFound("project"))?;
        self.project = Some((id, seen));
        Ok(())
    }

    fn find_app(&mut self, store: &Store, id: AppId) -> Result<(), Fault> {
        let seen = get::<Apps>(store, id, "app")?;
        if seen.record.state.deleting {
            return Err(Fault::NotFound("app"));
        }
        self.find_project(store, seen.record.state.project_id)
            .map_err(|_| Fault::NotFound("app"))?;
        self.app = Some((id, seen));
        Ok(())
    }

    fn find_instance(&mut self, store: &Store, id: InstanceId) -> Result<(), Fault> {
        let seen = get::<Instances>(store, id, "instance")?;
        if !seen.record.state.is_there() {
            return Err(Fault::NotFound("instance"));
        }
        self.find_app(store, seen.record.state.app_id).map_err(|_| Fault::NotFound("instance"))?;
        self.instance = Some((id, seen));
        Ok(())
    }

    fn find_deployment(&mut self, store: &Store, id: DeploymentId) -> Result<(), Fault> {
        let seen = get::<Deployments>(store, id, "deployment")?;
        let app = seen.record.state.deployment.app_id;
        self.find_app(store, app).map_err(|_| Fault::NotFound("deployment"))?;
        self.deployment = Some((id, seen));
        Ok(())
    }

    fn find_backup(&mut self, store: &Store, id: BackupId) -> Result<(), Fault> {
        let seen = get::<Backups>(store, id, "backup")?;
        if seen.record.state.removing {
            return Err(Fault::NotFound("backup"));
        }
        let app = seen.record.state.backup.app_id;
        self.find_app(store, app).map_err(|_| Fault::NotFound("backup"))?;
        self.backup = Some((id, seen));
        Ok(())
    }

    fn find_artifact(&mut self, store: &Store, id: ArtifactId) -> Result<(), Fault> {
        let seen = get::<Artifacts>(store, id, "artifact")?;
        let artifact = &seen.record.state.artifact;
        if artifact.state == ArtifactState::Deleted {
            return Err(Fault::NotFound("artifact"));
        }
        self.find_app(store, artifact.app_id).map_err(|_| Fault::NotFound("artifact"))?;
        self.artifact = Some((id, seen));
        Ok(())
    }

    fn find_release(&mut self, store: &Store, id: ReleaseId) -> Result<(), Fault> {
        let seen = get::<Releases>(store, id, "release")?;
        self.find_app(store, seen.record.state.release.app_id)
            .map_err(|_| Fault::NotFound("release"))?;
        self.release = Some((id, seen));
        Ok(())
    }

    fn find_token(&mut self, store: &Store, id: TokenId) -> Result<(), Fault> {
        let seen = get::<Tokens>(store, id, "token")?;
        if let Some(app) = seen.record.state.app_id {
            self.find_app(store, app).map_err(|_| Fault::NotFound("token"))?;
        }
        self.token = Some((id, seen));
        Ok(())
    }
}

/// A resource, which is there or not found.
pub fn get<R: Resource>(store: &Store, id: R::Id, noun: &'static str) -> Result<Seen<R>, Fault> {
    store.get::<Kept<R>>(&id.to_string()).map_err(unread)?.ok_or(Fault::NotFound(noun))
}

/// What a caller is told when the store cannot be read.
pub fn unread(e: StoreError) -> Fault {
    tracing::error!(error = %e, "a record cannot be read");
    Fault::Internal
}

/// What a subject is called.
pub fn noun(subject: Subject) -> &'static str {
    match subject {
        Subject::None | Subject::Personal => "object",
        Subject::Organization(_) | Subject::Membership(..) => "organization",
        Subject::Project(_) => "project",
        Subject::App(_) => "app",
        Subject::Instance(_) => "instance",
        Subject::Deployment(_) => "deployment",
        Subject::Backup(_) => "backup",
        Subject::Artifact(_) => "artifact",
        Subject::Release(_) => "release",
        Subject::Token(_) => "token",
    }
}
