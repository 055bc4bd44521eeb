//! The documentation that the program carries.

use super::{register, start};
use crate::support::service::Service;
use std::collections::BTreeSet;

/// The addresses of pages of the dashboard to which a page leads, without what stands behind `#`.
fn links(html: &str) -> BTreeSet<String> {
    let links = html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let own = links.filter(|link| link.starts_with("/docs") || link.starts_with("/reference"));
    own.map(|link| link.split('#').next().unwrap().to_owned()).collect()
}

#[test]
fn everybody_reads_the_documentation_and_every_page_of_it_is_there() {
    let service = Service::start_with(&[("SVC_ANONYMOUS_TIER", "enterprise")]);
    let get = |path: &str| {
        let page = service.http.get(format!("{}{path}", service.dashboard())).send().unwrap();
        (page.status().as_u16(), page.text().unwrap())
    };
    let (status, first) = get("/docs");
    assert!(status == 200 && first.contains("glossary"), "{first}");
    let chapters: Vec<_> = links(&first).into_iter().filter(|l| l.starts_with("/docs/")).collect();
    assert!(chapters.len() > 30, "{chapters:?}");
    for chapter in chapters {
        let (status, page) = get(&chapter);
        assert_eq!(status, 200, "{chapter}");
        for link in links(&page).into_iter().filter(|link| link.starts_with("/docs")) {
            let path = link.strip_prefix("/docs/").unwrap_or("concepts");
            assert!(handbook::page(path, |_, _| None).is_some(), "{chapter}: {link}");
        }
        assert!(page.len() < 100_000, "{chapter} has {} bytes", page.len());
    }
    assert_eq!(get("/docs/no-such-page").0, 404);
    assert_eq!(get("/docs/../README").0, 404);
}

#[test]
fn the_documentation_is_found_and_read_in_a_browser() {
    let Some((browser, judge)) = start("the_documentation_is_found_and_read_in_a_browser") else {
        return;
    };
    let service = Service::start();
    browser.open(&format!("{}/docs/troubleshooting", service.dashboard()));
    judge.page(&browser, "docs-stranger");
    register(&browser, &service, "grace@example.com");
    browser.click("link", "Documentation");
    judge.page(&browser, "docs");
    browser.click("link", "Builds");
    browser.find("heading", "Runners");
    judge.page(&browser, "docs-builds");
    // The search finds a heading by its words.
    browser.open(&format!("{}/search?q=rate+limits", service.dashboard()));
    browser.click("link", "Rate limits");
    browser.find("heading", "Operating");
}
