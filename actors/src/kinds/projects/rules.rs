//! The rules of a project. What is kept is what is shown.

use crate::{
    runtime::resource::{Input, Intent, Kept, Moment, Resource, Retry, Step},
    world::World,
};
use contract::{
    Description, Fault, Name, Patch, ProjectId, UserId,
    projects::{Project, ProjectState},
};
use futures_util::future::LocalBoxFuture;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// The projects.
#[derive(Debug, Clone, Copy)]
pub struct Projects;

/// What can be asked of a project.
#[derive(Debug, Clone)]
pub enum Command {
    /// Make it.
    Create(Box<Project>),
    /// Change it.
    Update {
        /// Replaces the name.
        name: Option<Name>,
        /// Patches the description.
        description: Patch<Description>,
        /// Replaces the list.
        member_ids: Option<Vec<UserId>>,
    },
    /// Take these off its list: they are no members of the organization any more.
    Unlist(Vec<UserId>),
    /// Remove it and all below it.
    Delete,
    /// Panic, for tests.
    #[cfg(feature = "sabotage")]
    Panic(String),
}

/// What a project does outside of its record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// Remove its apps.
    RemoveApps,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// No app is left.
    Empty,
    /// Apps are still being removed.
    NotYet,
}

impl Resource for Projects {
    const KIND: &'static str = "project";
    type Id = ProjectId;
    type State = Project;
    type Command = Command;
    type Effect = Effect;
    type Outcome = Outcome;

    fn step(
        at: &Moment<Self>,
        state: Option<&Project>,
        input: Input<Self>,
    ) -> Result<Step<Self>, Fault> {
        match (state, input) {
            (None, Input::Command(Command::Create(project))) => Ok(Step::put(*project)),
            (None, Input::Command(_)) => Err(Fault::NotFound("project")),
            (None, Input::Outcome(_)) => Ok(Step::keep()),
            (Some(p), Input::Command(_)) if p.state == ProjectState::Deleting => {
                Err(Fault::NotFound("project"))
            }
            (Some(p), Input::Command(command)) => take(p.clone(), at, command),
            (Some(_), Input::Outcome(Outcome::Empty)) => Ok(Step::remove()),
            (Some(_), Input::Outcome(Outcome::NotYet)) => {
                Ok(Step::keep()
                    .intend(Intent::After(Duration::from_millis(50), Effect::RemoveApps)))
            }
        }
    }

    fn index(p: &Project) -> Vec<String> {
        vec![format!("organization/{}", p.organization_id)]
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

fn take(
    mut project: Project,
    at: &Moment<Projects>,
    command: Command,
) -> Result<Step<Projects>, Fault> {
    match command {
        Command::Create(_) => return Err(Fault::Exists("this project exists already".into())),
        Command::Update { name, description, member_ids } => {
            project.name = name.unwrap_or(project.name);
            description.apply(&mut project.description);
            project.member_ids = member_ids.unwrap_or(project.member_ids);
        }
        Command::Unlist(users) => {
            project.member_ids.retain(|user| !users.contains(user));
            return Ok(Step::put(project));
        }
        Command::Delete => {
            project.state = ProjectState::Deleting;
            project.updated_at = at.now;
            return Ok(Step::put(project).intend(Intent::Now(Effect::RemoveApps)));
        }
        #[cfg(feature = "sabotage")]
        #[allow(clippy::panic, reason = "it is what this command is for")]
        Command::Panic(message) => panic!("{message}"),
    }
    project.updated_at = at.now;
    Ok(Step::put(project))
}
