//! The rules of a project. Its stored state is also the reply.

use crate::{
    runtime::resource::{Child, Kept, Moment, Resource, Retry, Step, Work},
    world::World,
};
use contract::{
    Description, Fault, Name, OrganizationId, Patch, ProjectId, UserId,
    projects::{Project, ProjectState},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, Copy)]
pub struct Projects;

#[derive(Debug, Clone)]
pub enum Command {
    Update {
        name: Option<Name>,
        description: Patch<Description>,
        member_ids: Option<Vec<UserId>>,
    },
    /// Remove these users from the member list, because they left the organization.
    Unlist(Vec<UserId>),
    /// Delete the project and everything under it.
    Delete,
    /// Panic, for tests.
    #[cfg(feature = "failpoints")]
    Panic(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    RemoveApps,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// No app is left.
    Empty,
    /// Apps are still being deleted.
    NotYet,
}

impl Resource for Projects {
    const INDEX: u16 = 2;
    type New = Project;
    type State = Project;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn create(_: &Moment<Self>, project: Project) -> Result<Step<Self>, Fault> {
        Ok(Step::put(project))
    }

    fn on_command(
        project: Project,
        at: &Moment<Self>,
        command: Command,
    ) -> Result<Step<Self>, Fault> {
        Ok(on_command(project, at, command))
    }

    fn on_outcome(_: Project, _: &Moment<Self>, outcome: Outcome) -> Step<Self> {
        match outcome {
            Outcome::Empty => Step::remove(),
            Outcome::NotYet => Step::keep(),
        }
    }

    fn next(project: &Project) -> Option<Work<Effect>> {
        (project.state == ProjectState::Deleting).then(|| Work::now(Effect::RemoveApps))
    }

    fn is_deleted(project: &Project) -> bool {
        project.state == ProjectState::Deleting
    }

    fn perform(
        effect: Effect,
        id: ProjectId,
        _: Arc<Kept<Self>>,
        world: Arc<World>,
    ) -> LocalBoxFuture<'static, Result<Outcome, Retry>> {
        Box::pin(super::effects::perform(effect, id, world))
    }
}

impl Child for Projects {
    fn parent(project: &Project) -> Option<OrganizationId> {
        Some(project.organization_id)
    }

    fn delete() -> Command {
        Command::Delete
    }
}

fn on_command(mut project: Project, at: &Moment<Projects>, command: Command) -> Step<Projects> {
    match command {
        Command::Update { name, description, member_ids } => {
            project.name = name.unwrap_or(project.name);
            description.apply(&mut project.description);
            project.member_ids = member_ids.unwrap_or(project.member_ids);
        }
        Command::Unlist(users) => {
            project.member_ids.retain(|user| !users.contains(user));
            return Step::put(project);
        }
        Command::Delete => {
            project.state = ProjectState::Deleting;
            project.updated_at = at.now;
            return Step::put(project);
        }
        #[cfg(feature = "failpoints")]
        #[allow(clippy::panic, reason = "it is what this command is for")]
        Command::Panic(message) => panic!("{message}"),
    }
    project.updated_at = at.now;
    Step::put(project)
}
