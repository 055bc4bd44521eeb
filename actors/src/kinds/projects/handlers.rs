//! The handlers of the group Projects.

use super::{Command, Projects};
use crate::{
    call::{
        authz::{memberships, reaches_project},
        context::Call,
        lookup::Ancestry,
        pagination,
    },
    kinds::{
        apps::Apps, artifacts::Artifacts, checkouts::Whole, organizations::Organizations,
        releases::Releases,
    },
    platform::Platform,
    runtime::entries::Under,
};
use contract::{
    BoundedSet, Cursor, Fault, Limit, OrganizationId, Page, ProjectId, Serves, Subject, UserId,
    instances::InstanceKind,
    projects::{
        CreateProject, DeleteProject, DeletedProject, GetProject, GetProjects, Project,
        ProjectContents, ProjectState, UpdateProject,
    },
};
use store::Snapshot;

impl Serves<CreateProject> for Platform {
    async fn serve(&self, cx: &Call, p: CreateProject) -> Result<Project, Fault> {
        if p.organization_id.is_none() {
            cx.user()?;
        }
        let id: ProjectId = self.world.ports.random.id(cx.now);
        let project = Project {
            id,
            organization_id: cx.ancestry.organization()?.0,
            owner_id: cx.caller.user.as_ref().map(|user| user.id),
            name: p.name,
            description: p.description,
            member_ids: Vec::new(),
            state: ProjectState::Active,
            created_at: cx.now,
            updated_at: cx.now,
        };
        let show = |project: &Project| Ok(project.clone());
        cx.create(&self.world, &self.owners()?.projects, id, project, show).await
    }
}

impl Serves<GetProjects> for Platform {
    async fn serve(&self, cx: &Call, p: GetProjects) -> Result<Page<Project>, Fault> {
        let Some(user) = cx.listed_user()?.map(|user| user.id) else {
            return self.all_projects(p.organization_id, (p.limit, p.cursor), |_| true);
        };
        let memberships = &memberships(&self.world, user)?;
        let wanted = |id| p.organization_id.is_none_or(|only| only == id);
        let (mut all, mut more) = (Vec::new(), false);
        for (organization, membership) in
            memberships.organizations.iter().filter(|(id, _)| wanted(**id))
        {
            let mine = |project: &Project| {
                project.state == ProjectState::Active && reaches_project(membership, project, user)
            };
            let entry = Under::<Organizations>(*organization);
            // One page of each organization is enough to fill one page of the merged list.
            let page = pagination::page::<Projects, _>(
                &self.world.store,
                &entry,
                (p.limit, p.cursor.clone()),
                |_, seen| Ok(Some(seen.state.clone()).filter(mine)),
            )?;
            all.extend(page.items);
            more |= page.next_cursor.is_some();
        }
        let mut page =
            pagination::slice(all, |project| project.id.to_string(), (p.limit, p.cursor));
        if more && page.next_cursor.is_none() {
            page.next_cursor =
                page.items.last().map(|project| Cursor::after(&project.id.to_string()));
        }
        Ok(page)
    }
}

impl Platform {
    /// Lists the projects of one organization or of all, whether the caller is a member or not.
    pub fn all_projects(
        &self,
        organization: Option<OrganizationId>,
        page: (Limit, Option<Cursor>),
        wanted: impl Fn(&Project) -> bool,
    ) -> Result<Page<Project>, Fault> {
        let store = &self.world.store;
        let view = |id, seen: &Snapshot<Projects>| {
            let is_there = || Ancestry::of(store, Subject::Project(id), None).is_ok();
            Ok((wanted(seen) && is_there()).then(|| seen.state.clone()))
        };
        match organization {
            Some(id) => pagination::page(store, &Under::<Organizations>(id), page, view),
            None => pagination::whole(store, page, view),
        }
    }
}

impl Serves<GetProject> for Platform {
    async fn serve(&self, cx: &Call, _: GetProject) -> Result<Project, Fault> {
        Ok(cx.ancestry.project()?.1.state.clone())
    }
}

impl Serves<UpdateProject> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateProject) -> Result<Project, Fault> {
        if let Some(members) = &p.member_ids {
            check_members(cx, members)?;
        }
        let member_ids = p.member_ids.map(BoundedSet::into_vec);
        let command = Command::Update { name: p.name, description: p.description, member_ids };
        let owners = &self.owners()?.projects;
        cx.change(&self.world, owners, p.project_id, command, |project| Ok(project.clone())).await
    }
}

fn check_members(cx: &Call, members: &[UserId]) -> Result<(), Fault> {
    let organization = &cx.ancestry.organization()?.1.state;
    let stranger =
        members.iter().position(|user| !organization.members.iter().any(|m| m.user == *user));
    match stranger {
        Some(at) => Err(Fault::invalid(
            &format!("memberIds[{at}]"),
            "must be a member of the organization; invite this person first",
        )),
        None => Ok(()),
    }
}

impl Serves<DeleteProject> for Platform {
    async fn serve(&self, cx: &Call, p: DeleteProject) -> Result<DeletedProject, Fault> {
        self.refuse_unsettled(Whole::Project(p.project_id))?;
        let store = &self.world.store;
        let apps = store.all::<Apps>(&Under::<Projects>(p.project_id))?;
        let mut contents =
            ProjectContents { apps: apps.len() as u64, instances: 0, artifacts: 0, releases: 0 };
        for app in apps {
            for kind in [InstanceKind::Backend, InstanceKind::Market] {
                contents.instances += u64::from(self.instance_of(app, kind)?.is_some());
            }
            contents.artifacts += store.count::<Artifacts>(&Under::<Apps>(app))?;
            contents.releases += store.count::<Releases>(&Under::<Apps>(app))?;
        }
        let reply = DeletedProject { deleted: contents };
        let owners = &self.owners()?.projects;
        cx.change(&self.world, owners, p.project_id, Command::Delete, move |_| Ok(reply.clone()))
            .await
    }
}
