//! What the stores have of an app, and what they say.

use super::{apps::Tab, releases};
use crate::{
    answer::{Answer, Frame, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::releases::{Publication, Release, Target};

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/apps/{id}/publishing", web::get().to(show));
}

/// A target with its publications, newest first.
struct Store {
    target: &'static str,
    publications: Vec<(Release, Publication)>,
}

#[derive(Template)]
#[template(path = "publishing.html")]
struct Publishing {
    frame: Frame,
    tab: Tab,
    stores: Vec<Store>,
}

async fn show(visitor: Visitor, path: web::Path<String>) -> Answer {
    let app_id = super::id(path, "app")?;
    let (frame, tab) = Tab::open(&visitor, app_id, "/publishing").await?;
    let releases = releases::of_app(&visitor, app_id).await?;
    let stores = Target::ALL
        .into_iter()
        .map(|target| Store { target: target.name(), publications: of(&releases, target) });
    page(&Publishing { frame, tab, stores: stores.collect() })
}

fn of(releases: &[Release], target: Target) -> Vec<(Release, Publication)> {
    let all = releases.iter().flat_map(|release| {
        release.publications.iter().map(move |publication| (release, publication))
    });
    let of_target = all.filter(|(_, publication)| publication.target == target);
    of_target.map(|(release, publication)| (release.clone(), publication.clone())).collect()
}
