//! The search over pages, which the command palette shows, too.

use super::{MENU, reference};
use crate::{
    response::{Frame, PageResult, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{Limit, projects::GetProjects};
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/search", web::get().to(search))
        .route("/search/results", web::get().to(show_results));
}

/// The most functions that a search shows.
const MOST: usize = 20;

#[derive(Deserialize)]
struct SearchQuery {
    #[serde(default)]
    q: String,
}

/// A page that fits.
struct SearchResult {
    kind: &'static str,
    label: String,
    address: String,
}

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    frame: Frame,
    query: String,
    results: Vec<SearchResult>,
}

#[derive(Template)]
#[template(path = "search_results.html")]
struct SearchResults {
    results: Vec<SearchResult>,
}

async fn search(visitor: Visitor, query: web::Query<SearchQuery>) -> PageResult {
    let query = query.into_inner().q;
    let frame = Frame::of(&visitor, "Search").await?;
    let results = find(&visitor, &query).await?;
    page(&SearchPage { frame, query, results })
}

async fn show_results(visitor: Visitor, query: web::Query<SearchQuery>) -> PageResult {
    page(&SearchResults { results: find(&visitor, &query.q).await? })
}

/// The pages of the menu, the projects and the functions whose name has all words.
async fn find(
    visitor: &Visitor,
    query: &str,
) -> Result<Vec<SearchResult>, crate::response::Refused> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let fits = |label: &str| {
        let label = label.to_lowercase();
        words.iter().all(|word| label.contains(word))
    };
    let menu =
        MENU.iter().map(|(label, address)| ("Page", (*label).to_owned(), (*address).to_owned()));
    // The service searches all projects for one word; this searches what it found for the others.
    let longest = words.iter().max_by_key(|word| word.len()).and_then(|word| word.parse().ok());
    let all =
        GetProjects { organization_id: None, query: longest, limit: Limit::MOST, cursor: None };
    let projects = visitor.read(&all).await?.items.into_iter();
    let projects = projects.map(|p| ("Project", p.name.to_string(), format!("/projects/{}", p.id)));
    let named = menu.chain(projects).filter(|(_, label, _)| fits(label));
    let groups = if words.is_empty() { Vec::new() } else { reference::find(query) };
    let functions = groups.into_iter().flat_map(|group| group.functions).take(MOST);
    let functions =
        functions.map(|f| ("Function", f.name.to_owned(), format!("/reference/{}", f.name)));
    let result = |(kind, label, address)| SearchResult { kind, label, address };
    Ok(named.chain(functions).map(result).collect())
}
