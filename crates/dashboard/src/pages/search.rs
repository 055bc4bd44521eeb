//! The search over pages, which the command palette shows, too.

use super::{apps, docs, places, reference};
use crate::{
    frame::{Frame, View},
    response::{PageResult, Refused, page},
    side::Side,
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::home::{Search, SearchKind, SearchResult as Thing};
use messages::{Messages, Sentence};
use serde::Deserialize;

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/search", web::get().to(search))
        .route("/search/results", web::get().to(show_results));
}

/// The most functions that a search shows, and the most places of the documentation.
const MOST: usize = 20;

#[derive(Deserialize)]
struct SearchQuery {
    #[serde(default)]
    q: String,
}

/// A page that fits.
struct SearchResult {
    kind: String,
    label: String,
    /// The app, project or organization that it belongs to.
    within: Option<String>,
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
    frame: View,
    results: Vec<SearchResult>,
}

async fn search(visitor: Visitor, query: web::Query<SearchQuery>) -> PageResult {
    let query = query.into_inner().q;
    let frame = Frame::of(&visitor, Messages::menu_search).await?;
    let results = find(&visitor, &query).await?;
    page(&SearchPage { frame, query, results })
}

async fn show_results(visitor: Visitor, query: web::Query<SearchQuery>) -> PageResult {
    page(&SearchResults { frame: visitor.view(), results: find(&visitor, &query.q).await? })
}

/// What a person can do, what else they may call it, and the page on which it is done.
const ACTIONS: [(Sentence, Sentence, &str); 11] = [
    (Messages::new_project, Messages::find_new_project, "/projects#new-project"),
    (Messages::new_organization, Messages::find_new_organization, "/organizations"),
    (Messages::invite_somebody, Messages::find_invite_somebody, "/organizations"),
    (Messages::release_a_file, Messages::find_release_a_file, "/"),
    (Messages::make_backend_or_market, Messages::find_make_backend_or_market, "/projects"),
    (Messages::change_my_account, Messages::find_change_my_account, "/account"),
    (Messages::new_deploy_token, Messages::find_new_deploy_token, "/account/tokens"),
    (Messages::see_who_did_what, Messages::find_see_who_did_what, "/activity"),
    (Messages::audit_log_of_my_account, Messages::find_audit_log_of_my_account, "/account/audit"),
    (Messages::my_webhooks, Messages::find_my_webhooks, "/account/webhooks"),
    (Messages::menu_sign_out, Messages::find_menu_sign_out, "/account"),
];

/// Things by their names, then tabs of apps, pages and actions, then the documentation and functions.
/// Without words: the menu, with what the person works on.
async fn find(visitor: &Visitor, query: &str) -> Result<Vec<SearchResult>, Refused> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let side = Side::of_user(&visitor.user().await?);
    let say = visitor.say();
    let result = |kind: String, label, address| SearchResult { kind, label, within: None, address };
    if words.is_empty() {
        let menu = side.with_projects(visitor).await?.entries();
        return Ok(menu.map(|entry| result(say.page(), entry.label, entry.address)).collect());
    }
    let mut results: Vec<_> =
        things(visitor, query).await?.into_iter().map(|found| thing(say, found)).collect();
    results.extend(tabs(visitor, &words).await?);
    let fits = |label: &str| {
        let label = label.to_lowercase();
        words.iter().all(|word| label.contains(word))
    };
    let pages = side.entries().filter(|entry| fits(&entry.label));
    results.extend(pages.map(|entry| result(say.page(), entry.label, entry.address)));
    let actions = ACTIONS.iter();
    let actions = actions.filter(|(label, also, _)| fits(&format!("{} {}", label(say), also(say))));
    results
        .extend(actions.map(|(label, _, at)| result(say.action(), label(say), (*at).to_owned())));
    results.extend(docs::find(&words).take(MOST).map(|(label, within, address)| SearchResult {
        kind: say.menu_documentation(),
        label,
        within,
        address,
    }));
    let functions = reference::find(query).into_iter().flat_map(|group| group.functions);
    let functions =
        functions.take(MOST).map(|f| (f.name.to_owned(), format!("/reference/{}", f.name)));
    results.extend(functions.map(|(name, address)| result(say.function(), name, address)));
    Ok(results)
}

/// What the service finds. Words that it refuses find nothing.
async fn things(visitor: &Visitor, query: &str) -> Result<Vec<Thing>, Refused> {
    let Ok(query) = query.parse() else { return Ok(Vec::new()) };
    Ok(visitor.read(&Search { query }).await?.items)
}

fn thing(say: Messages, found: Thing) -> SearchResult {
    let kind = match found.kind {
        SearchKind::App => say.app(),
        SearchKind::Project => say.project(),
        SearchKind::Instance => say.instance(),
        SearchKind::Release => say.release_label(),
        SearchKind::Artifact => say.artifact(),
        SearchKind::Organization => say.organization(),
        SearchKind::Person => say.person(),
    };
    // A person has no page: the organization shows who they are.
    let organization = found.organization_id.map(|id| id.to_string());
    let place = organization.as_deref().unwrap_or(&found.id);
    let address = places::of(place, found.app_id).unwrap_or_else(|| "/".to_owned());
    SearchResult { kind, label: found.name, within: found.within, address }
}

/// The tabs that the last word names, of the apps that the words before it name.
async fn tabs(visitor: &Visitor, words: &[String]) -> Result<Vec<SearchResult>, Refused> {
    let say = visitor.say();
    let Some((last, others)) = words.split_last() else { return Ok(Vec::new()) };
    let named = |label: &str| last.len() >= 3 && label.to_lowercase().starts_with(last.as_str());
    let named: Vec<_> = apps::TABS.iter().filter(|(_, label)| named(&label(say))).collect();
    if named.is_empty() || others.is_empty() {
        return Ok(Vec::new());
    }
    let found = things(visitor, &others.join(" ")).await?;
    let of_apps = found.iter().filter(|thing| thing.kind == SearchKind::App);
    let tabs = of_apps.flat_map(|app| {
        named.iter().map(move |(tab, label)| SearchResult {
            kind: say.tab(),
            label: format!("{}: {}", app.name, label(say)),
            within: app.within.clone(),
            address: format!("/apps/{}{tab}", app.id),
        })
    });
    Ok(tabs.collect())
}
