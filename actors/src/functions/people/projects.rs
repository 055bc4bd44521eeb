//! The handlers of the group Projects.

use super::apps::add_contents;
use crate::{
    call::{
        authz::{memberships, reaches_project},
        context::Call,
        lookup::Ancestry,
        platform::Platform,
    },
    functions::commerce::checkouts::unsettled::{Whole, refuse_unsettled},
    kinds::{
        people::{
            apps::Apps,
            organizations::Organizations,
            projects::{Command, Projects},
        },
        world::World,
    },
    runtime::{
        entries::Under,
        pagination::{self, is_meant},
    },
};
use contract::{
    BoundedSet, Cursor, Description, Fault, Limit, OrganizationId, Page, ProjectId, Serves,
    Subject, UserId,
    apps::Contents,
    authentication::Role,
    projects::{
        CreateProject, DeleteProject, DeletedProject, GetProject, GetProjects, Project,
        ProjectState, UpdateProject,
    },
    text::Query,
};
use std::ops::ControlFlow;
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
            name: p.name.into(),
            description: p.description,
            member_ids: Vec::new(),
            state: ProjectState::Active,
            created_at: cx.now,
            updated_at: cx.now,
        };
        let show = |project: &Project| Ok(project.clone());
        cx.to::<Projects>(id).create(project, show).await
    }
}

impl Serves<GetProjects> for Platform {
    async fn serve(&self, cx: &Call, p: GetProjects) -> Result<Page<Project>, Fault> {
        let Some(user) = cx.listed_user()?.map(|user| user.id) else {
            return all_projects(&self.world, p.organization_id, (p.limit, p.cursor), |project| {
                is_searched(p.query.as_ref(), project)
            });
        };
        let memberships = &memberships(&self.world, user)?;
        let wanted = |id| p.organization_id.is_none_or(|only| only == id);
        let organizations = memberships.organizations.iter().filter(|(id, _)| wanted(**id));
        let entries: Vec<_> = organizations.map(|(id, _)| Under::<Organizations>(*id)).collect();
        let show = |_, seen: &Snapshot<Projects>| {
            let membership = memberships.organizations.get(&seen.organization_id);
            let is_shown = seen.state.state == ProjectState::Active
                && membership.is_some_and(|membership| reaches_project(membership, seen, user))
                && is_searched(p.query.as_ref(), seen);
            Ok(ControlFlow::Continue(is_shown.then(|| seen.state.clone())))
        };
        let (store, is_first) = (&self.world.store, p.cursor.is_none());
        let list = |after: Option<&ProjectId>| pagination::newest_of(store, &entries, after);
        let page = pagination::search(list, (p.limit, p.cursor), show)?;
        // Only who reaches every project of an organization reaches as many as it has.
        let reaches_all = |id: &OrganizationId| {
            memberships.organizations.get(id).is_some_and(|m| m.role >= Role::Supervisor)
        };
        let is_countable = p.query.is_none() && entries.iter().all(|entry| reaches_all(&entry.0));
        pagination::with_total(page, is_first, |most| {
            let count = |entry| store.newest::<Projects>(entry, None).count_up_to(most);
            is_countable.then(|| entries.iter().map(count).sum()).transpose()
        })
    }
}

/// Whether a search means this project.
fn is_searched(query: Option<&Query>, project: &Project) -> bool {
    let description = project.description.as_ref().map_or("", Description::as_str);
    is_meant(query, &project.id.to_string(), &[project.name.as_str(), description])
}

/// Lists the projects of one organization or of all, whether the caller is a member or not.
pub fn all_projects(
    world: &World,
    organization: Option<OrganizationId>,
    page: (Limit, Option<Cursor>),
    wanted: impl Fn(&Project) -> bool,
) -> Result<Page<Project>, Fault> {
    let store = &world.store;
    let view = |id, seen: &Snapshot<Projects>| {
        let is_there = || Ancestry::of(store, Subject::Project(id), None).is_ok();
        Ok((wanted(seen) && is_there()).then(|| seen.state.clone()))
    };
    match organization {
        Some(id) => pagination::page(store, &Under::<Organizations>(id), page, view),
        None => pagination::whole(store, page, view),
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
        let command = Command::Update {
            name: p.name.map(Into::into),
            description: p.description,
            member_ids,
        };
        cx.to::<Projects>(p.project_id).change(command, |project| Ok(project.clone())).await
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
        refuse_unsettled(&self.world, Whole::Project(p.project_id)).await?;
        let mut apps = self.world.store.oldest::<Apps>(&Under::<Projects>(p.project_id), None);
        let (mut contents, mut kept_instances) = (Contents::default(), Vec::new());
        while let Some(page) = apps.next_keys().await? {
            for app in page {
                add_contents(&self.world, app, &mut contents, &mut kept_instances).await?;
            }
        }
        let reply = DeletedProject { deleted: contents, kept_instances };
        cx.to::<Projects>(p.project_id).change(Command::Delete, move |_| Ok(reply.clone())).await
    }
}
