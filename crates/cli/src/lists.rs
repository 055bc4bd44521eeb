//! The list commands `svc projects`, `apps`, `artifacts` and `releases`.

use crate::{
    Context, args,
    failure::Failure,
    printer::{Table, cell, moment, platforms, word},
};
use contract::{
    Page, ProjectId,
    apps::{App, ListApps},
    artifacts::{Artifact, GetArtifacts},
    page::Limit,
    projects::{GetProjects, Project},
    releases::{GetReleases, Release},
};
use serde::Serialize;

pub fn projects(cx: &Context<'_>) -> Result<(), Failure> {
    let projects = reached_projects(cx)?;
    print(cx, &projects, |projects| {
        let table = Table::new(["ID", "NAME", "CREATED"]);
        projects.iter().fold(table, |table, project| {
            let Project { id, name, created_at, .. } = project;
            table.row([id.to_string(), name.to_string(), moment(*created_at)])
        })
    })
}

pub fn apps(cx: &Context<'_>, args: args::AppsArgs) -> Result<(), Failure> {
    let projects: Vec<ProjectId> = match args.project {
        Some(project) => vec![project],
        None => reached_projects(cx)?.items.iter().map(|project| project.id).collect(),
    };
    let client = cx.client()?;
    let mut apps = Page::new(Vec::new(), None);
    for project_id in projects {
        let limit = Limit::default();
        let page =
            client.list(true, |cursor| ListApps { project_id, query: None, limit, cursor })?;
        apps.items.extend(page.items);
    }
    print(cx, &apps, |apps| {
        let table = Table::new(["ID", "NAME", "PLATFORMS", "PROJECT", "CREATED"]);
        apps.iter().fold(table, |table, app| {
            let App { id, name, project_id, created_at, .. } = app;
            table.row([
                id.to_string(),
                name.to_string(),
                platforms(&app.platforms),
                project_id.to_string(),
                moment(*created_at),
            ])
        })
    })
}

pub fn artifacts(cx: &Context<'_>, args: args::Listing) -> Result<(), Failure> {
    let app_id = cx.settings.app(args.app)?;
    let platform = args.platform;
    let artifacts = cx.client()?.list(args.all, |cursor| GetArtifacts {
        app_id,
        platform,
        version: None,
        state: None,
        limit: Limit::default(),
        cursor,
    })?;
    print(cx, &artifacts, |artifacts| {
        let table = Table::new(["ID", "VERSION", "KIND", "STATE", "BYTES", "FROM", "CREATED"]);
        artifacts.iter().fold(table, |table, artifact| {
            let Artifact { id, version, kind, state, size, provenance, created_at, .. } = artifact;
            table.row([
                id.to_string(),
                cell(version.as_ref()),
                word(kind),
                word(state),
                cell(*size),
                word(&provenance.path),
                moment(*created_at),
            ])
        })
    })
}

pub fn releases(cx: &Context<'_>, args: args::ReleasesArgs) -> Result<(), Failure> {
    let app_id = cx.settings.app(args.app)?;
    let releases = cx.client()?.list(args.all, |cursor| GetReleases {
        app_id,
        channel: args.channel.clone(),
        state: None,
        limit: Limit::default(),
        cursor,
    })?;
    print(cx, &releases, |releases| {
        let table = Table::new(["ID", "VERSION", "CHANNEL", "STATE", "ARTIFACTS", "CREATED"]);
        releases.iter().fold(table, |table, release| {
            let Release { id, version, channel, state, artifact_ids, created_at, .. } = release;
            table.row([
                id.to_string(),
                version.to_string(),
                channel.to_string(),
                word(state),
                artifact_ids.len().to_string(),
                moment(*created_at),
            ])
        })
    })
}

/// Prints a list, and notes if it is incomplete.
pub fn print<T: Serialize>(
    cx: &Context<'_>,
    list: &Page<T>,
    table: impl FnOnce(&[T]) -> Table,
) -> Result<(), Failure> {
    cx.printer.reply(list, |list| table(&list.items))?;
    if list.next_cursor.is_some() {
        cx.printer.note("these are the newest; --all lists the rest too");
    }
    Ok(())
}

fn reached_projects(cx: &Context<'_>) -> Result<Page<Project>, Failure> {
    let limit = Limit::default();
    cx.client()?.list(true, |cursor| GetProjects {
        organization_id: None,
        query: None,
        limit,
        cursor,
    })
}
