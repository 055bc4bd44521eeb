//! The documentation, for everybody, also before they sign in.

use crate::{
    frame::Frame,
    response::{PageResult, Refused, page},
    visitor::Visitor,
};
use actix_web::web;
use askama::Template;
use contract::{Fault, PUBLISHED};
use handbook::{Chapter, Page, Part};
use messages::Messages;

/// The pages of the API have places of their own.
const APART: [(&str, &str); 2] = [("REFERENCE.md", "/reference"), ("EXAMPLES.md", "/reference")];
/// Who opens the documentation reads this first.
const FIRST: &str = "concepts";

pub fn configure(app: &mut web::ServiceConfig) {
    app.route("/docs", web::get().to(first)).route("/docs/{path:.*}", web::get().to(show));
}

#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage {
    frame: Frame,
    parts: &'static [Part],
    /// The path of the chapter that is shown.
    path: String,
    page: Page,
}

async fn first(visitor: Visitor) -> PageResult {
    show_at(&visitor, FIRST.to_owned()).await
}

async fn show(visitor: Visitor, path: web::Path<String>) -> PageResult {
    show_at(&visitor, path.into_inner()).await
}

async fn show_at(visitor: &Visitor, path: String) -> PageResult {
    let found = handbook::page(&path, target).ok_or(Refused(Fault::NotFound("page")))?;
    let frame = match Frame::of(visitor, |_| found.title.clone()).await {
        Err(Refused(Fault::Unauthenticated(_))) => Frame::open(visitor, |_| found.title.clone()),
        frame => frame?.below_page(Messages::menu_documentation, "/docs"),
    };
    page(&DocsPage { frame, parts: handbook::parts(), path, page: found })
}

/// Where a link to a file of the documentation leads. Other files are in the repository only.
fn target(file: &str, fragment: Option<&str>) -> Option<String> {
    if APART.iter().any(|(apart, _)| *apart == file) {
        let functions = PUBLISHED.iter().flat_map(|group| group.functions);
        let mut named = functions.filter(|f| Some(f.name.to_lowercase().as_str()) == fragment);
        return Some(
            named.next().map_or("/reference".into(), |f| format!("/reference/{}", f.name)),
        );
    }
    let known = handbook::parts().iter().flat_map(|part| &part.chapters);
    let chapter = known.into_iter().find(|chapter| chapter.file == file)?;
    let fragment = fragment.map(|slug| format!("#{slug}")).unwrap_or_default();
    Some(format!("{}{fragment}", address(chapter)))
}

/// The page of a chapter.
fn address(chapter: &Chapter) -> String {
    let apart = APART.iter().find(|(file, _)| *file == chapter.file);
    apart.map_or_else(|| format!("/docs/{}", chapter.path()), |(_, page)| (*page).to_owned())
}

/// The chapters and headings that contain all words: what is found, its chapter, and its address.
pub fn find(words: &[String]) -> impl Iterator<Item = (String, Option<String>, String)> {
    let fits = |text: &str| {
        let text = text.to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    let chapters = handbook::parts().iter().flat_map(|part| &part.chapters);
    chapters.flat_map(move |chapter| {
        let place = address(chapter);
        let own = fits(&chapter.title).then(|| (chapter.title.clone(), None, place.clone()));
        let headings = handbook::headings(chapter.path()).iter().skip(1);
        let named = headings.filter(move |heading| fits(&heading.text)).map(move |heading| {
            let address = format!("{place}#{}", heading.slug);
            (heading.text.clone(), Some(chapter.title.clone()), address)
        });
        own.into_iter().chain(named)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_the_documentation_lead_to_pages() {
        assert_eq!(target("BUILDS.md", Some("runners")).as_deref(), Some("/docs/BUILDS#runners"));
        let reference = target("REFERENCE.md", Some("svc_getartifact"));
        assert_eq!(reference.as_deref(), Some("/reference/svc_getArtifact"));
        assert_eq!(target("../README.md", None), None);
        assert!(handbook::page(FIRST, target).is_some());
    }

    #[test]
    fn a_message_is_found_by_its_words() {
        let found: Vec<_> = find(&["runners".to_owned()]).collect();
        assert!(found.iter().any(|(_, _, address)| address == "/docs/BUILDS#runners"), "{found:?}");
    }
}
