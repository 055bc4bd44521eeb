//! What the stores have of an app, and what they say.

use super::{
    apps::AppTab,
    releases::{self, ReleasesQuery},
};
use crate::{
    list::{ListPart, Rest},
    response::{Frame, PageResult, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::releases::{Publication, Release, Target};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/publishing", web::get().to(show));
}

/// A target with its publications: those that users get now, then the newest.
struct TargetPublications {
    target: &'static str,
    publications: Vec<(Release, Publication)>,
}

#[derive(Template)]
#[template(path = "publishing.html")]
struct PublishingPage {
    frame: Frame,
    tab: AppTab,
    stores: Vec<TargetPublications>,
    rest: Rest,
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
        target: target.name(),
        publications: of(&items, target),
    });
    page(&PublishingPage { frame, tab, stores: stores.collect(), rest })
}

fn of(releases: &[Release], target: Target) -> Vec<(Release, Publication)> {
    let all = releases.iter().flat_map(|release| {
        release.publications.iter().map(move |publication| (release, publication))
    });
    let of_target = all.filter(|(_, publication)| publication.target == target);
    of_target.map(|(release, publication)| (release.clone(), publication.clone())).collect()
}
