//! What the stores have of an app, and what they say.

use super::{
    apps::AppTab,
    artifacts,
    releases::{self, ReleasesQuery},
};
use crate::{
    frame::Frame,
    list::{ListPart, Rest},
    response::{PageResult, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    artifacts::Artifact,
    releases::{Publication, Release, Target},
};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/publishing", web::get().to(show));
}

/// A target with its publications: those that users get now, then the newest.
struct TargetPublications {
    target: String,
    publications: Vec<(Release, Publication)>,
}

#[derive(Template)]
#[template(path = "publishing.html")]
struct PublishingPage {
    frame: Frame,
    tab: AppTab,
    stores: Vec<TargetPublications>,
    /// The newest artifacts of the app, for the names of their files.
    artifacts: Vec<Artifact>,
    rest: Rest,
}

impl PublishingPage {
    /// The name of the file that a publication gave to its target.
    fn file(&self, publication: &Publication) -> Option<&str> {
        let found = self.artifacts.iter().find(|artifact| artifact.id == publication.artifact_id);
        found.map(|artifact| artifact.file_name.as_str())
    }
}

async fn show(
    visitor: Visitor,
    path: web::Path<String>,
    query: web::Query<ReleasesQuery>,
) -> PageResult {
    let app_id = super::id(path, "app")?;
    let (frame, tab) = AppTab::open(&visitor, app_id, "/publishing").await?;
    let at = format!("/apps/{app_id}/publishing");
    let ListPart { items, rest, .. } = releases::part_of(&visitor, app_id, &at, &query).await?;
    let stores = Target::ALL.into_iter().map(|target| TargetPublications {
        target: super::target(&visitor.say(), target),
        publications: of(&items, target),
    });
    let (stores, artifacts) = (stores.collect(), artifacts::verified(&visitor, app_id).await?);
    page(&PublishingPage { frame, tab, stores, artifacts, rest })
}

fn of(releases: &[Release], target: Target) -> Vec<(Release, Publication)> {
    let all = releases.iter().flat_map(|release| {
        release.publications.iter().map(move |publication| (release, publication))
    });
    let of_target = all.filter(|(_, publication)| publication.target == target);
    of_target.map(|(release, publication)| (release.clone(), publication.clone())).collect()
}
