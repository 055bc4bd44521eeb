//! `svc publisher`: CI workflows that upload without a stored secret.

use crate::{
    Context,
    args::PublisherCommand,
    failure::Failure,
    lists,
    printer::{Fields, Table, cell, moment},
};
use contract::{
    page::Limit,
    trusted_publishers::{
        AddTrustedPublisher, GetTrustedPublishers, RemoveTrustedPublisher, TrustedPublisher,
    },
};

pub fn publisher(cx: &Context<'_>, command: PublisherCommand) -> Result<(), Failure> {
    let client = cx.client()?;
    match command {
        PublisherCommand::Add { repository, workflow, environment, git_ref, events, app } => {
            let events = Failure::list("--event", events)?;
            let added = client.call(&AddTrustedPublisher {
                app_id: cx.settings.app(app)?,
                repository,
                workflow,
                environment,
                git_ref,
                events,
                repository_id: None,
                repository_owner_id: None,
                issuer: None,
            })?;
            cx.printer.reply(&added, fields)?;
            cx.printer.note("next: grant `id-token: write` to the job, and pass it no SVC_TOKEN");
            Ok(())
        }
        PublisherCommand::List { app, all } => {
            let app_id = cx.settings.app(app)?;
            let limit = Limit::default();
            let publishers =
                client.list(all, |cursor| GetTrustedPublishers { app_id, limit, cursor })?;
            lists::print(cx, &publishers, |publishers| {
                let headings = ["ID", "REPOSITORY", "WORKFLOW", "REF", "ENVIRONMENT", "CREATED"];
                publishers.iter().fold(Table::new(headings), |table, publisher| {
                    let environment = publisher.environment.as_ref();
                    table.row([
                        publisher.id.to_string(),
                        publisher.repository.to_string(),
                        publisher.workflow.to_string(),
                        cell(publisher.git_ref.as_ref().map(|git_ref| git_ref.as_str())),
                        cell(environment.map(|environment| environment.as_str())),
                        moment(publisher.created_at),
                    ])
                })
            })
        }
        PublisherCommand::Remove { publisher } => {
            let removed = client.call(&RemoveTrustedPublisher { publisher_id: publisher })?;
            cx.printer.reply(&removed, |removed| format!("{} is removed", removed.deleted))
        }
    }
}

fn fields(publisher: &TrustedPublisher) -> Fields {
    let events: Vec<_> = publisher.events.iter().map(|event| event.as_str()).collect();
    Fields::new()
        .with("id", publisher.id)
        .with("repository", publisher.repository.as_str())
        .with("workflow", publisher.workflow.as_str())
        .with_some("ref", publisher.git_ref.as_ref().map(|git_ref| git_ref.as_str()))
        .with("events", events.join(", "))
        .with_some("environment", publisher.environment.as_ref().map(|e| e.as_str()))
}
