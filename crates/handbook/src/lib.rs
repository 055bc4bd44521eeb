//! The documentation in the folder `docs`, as the program carries it.
//!
//! `SUMMARY.md` names the chapters, for this crate as for mdBook. Pages are rendered without scripts; who
//! shows them says where their links lead.

#![warn(missing_docs)]

mod render;
mod summary;

pub use render::{Heading, Page};
pub use summary::{Chapter, Part};

use std::sync::LazyLock;

/// Each file is one row: its path below `docs`.
macro_rules! files {
    ($($path:literal,)+) => {
        const FILES: &[(&str, &str)] = &[$(($path, include_str!(concat!("../../../docs/", $path)))),+];
    };
}

files! {
    "concepts.md",
    "tutorials/server.md",
    "tutorials/expo.md",
    "tutorials/native.md",
    "tutorials/parse.md",
    "tutorials/shop.md",
    "REPOSITORIES.md",
    "BUILDS.md",
    "CREDENTIALS.md",
    "PUBLISHING.md",
    "stores/app-store.md",
    "stores/firebase-app-distribution.md",
    "stores/google-play.md",
    "stores/testflight.md",
    "DEPLOYING.md",
    "COMMERCE.md",
    "CHECKOUT.md",
    "PAYMENTS.md",
    "WEBHOOKS.md",
    "DASHBOARD.md",
    "OPERATING.md",
    "SCALING.md",
    "settings.md",
    "security.md",
    "troubleshooting.md",
    "CLIENTS.md",
    "commands.md",
    "moving/eas.md",
    "moving/back4app.md",
    "moving/coolify.md",
    "comparison.md",
    "ARCHITECTURE.md",
    "decisions/0001-one-committer-writes.md",
    "decisions/0002-artifacts-are-not-shared.md",
    "decisions/0003-reads-do-not-ask-owners.md",
    "decisions/0004-the-pointer-is-the-truth-of-a-channel.md",
    "decisions/0005-one-tree-under-the-kinds.md",
    "decisions/0006-an-instance-looks-before-it-acts.md",
    "decisions/0007-the-service-restarts-containers-itself.md",
    "decisions/0008-deployments-are-carried-out-by-the-instance.md",
    "decisions/0009-an-owner-keeps-its-own-queue.md",
    "decisions/0010-a-kind-is-a-row.md",
    "decisions/0011-what-is-stored-is-shown.md",
    "decisions/0012-a-release-belongs-to-no-job.md",
    "decisions/0013-an-event-is-written-with-its-change.md",
    "decisions/0014-a-publication-goes-step-by-step.md",
    "decisions/0015-a-payment-is-looked-up.md",
    "decisions/0016-the-dashboard-has-an-address-of-its-own.md",
    "decisions/0017-the-store-is-checked-before-it-opens.md",
    "decisions/0018-a-broken-store-needs-a-new-process.md",
    "decisions/0019-what-comes-next-follows-from-the-state.md",
    "decisions/0020-kinds-do-not-know-their-callers.md",
    "decisions/0021-walls-are-rules-of-the-machine.md",
    "decisions/0022-disk-is-measured-after-it-is-written.md",
    "decisions/0023-a-tenant-is-an-account.md",
    "decisions/0024-postgresql-judges.md",
    "decisions/0025-any-node-decides-one-acts.md",
    "decisions/0026-an-upload-is-a-row-of-segments.md",
    "decisions/0027-a-move-copies-volumes.md",
    "TESTING.md",
    "PERFORMANCE.md",
    "RELEASING.md",
}

/// The headings of each file, in the order of [`FILES`]: a search looks through all of them.
static HEADINGS: LazyLock<Vec<Vec<Heading>>> =
    LazyLock::new(|| FILES.iter().map(|(_, text)| render::headings(text)).collect());

static PARTS: LazyLock<Vec<Part>> =
    LazyLock::new(|| summary::read(include_str!("../../../docs/SUMMARY.md")));

/// The parts of the documentation, with their chapters.
pub fn parts() -> &'static [Part] {
    &PARTS
}

/// The page of a chapter, by its path without `.md`. `link` says where the link to another file of the
/// documentation leads, by its path below `docs` and what stands behind its `#`; `None` makes it plain
/// text.
pub fn page(path: &str, link: impl Fn(&str, Option<&str>) -> Option<String>) -> Option<Page> {
    let (file, text) = find(path)?;
    Some(render::page(file, text, link))
}

/// The headings of a chapter, by its path without `.md`.
pub fn headings(path: &str) -> &'static [Heading] {
    let at = FILES.iter().position(|(file, _)| file.strip_suffix(".md") == Some(path));
    at.and_then(|at| HEADINGS.get(at)).map_or(&[], Vec::as_slice)
}

/// What the list calls a file.
fn title_of(file: &str) -> Option<&'static str> {
    let mut chapters = parts().iter().flat_map(|part| &part.chapters);
    chapters.find(|chapter| chapter.file == file).map(|chapter| chapter.title.as_str())
}

fn find(path: &str) -> Option<(&'static str, &'static str)> {
    FILES.iter().copied().find(|(file, _)| file.strip_suffix(".md") == Some(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, path::Path};

    /// They are too long for a page of people who read: the program shows them function by function.
    const APART: [&str; 2] = ["REFERENCE.md", "EXAMPLES.md"];

    #[test]
    fn the_program_carries_every_chapter() {
        let chapters = parts().iter().flat_map(|part| &part.chapters);
        let named: BTreeSet<_> = chapters.map(|chapter| chapter.file.as_str()).collect();
        let carried: BTreeSet<_> = FILES.iter().map(|(file, _)| *file).chain(APART).collect();
        assert_eq!(named, carried);
    }

    #[test]
    fn every_link_leads_to_something() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let read = |file: &str| std::fs::read_to_string(docs.join(file)).unwrap_or_default();
        let has = |file: &str, slug: &str| {
            render::headings(&read(file)).iter().any(|heading| heading.slug == slug)
        };
        let mut broken = Vec::new();
        let mut links = 0;
        for (file, text) in FILES {
            for (target, fragment) in render::links(file, text) {
                links += 1;
                let is_there = docs.join(&target).exists();
                if !is_there || fragment.as_ref().is_some_and(|slug| !has(&target, slug)) {
                    broken.push(format!("{file}: {target}#{}", fragment.unwrap_or_default()));
                }
            }
        }
        assert!(links > 100 && broken.is_empty(), "{links} links, broken: {broken:#?}");
    }
}
