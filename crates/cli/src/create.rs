//! `svc project create` and `svc app create`.

use crate::{
    Context,
    args::{AppCommand, ProjectCommand},
    failure::Failure,
    printer::{Fields, platforms},
};
use contract::{apps::CreateApp, projects::CreateProject};

pub fn project(cx: &Context<'_>, command: ProjectCommand) -> Result<(), Failure> {
    let ProjectCommand::Create { name, organization } = command;
    let params = CreateProject { name, organization_id: organization, description: None };
    let project = cx.client()?.call(&params)?;
    cx.printer.reply(&project, |project| {
        Fields::new().with("id", project.id).with("name", &project.name)
    })?;
    cx.printer.note(format_args!("next: svc app create NAME --project {}", project.id));
    Ok(())
}

pub fn app(cx: &Context<'_>, command: AppCommand) -> Result<(), Failure> {
    let AppCommand::Create { name, project, platform } = command;
    let platforms_of_app = match platform.is_empty() {
        true => None,
        false => Some(Failure::list("--platform", platform)?),
    };
    let params = CreateApp {
        project_id: project,
        name,
        platforms: platforms_of_app,
        bundle_id: None,
        package_name: None,
    };
    let app = cx.client()?.call(&params)?;
    cx.printer.reply(&app, |app| {
        let shown = Fields::new().with("id", app.id).with("name", &app.name);
        shown.with("platforms", platforms(&app.platforms))
    })?;
    cx.printer.note(format_args!("next: export SVC_APP_ID={}", app.id));
    Ok(())
}
