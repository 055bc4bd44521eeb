//! Checks the services of a new template version: everything that a container is made of, once, so
//! that a published version can run.

use super::placeholder;
use contract::{
    FieldProblem,
    images::{DockerImage, ImageVersionState},
    instances::{InstanceKind, Role},
    templates::{DatabaseEngine, HealthCheck, TemplateService},
};

/// The problems of the services, field by field. `image` looks up the image of a service.
pub(crate) fn problems<'a>(
    kind: InstanceKind,
    services: &'a [TemplateService],
    image: impl Fn(&'a TemplateService) -> Option<&'a DockerImage>,
) -> Vec<FieldProblem> {
    let mut found = Vec::new();
    if !services.iter().any(|service| service.role == Role::Server) {
        found.push(problem("services", "must have one with the role server"));
    }
    for (at, service) in services.iter().enumerate() {
        let mut say = |field: &str, text: String| {
            found.push(problem(&format!("services[{at}].{field}"), &text));
        };
        if services.iter().take(at).any(|before| before.role == service.role) {
            say("role", "is there already; each role can be there once".into());
        }
        if kind == InstanceKind::Backend
            && matches!(service.role, Role::Dashboard | Role::Storefront)
        {
            say("role", "belongs to market templates".into());
        }
        check_image(service, image(service), &mut say);
        check_shape(service, &mut say);
        for (field, env) in [("env", &service.env), ("defaultEnv", &service.default_env)] {
            for (name, value) in env.iter() {
                if let Err(wrong) = placeholder::pieces(value.as_str()) {
                    say(&format!("{field}.{name}"), wrong);
                }
            }
        }
    }
    found
}

fn check_image(
    service: &TemplateService,
    image: Option<&DockerImage>,
    say: &mut impl FnMut(&str, String),
) {
    let Some(image) = image else {
        return say("imageId", "there is no such image; register it first".into());
    };
    let version = image.versions.iter().find(|v| v.version == service.image_version);
    match version.map(|version| version.state) {
        None => say("imageVersion", format!("{} has no such version", image.name)),
        Some(ImageVersionState::Deprecated) => {
            say("imageVersion", format!("this version of {} is deprecated", image.name));
        }
        Some(ImageVersionState::Active) => {}
    }
}

fn check_shape(service: &TemplateService, say: &mut impl FnMut(&str, String)) {
    if service.port == Some(0) {
        say("port", "must be from 1 to 65535".into());
    }
    if !service.role.is_database() && service.port.is_none() {
        say("port", "is needed: this service is reached through it".into());
    }
    if service.role.is_database() && service.port.is_some() {
        say("port", "must not be there: databases are reached by their own instance only".into());
    }
    if matches!(service.health_check, Some(HealthCheck::Http(_))) && service.port.is_none() {
        say("healthCheck", "over HTTP needs a port; use a command".into());
    }
    if service.memory_mb.is_some_and(|mb| !(64..=65_536).contains(&mb)) {
        say("memoryMb", "must be from 64 to 65536".into());
    }
    let fits = service.database.as_ref().map(|database| (service.role, database.engine));
    match fits {
        None
        | Some(
            (Role::SqlDb, DatabaseEngine::Postgresql) | (Role::DocumentDb, DatabaseEngine::Mongodb),
        ) => {}
        Some((Role::SqlDb | Role::DocumentDb, _)) => {
            say("database.engine", "does not fit the role".into());
        }
        Some(_) => say("database", "belongs to the roles documentDb and sqlDb".into()),
    }
    if service.role.is_database() && service.database.is_none() {
        say("database", "is needed: it says how this service is dumped and restored".into());
    }
    if service.role.is_database() && service.volume.is_none() {
        say("volume", "is needed: without one the data goes with the container".into());
    }
}

fn problem(field: &str, text: &str) -> FieldProblem {
    FieldProblem { field: field.to_owned(), problem: text.to_owned() }
}
