//! The rules of a project. Its stored state is also the reply.

use crate::runtime::{
    resource::{Child, Kept, Moment, Resource, Step, without_effects},
    uses::Uses,
};
use contract::{
    Description, Fault, Name, OrganizationId, Patch, UserId, projects::Project, quotas::Quota,
};
use serde_json::Value;

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

impl Resource for Projects {
    const INDEX: u16 = 2;
    type New = Project;
    type State = Project;
    type Command = Command;
    without_effects!();

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

    fn uses(_: &Project) -> Uses {
        Uses::one(Quota::Projects)
    }

    /// Earlier versions had one effect, for projects that were being deleted.
    fn adopt(kept: &mut Kept<Self>, _: &Value) {
        kept.deleting = true;
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
        Command::Delete => return Step::delete(project),
        #[cfg(feature = "failpoints")]
        #[allow(clippy::panic, reason = "it is what this command is for")]
        Command::Panic(message) => panic!("{message}"),
    }
    project.updated_at = at.now;
    Step::put(project)
}
