//! Makes HTML of Markdown: tables that scroll, headings with an address, and links that lead somewhere.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use std::collections::BTreeMap;

/// A page of the documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its first heading.
    pub title: String,
    /// Without that heading.
    pub html: String,
    /// The headings below that.
    pub headings: Vec<Heading>,
}

/// A heading of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// From 1, which is the title.
    pub level: u8,
    /// Without marks.
    pub text: String,
    /// What stands behind `#` in an address.
    pub slug: String,
}

fn parse(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

pub(crate) fn page(
    file: &str,
    text: &str,
    link: impl Fn(&str, Option<&str>) -> Option<String>,
) -> Page {
    let all = headings(text);
    let mut below = all.iter();
    let mut events = Vec::new();
    // The title is shown apart, and what has no address is plain text.
    let (mut in_title, mut plain) = (false, 0_u32);
    for event in parse(text) {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => {
                below.next();
                in_title = true;
            }
            Event::End(TagEnd::Heading(HeadingLevel::H1)) => in_title = false,
            _ if in_title => {}
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                let id = below.next().map(|heading| CowStr::from(heading.slug.clone()));
                events.push(Event::Start(Tag::Heading { level, id, classes, attrs }));
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                match address(file, &dest_url, &link) {
                    Some(to) => {
                        let dest_url = CowStr::from(to);
                        events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                    }
                    None => plain += 1,
                }
            }
            // A link that shows the name of a file shows what the file is called.
            Event::Text(name) if name.ends_with(".md") => {
                let title = inner(file, &name).and_then(|(target, _)| crate::title_of(&target));
                events.push(Event::Text(title.map_or(name, CowStr::from)));
            }
            // Links do not nest.
            Event::End(TagEnd::Link) if plain > 0 => plain -= 1,
            Event::Start(Tag::Table(columns)) => {
                events.push(Event::Html("<div class=\"table\" tabindex=\"0\">".into()));
                events.push(Event::Start(Tag::Table(columns)));
            }
            Event::End(TagEnd::Table) => {
                events.push(Event::End(TagEnd::Table));
                events.push(Event::Html("</div>".into()));
            }
            Event::Start(Tag::CodeBlock(_)) => {
                events.push(Event::Html("<pre tabindex=\"0\"><code>".into()));
            }
            Event::End(TagEnd::CodeBlock) => events.push(Event::Html("</code></pre>".into())),
            // Only comments are written in HTML.
            Event::Html(_) | Event::InlineHtml(_) => {}
            event => events.push(event),
        }
    }
    let mut html = String::new();
    html::push_html(&mut html, events.into_iter());
    let mut headings = all.into_iter();
    let title = headings.next().map(|heading| heading.text).unwrap_or_default();
    Page { title, html, headings: headings.collect() }
}

/// Where a link of a file leads. What is elsewhere stays as it is.
fn address(
    file: &str,
    to: &str,
    link: &impl Fn(&str, Option<&str>) -> Option<String>,
) -> Option<String> {
    match inner(file, to) {
        Some((target, fragment)) => link(&target, fragment.as_deref()),
        None => Some(to.to_owned()),
    }
}

/// The file below `docs` that a link of a file names, and what stands behind its `#`. `None`: the link
/// leads out of the project.
fn inner(file: &str, to: &str) -> Option<(String, Option<String>)> {
    if to.contains("://") || to.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) = match to.split_once('#') {
        Some((path, fragment)) => (path, Some(fragment.to_owned())),
        None => (to, None),
    };
    if path.is_empty() {
        return Some((file.to_owned(), fragment));
    }
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Some((parts.join("/"), fragment))
}

/// The links of a file to other files of the project.
#[cfg(test)]
pub(crate) fn links(file: &str, text: &str) -> Vec<(String, Option<String>)> {
    let dest = |event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url),
        _ => None,
    };
    parse(text).filter_map(dest).filter_map(|to| inner(file, &to)).collect()
}

pub(crate) fn headings(text: &str) -> Vec<Heading> {
    let mut found = Vec::new();
    let mut counts = BTreeMap::new();
    let mut open: Option<(u8, String)> = None;
    for event in parse(text) {
        match (event, &mut open) {
            (Event::Start(Tag::Heading { level, .. }), _) => {
                open = Some((level as u8, String::new()));
            }
            (Event::End(TagEnd::Heading(_)), _) => {
                let Some((level, text)) = open.take() else { continue };
                let slug = slug(&text);
                let count = counts.entry(slug.clone()).or_insert(0_u32);
                let unique = if *count == 0 { slug } else { format!("{slug}-{count}") };
                *count += 1;
                found.push(Heading { level, text, slug: unique });
            }
            (Event::Text(piece) | Event::Code(piece), Some((_, text))) => text.push_str(&piece),
            _ => {}
        }
    }
    found
}

/// What hosts of git make of a heading: small letters, digits and hyphens.
fn slug(text: &str) -> String {
    let kept = text.trim().chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c),
        _ => None,
    });
    kept.collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_headings_and_links() {
        let text = "# A page\n\nSee [b](../b.md#x-y), [out](https://example.com/), [gone](c.md).\n\n## `X` and: y\n\n<!-- no -->\n\n```sh\necho '<b>'\n```\n\n## X and y\n\n| a |\n|---|\n| 1 |\n";
        let made = page("in/a.md", text, |target, fragment| {
            (target == "b.md").then(|| format!("/docs/b#{}", fragment.unwrap_or_default()))
        });
        assert_eq!(made.title, "A page");
        let slugs: Vec<_> = made.headings.iter().map(|heading| heading.slug.as_str()).collect();
        assert_eq!(slugs, ["x-and-y", "x-and-y-1"]);
        for part in [
            "<a href=\"/docs/b#x-y\">b</a>",
            "<a href=\"https://example.com/\">out</a>, gone.",
            "<h2 id=\"x-and-y\"><code>X</code> and: y</h2>",
            "<pre tabindex=\"0\"><code>echo '&lt;b&gt;'",
            "<div class=\"table\" tabindex=\"0\"><table>",
        ] {
            assert!(made.html.contains(part), "{part}: {}", made.html);
        }
        assert!(!made.html.contains("<h1") && !made.html.contains("<!--"), "{}", made.html);
    }
}
