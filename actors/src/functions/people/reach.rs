//! The projects and apps that a person may see.

use crate::{
    call::authz::{memberships, reaches_project},
    kinds::{
        people::{apps::Apps, organizations::Organizations, projects::Projects},
        world::World,
    },
    runtime::{entries::Under, pagination},
};
use contract::{
    AppId, Fault, Name, UserId,
    projects::{Project, ProjectState},
};
use std::collections::HashMap;

/// The most projects of others that are skipped to find those of the person.
const READ: usize = 1_000;

/// So many of the newest projects.
pub fn projects(world: &World, user: UserId, most: usize) -> Result<Vec<Project>, Fault> {
    let memberships = &memberships(world, user)?.organizations;
    let entries: Vec<_> = memberships.keys().map(|id| Under::<Organizations>(*id)).collect();
    let mut projects = Vec::new();
    for found in pagination::newest_of::<Projects, _>(&world.store, &entries, None).take(READ) {
        let (_, seen) = found?;
        let membership = memberships.get(&seen.organization_id);
        let is_reached = membership.is_some_and(|m| reaches_project(m, &seen, user));
        if is_reached && !seen.is_deleted() && seen.state.state == ProjectState::Active {
            projects.push(seen.state.clone());
        }
        if projects.len() == most {
            break;
        }
    }
    Ok(projects)
}

/// The newest apps of these projects, with their project.
pub fn apps(
    world: &World,
    projects: Vec<Project>,
    most: usize,
) -> Result<Vec<(AppId, Name, Project)>, Fault> {
    let entries: Vec<_> = projects.iter().map(|project| Under::<Projects>(project.id)).collect();
    let projects: HashMap<_, _> = projects.into_iter().map(|p| (p.id, p)).collect();
    let mut apps = Vec::new();
    for found in pagination::newest_of::<Apps, _>(&world.store, &entries, None) {
        let (id, seen) = found?;
        let project = projects.get(&seen.project_id);
        if let Some(project) = project.filter(|_| !seen.is_deleted()) {
            apps.push((id, seen.name.clone(), project.clone()));
        }
        if apps.len() == most {
            break;
        }
    }
    Ok(apps)
}
