//! The functions of the group Projects.

use super::{Command, Projects};
use crate::{
    call::{
        authz::{reach, reaches_project},
        context::{Call, Caller},
        lookup::{Seen, find, unread},
        pagination,
    },
    kinds::{apps::Apps, artifacts::Artifacts, releases::Releases},
    platform::Platform,
    runtime::resource::Kept,
};
use contract::{
    Cursor, Fault, Few, Limit, OrganizationId, Page, ProjectId, Serves, Subject, UserId,
    instances::InstanceKind,
    projects::{
        CreateProject, DeleteProject, DeletedProject, GetProject, GetProjects, Project,
        ProjectContents, ProjectState, UpdateProject,
    },
};

impl Serves<CreateProject> for Platform {
    async fn serve(&self, cx: &Call, p: CreateProject) -> Result<Project, Fault> {
        if p.organization_id.is_none() {
            cx.user()?;
        }
        let id: ProjectId = self.world.ports.random.id(cx.now);
        let project = Project {
            id,
            organization_id: cx.place.organization()?.0,
            owner_id: cx.caller.user.as_ref().map(|user| user.id),
            name: p.name,
            description: p.description,
            member_ids: Vec::new(),
            state: ProjectState::Active,
            created_at: cx.now,
            updated_at: cx.now,
        };
        let command = Command::Create(Box::new(project));
        cx.change(&self.world, &self.owners()?.projects, id, command, |project| Ok(project.clone()))
            .await
    }
}

impl Serves<GetProjects> for Platform {
    async fn serve(&self, cx: &Call, p: GetProjects) -> Result<Page<Project>, Fault> {
        let Some(user) = cx.listed_user()?.map(|user| user.id) else {
            return self.all_projects(p.organization_id, (p.limit, p.cursor), |_| true);
        };
        let reach = &reach(&self.world, user)?.record;
        let wanted = |id| p.organization_id.is_none_or(|only| only == id);
        let (mut all, mut more) = (Vec::new(), false);
        for (organization, held) in reach.organizations.iter().filter(|(id, _)| wanted(**id)) {
            let mine = |project: &Project| {
                project.state == ProjectState::Active && reaches_project(held, project, user)
            };
            let entry = format!("organization/{organization}");
            // One page of each organization holds all that one page of the whole can show.
            let page = pagination::page::<Projects, _>(
                &self.world.store,
                &entry,
                (p.limit, p.cursor.clone()),
                |_, seen| Ok(Some(seen.record.state.clone()).filter(mine)),
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
    /// The projects of an organization, or of all, whoever made them.
    pub fn all_projects(
        &self,
        organization: Option<OrganizationId>,
        page: (Limit, Option<Cursor>),
        wanted: impl Fn(&Project) -> bool,
    ) -> Result<Page<Project>, Fault> {
        let (world, nobody) = (&self.world, Caller::default());
        let view = |id, seen: &Seen<Projects>| {
            let project = &seen.record.state;
            let is_there = || find(world, &nobody, Subject::Project(id)).is_ok();
            Ok((wanted(project) && is_there()).then(|| project.clone()))
        };
        match organization {
            Some(id) => {
                let entry = format!("organization/{id}");
                pagination::page::<Projects, _>(&world.store, &entry, page, view)
            }
            None => pagination::whole::<Projects, _>(&world.store, page, view),
        }
    }
}

impl Serves<GetProject> for Platform {
    async fn serve(&self, cx: &Call, _: GetProject) -> Result<Project, Fault> {
        Ok(cx.place.project()?.1.record.state.clone())
    }
}

impl Serves<UpdateProject> for Platform {
    async fn serve(&self, cx: &Call, p: UpdateProject) -> Result<Project, Fault> {
        if let Some(members) = &p.member_ids {
            check_members(cx, members)?;
        }
        let member_ids = p.member_ids.map(Few::into_vec);
        let command = Command::Update { name: p.name, description: p.description, member_ids };
        let owners = &self.owners()?.projects;
        cx.change(&self.world, owners, p.project_id, command, |project| Ok(project.clone())).await
    }
}

fn check_members(cx: &Call, members: &[UserId]) -> Result<(), Fault> {
    let organization = &cx.place.organization()?.1.record.state;
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
        let store = &self.world.store;
        let apps = store
            .newest::<Kept<Apps>>(&format!("project/{}", p.project_id), None, usize::MAX)
            .map_err(unread)?;
        let mut contents =
            ProjectContents { apps: apps.len() as u64, instances: 0, artifacts: 0, releases: 0 };
        for app in apps {
            for kind in [InstanceKind::Backend, InstanceKind::Market] {
                let app = app.parse().map_err(|_| Fault::Internal)?;
                contents.instances += u64::from(self.instance_of(app, kind)?.is_some());
            }
            contents.artifacts +=
                store.count::<Kept<Artifacts>>(&format!("app/{app}")).map_err(unread)?;
            contents.releases +=
                store.count::<Kept<Releases>>(&format!("app/{app}")).map_err(unread)?;
        }
        let reply = DeletedProject { deleted: contents };
        let owners = &self.owners()?.projects;
        cx.change(&self.world, owners, p.project_id, Command::Delete, move |_| Ok(reply.clone()))
            .await
    }
}
