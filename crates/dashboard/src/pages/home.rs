//! The first page: what needs the person, what is live, and what happened; and all that happened.

use super::ListQuery;
use crate::{
    form::Form,
    frame::Frame,
    list::{CURSOR, ListPart},
    response::{PageResult, form_page, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{
    Limit,
    home::{Activity, GetActivity, GetHome, Home, HomeApp, HomeInstance, LiveRelease},
    operators::Attention,
    projects::Project,
};
use messages::Messages;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/", web::get().to(show)).route("/activity", web::get().to(activity));
}

/// The most rows of a card.
const ROWS: usize = 12;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    frame: Frame,
    home: Home,
    /// The newest project of a person without apps.
    project: Option<Project>,
    recent: Vec<Activity>,
    form: Form,
}

impl HomePage {
    fn app(&self, entry: &Attention) -> Option<&HomeApp> {
        self.home.apps.iter().find(|app| Some(app.id) == entry.app_id)
    }

    /// What is live, one row for each channel of an app.
    fn live(&self) -> impl Iterator<Item = (&HomeApp, &LiveRelease)> {
        let apps = self.home.apps.iter();
        apps.flat_map(|app| app.live.iter().map(move |release| (app, release)))
    }

    fn instances(&self) -> impl Iterator<Item = (&HomeApp, &HomeInstance)> {
        let apps = self.home.apps.iter();
        apps.flat_map(|app| app.instances.iter().map(move |found| (app, found)))
    }
}

async fn show(visitor: Visitor) -> PageResult {
    show_with(&visitor, Form::default()).await
}

/// See [`show`]. The form is that of the first file.
pub async fn show_with(visitor: &Visitor, form: Form) -> PageResult {
    let frame = Frame::of(visitor, Messages::menu_home).await?;
    let home = visitor.read(&GetHome {}).await?;
    // Only who has no app yet is asked to make one in it.
    let project = match home.apps.is_empty() {
        true => visitor.newest_projects(1).await?.into_iter().next(),
        false => None,
    };
    let recent = GetActivity { organization_id: None, limit: Limit::at_most(10), cursor: None };
    let recent = visitor.read(&recent).await?.items;
    form_page(&form.clone(), &HomePage { frame, home, project, recent, form })
}

#[derive(Template)]
#[template(path = "activity.html")]
struct ActivityPage {
    frame: Frame,
    list: ListPart<Activity>,
}

async fn activity(visitor: Visitor, query: web::Query<ListQuery>) -> PageResult {
    let frame = Frame::of(&visitor, Messages::menu_activity).await?;
    let list = ListPart::read(&visitor, "/activity", query.form(), |form| {
        let (limit, cursor) = (Limit::default(), form.get(CURSOR)?);
        Ok(GetActivity { organization_id: None, limit, cursor })
    })
    .await?;
    page(&ActivityPage { frame, list })
}
