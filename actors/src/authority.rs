//! Who may: the one place where standing is decided.
//!
//! An object outside the caller's reach does not exist for it (101). Within reach, a standing that
//! is too low is said to be (403).

use crate::{
    accounts::Accounts,
    apps::Apps,
    artifacts::Artifacts,
    backups::Backups,
    call::{Caller, Proof, SignedIn},
    deployments::Deployments,
    instances::Instances,
    organizations::{Held, Organizations, Reach},
    projects::Projects,
    releases::Releases,
    runtime::resource::{Kept, Resource},
    tokens::Tokens,
    world::World,
};
use contract::{
    AppId, ArtifactId, BackupId, DeploymentId, Fault, InstanceId, OrganizationId, ProjectId,
    ReleaseId, Scope, Standing, Subject, TokenId, UserId,
    artifacts::ArtifactState,
    authentication::Role,
    projects::{Project, ProjectState},
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

/// What a function asks of its caller.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The standing.
    pub who: Standing,
    /// The scope that lets a deploy token in.
    pub scope: Option<Scope>,
    /// The object.
    pub subject: Subject,
}

/// Refuses callers who bring no credential of the kind that is needed, whatever they ask about.
pub fn check_proof(caller: &Caller, who: Standing, scope: Option<Scope>) -> Result<(), Fault> {
    let refused = |why: &str| Err(Fault::Unauthenticated(why.into()));
    match (&caller.user, who) {
        _ if caller.master => Ok(()),
        (_, Standing::Public) => Ok(()),
        (None, Standing::Master) => refused("this needs the master key"),
        (None, _) => refused("this needs a session: sign in with loginWithEmail"),
        (Some(SignedIn { proof: Proof::Token(..), .. }), _) if scope.is_none() => {
            refused("a deploy token cannot do this: sign in with loginWithEmail")
        }
        (Some(_), _) => Ok(()),
    }
}

/// Decides whether the caller may, and finds the object that it is about.
pub fn authorize(world: &World, caller: &Caller, asked: Asked) -> Result<Place, Fault> {
    check_proof(caller, asked.who, asked.scope)?;
    if !caller.master && asked.who != Standing::Public {
        check_scope(caller, asked)?;
    }
    let place = find(world, caller, asked.subject)?;
    let user = match &caller.user {
        Some(user) if !caller.master && asked.who != Standing::Public => user,
        _ => return Ok(place),
    };
    check_binding(user, &place, asked.subject)?;
    if asked.who == Standing::User {
        return Ok(place);
    }
    if asked.who == Standing::Master {
        return Err(Fault::Forbidden(Standing::Master));
    }
    if user.account.record.state.superadmin {
        return Ok(place);
    }
    let reach = &reach(world, user.id)?.record;
    let may = match asked.who {
        Standing::SuperAdmin => false,
        Standing::Admin => leads_a_team(world, reach)?,
        who => return stand(&place, asked.subject, reach, user, who).map(|()| place),
    };
    if may { Ok(place) } else { Err(Fault::Forbidden(asked.who)) }
}

/// A token acts for its maker, within its scopes.
fn check_scope(caller: &Caller, asked: Asked) -> Result<(), Fault> {
    match (&caller.user, asked.scope) {
        (Some(SignedIn { proof: Proof::Token(_, token), .. }), Some(scope))
            if !token.record.state.scopes.contains(&scope) =>
        {
            Err(Fault::MissingScope(scope))
        }
        _ => Ok(()),
    }
}

/// A token that is bound to an app knows of no other.
fn check_binding(user: &SignedIn, place: &Place, subject: Subject) -> Result<(), Fault> {
    let Proof::Token(_, token) = &user.proof else { return Ok(()) };
    match (token.record.state.app_id, &place.app) {
        (Some(bound), Some((app, _))) if bound != *app => Err(Fault::NotFound(noun(subject))),
        _ => Ok(()),
    }
}

/// Whether the user's part in the object's organization and project is enough.
fn stand(
    place: &Place,
    subject: Subject,
    reach: &Reach,
    user: &SignedIn,
    who: Standing,
) -> Result<(), Fault> {
    let (is_token, who) = match &place.token {
        Some((_, token)) if token.record.state.created_by == user.id => return Ok(()),
        // next to its maker, those who lead where its app is
        Some(_) => (true, Standing::OwnerOrAdmin),
        None => (false, who),
    };
    let Some((organization, _)) = &place.organization else {
        // no object is named: the caller's own things; or it is another user's own token
        return if is_token { Err(Fault::NotFound(noun(subject))) } else { Ok(()) };
    };
    let Some(held) = reach.organizations.get(organization) else {
        return Err(Fault::NotFound(noun(subject)));
    };
    if matches!(subject, Subject::Membership(_, member) if member == user.id) {
        return Ok(());
    }
    if matches!(&user.proof, Proof::Token(_, token) if token.record.state.created_at < held.since) {
        return Err(Fault::NotFound(noun(subject)));
    }
    let project = place.project.as_ref().map(|(_, seen)| &seen.record.state);
    let creator = project.is_some_and(|project| is_creator(held, project, user.id));
    if project.is_some_and(|project| !reaches_project(held, project, user.id)) {
        return Err(Fault::NotFound(noun(subject)));
    }
    let is_app = matches!(subject, Subject::App(_) | Subject::Instance(_) | Subject::Backup(_));
    let is_project = matches!(subject, Subject::Project(_));
    let may = match who {
        Standing::Member => true,
        Standing::OwnerOrAdmin => leads(held) || creator && is_app,
        Standing::Owner => held.owner || creator && is_project,
        _ => false,
    };
    if may { Ok(()) } else { Err(Fault::Forbidden(who)) }
}

fn leads(held: &Held) -> bool {
    held.owner || held.role >= Role::Admin
}

fn leads_a_team(world: &World, reach: &Reach) -> Result<bool, Fault> {
    for (organization, held) in &reach.organizations {
        if leads(held) && !held.personal {
            let seen = world
                .store
                .get::<Kept<Organizations>>(&organization.to_string())
                .map_err(unread)?;
            if seen.is_some_and(|o| o.record.state.members.len() >= 2) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// What a user is a member of.
pub fn reach(world: &World, user: UserId) -> Result<Arc<Stored<Reach>>, Fault> {
    let found = world.store.get::<Reach>(&user.to_string()).map_err(unread)?;
    Ok(found.unwrap_or_else(|| Arc::new(Stored { version: 0, record: Reach::default() })))
}

/// Whether a member of the organization reaches the project: its creator, its listed members, and
/// every supervisor and above.
pub fn reaches_project(held: &Held, project: &Project, user: UserId) -> bool {
    held.role >= Role::Supervisor
        || is_creator(held, project, user)
        || project.member_ids.contains(&user)
}

/// Whether a member made the project, and has not left the organization since.
fn is_creator(held: &Held, project: &Project, user: UserId) -> bool {
    project.owner_id == user && project.created_at >= held.since
}

/// Finds the object and what it hangs from. What is being deleted is not found.
fn find(world: &World, caller: &Caller, subject: Subject) -> Result<Place, Fault> {
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

fn get<R: Resource>(store: &Store, id: R::Id, noun: &'static str) -> Result<Seen<R>, Fault> {
    store.get::<Kept<R>>(&id.to_string()).map_err(unread)?.ok_or(Fault::NotFound(noun))
}

/// What a caller is told when the store cannot be read.
pub fn unread(e: StoreError) -> Fault {
    tracing::error!(error = %e, "a record cannot be read");
    Fault::Internal
}

/// The account of a user.
pub fn account(store: &Store, id: UserId) -> Result<Seen<Accounts>, Fault> {
    get::<Accounts>(store, id, "user")
}

fn noun(subject: Subject) -> &'static str {
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
