//! The search over pages, which the command palette shows, too.

use super::{MENU, reference};
use crate::{
    answer::{Answer, Frame, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{Limit, projects::GetProjects};
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/search", web::get().to(search)).route("/search/results", web::get().to(results));
}

/// The most functions that a search shows.
const MOST: usize = 20;

#[derive(Deserialize)]
struct Wanted {
    #[serde(default)]
    q: String,
}

/// A page that fits.
struct Place {
    kind: &'static str,
    label: String,
    address: String,
}

#[derive(Template)]
#[template(path = "search.html")]
struct Search {
    frame: Frame,
    wanted: String,
    places: Vec<Place>,
}

#[derive(Template)]
#[template(path = "search_results.html")]
struct Results {
    places: Vec<Place>,
}

async fn search(visitor: Visitor, wanted: web::Query<Wanted>) -> Answer {
    let wanted = wanted.into_inner().q;
    let frame = Frame::of(&visitor, "Search").await?;
    let places = find(&visitor, &wanted).await?;
    page(&Search { frame, wanted, places })
}

async fn results(visitor: Visitor, wanted: web::Query<Wanted>) -> Answer {
    page(&Results { places: find(&visitor, &wanted.q).await? })
}

/// The pages of the menu, the projects and the functions whose name has all words.
async fn find(visitor: &Visitor, wanted: &str) -> Result<Vec<Place>, crate::answer::Refused> {
    let words: Vec<String> = wanted.split_whitespace().map(str::to_lowercase).collect();
    let fits = |label: &str| {
        let label = label.to_lowercase();
        words.iter().all(|word| label.contains(word))
    };
    let menu =
        MENU.iter().map(|(label, address)| ("Page", (*label).to_owned(), (*address).to_owned()));
    // The service looks for one word, in all projects; the others are looked for here.
    let query = words.iter().max_by_key(|word| word.len()).and_then(|word| word.parse().ok());
    let all = GetProjects { organization_id: None, query, limit: Limit::MOST, cursor: None };
    let projects = visitor.read(&all).await?.items.into_iter();
    let projects = projects.map(|p| ("Project", p.name.to_string(), format!("/projects/{}", p.id)));
    let named = menu.chain(projects).filter(|(_, label, _)| fits(label));
    let groups = if words.is_empty() { Vec::new() } else { reference::find(wanted) };
    let functions = groups.into_iter().flat_map(|group| group.functions).take(MOST);
    let functions =
        functions.map(|f| ("Function", f.name.to_owned(), format!("/reference/{}", f.name)));
    let place = |(kind, label, address)| Place { kind, label, address };
    Ok(named.chain(functions).map(place).collect())
}
