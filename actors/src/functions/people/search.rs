//! The search for things by their names.

use super::reach;
use crate::{
    call::{authz::memberships, context::Call, platform::Platform},
    kinds::{
        delivery::{artifacts::Artifacts, releases::Releases},
        hosting::instances::Instances,
        people::{
            accounts::Accounts, apps::Apps, organizations::Organizations, projects::Projects,
        },
        world::World,
    },
    runtime::{entries::Under, pagination, store::Store},
};
use contract::{
    AppId, Fault, OrganizationId, Serves, UserId,
    home::{Search, SearchKind, SearchResult, SearchResults},
};
use std::collections::HashSet;

/// The most projects, apps and instances that are looked at.
const MOST: usize = 1_000;
/// Of so many of the newest apps, the last releases and artifacts are looked at.
const APPS: usize = 100;
/// How many of the last releases, and of the last artifacts, of an app are looked at.
const LAST: usize = 20;
/// The most members of organizations that are looked at.
const PEOPLE: usize = 500;
/// The most results.
const RESULTS: usize = 30;

impl Serves<Search> for Platform {
    async fn serve(&self, cx: &Call, p: Search) -> Result<SearchResults, Fault> {
        let mut hits = Hits::of(p.query.as_str());
        look(&self.world, cx.user()?.id, &mut hits)?;
        Ok(SearchResults { items: hits.best() })
    }
}

fn look(world: &World, user: UserId, hits: &mut Hits) -> Result<(), Fault> {
    let store = &world.store;
    let projects = reach::projects(world, user, MOST)?;
    for project in &projects {
        let organization = || organization_name(store, project.organization_id);
        let id = project.id.to_string();
        hits.add(SearchKind::Project, id, project.name.as_str(), Of::Nothing, organization)?;
    }
    let of_projects: Vec<_> = projects.iter().map(|p| Under::<Projects>(p.id)).collect();
    let apps = reach::apps(world, projects, MOST)?;
    for (id, name, project) in &apps {
        let within = || Ok(Some(project.name.to_string()));
        hits.add(SearchKind::App, id.to_string(), name.as_str(), Of::Nothing, within)?;
    }
    for found in pagination::newest_of::<Instances, _>(store, &of_projects, None).take(MOST) {
        let (id, seen) = found?;
        if !seen.is_deleted() {
            let (app, within) = (seen.app_id, || app_name(store, seen.app_id));
            let id = id.to_string();
            hits.add(SearchKind::Instance, id, seen.name.as_str(), Of::App(app), within)?;
        }
    }
    for (app, name, _) in apps.iter().take(APPS) {
        let (of_app, within) = (Under::<Apps>(*app), || Ok(Some(name.to_string())));
        for found in store.newest::<Releases>(&of_app, None).take(LAST) {
            let (id, seen) = found?;
            if seen.is_deleted() {
                continue;
            }
            let version = seen.release.version.as_str();
            hits.add(SearchKind::Release, id.to_string(), version, Of::App(*app), within)?;
        }
        for found in store.newest::<Artifacts>(&of_app, None).take(LAST) {
            let (id, seen) = found?;
            if seen.is_deleted() {
                continue;
            }
            let file = seen.artifact.file_name.as_str();
            hits.add(SearchKind::Artifact, id.to_string(), file, Of::App(*app), within)?;
        }
    }
    let mut people = HashSet::new();
    for id in memberships(world, user)?.organizations.keys() {
        let Some(organization) = store.get::<Organizations>(id)? else { continue };
        hits.add(
            SearchKind::Organization,
            id.to_string(),
            organization.name.as_str(),
            Of::Nothing,
            || Ok(None),
        )?;
        for member in &organization.members {
            if people.len() >= PEOPLE || !people.insert(member.user) {
                continue;
            }
            let Some(account) = store.get::<Accounts>(&member.user)? else { continue };
            let (user, within) =
                (member.user.to_string(), || Ok(Some(organization.name.to_string())));
            hits.add(
                SearchKind::Person,
                user,
                account.name.as_str(),
                Of::Organization(*id),
                within,
            )?;
        }
    }
    Ok(())
}

fn organization_name(store: &Store, id: OrganizationId) -> Result<Option<String>, Fault> {
    Ok(store.get::<Organizations>(&id)?.map(|seen| seen.name.to_string()))
}

fn app_name(store: &Store, id: AppId) -> Result<Option<String>, Fault> {
    Ok(store.get::<Apps>(&id)?.map(|seen| seen.name.to_string()))
}

/// How well a name fits, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Whole,
    Begin,
    BeginOfWord,
    Part,
}

/// What an object is part of, where its page is found by that.
enum Of {
    Nothing,
    App(AppId),
    Organization(OrganizationId),
}

/// What was found so far.
struct Hits {
    /// The words in lower case, all of which a name must have.
    words: Vec<String>,
    query: String,
    found: Vec<(Fit, SearchResult)>,
}

impl Hits {
    fn of(query: &str) -> Hits {
        let words = query.split_whitespace().map(str::to_lowercase).collect();
        Hits { words, query: query.to_owned(), found: Vec::new() }
    }

    fn add(
        &mut self,
        kind: SearchKind,
        id: String,
        name: &str,
        of: Of,
        within: impl FnOnce() -> Result<Option<String>, Fault>,
    ) -> Result<(), Fault> {
        let Some(fit) = self.fit(&id, name) else { return Ok(()) };
        let (name, within) = (name.to_owned(), within()?);
        let (app_id, organization_id) = match of {
            Of::Nothing => (None, None),
            Of::App(app) => (Some(app), None),
            Of::Organization(organization) => (None, Some(organization)),
        };
        self.found.push((fit, SearchResult { id, kind, name, within, app_id, organization_id }));
        Ok(())
    }

    fn fit(&self, id: &str, name: &str) -> Option<Fit> {
        let name = name.to_lowercase();
        if id == self.query || name == self.query.to_lowercase() {
            return Some(Fit::Whole);
        }
        let first = self.words.first()?;
        if !self.words.iter().all(|word| name.contains(word)) {
            return None;
        }
        let begins = |text: &str| text.starts_with(first.as_str());
        let mut words = name.split(|c: char| !c.is_alphanumeric());
        Some(match (begins(&name), words.any(begins)) {
            (true, _) => Fit::Begin,
            (false, true) => Fit::BeginOfWord,
            (false, false) => Fit::Part,
        })
    }

    /// The best ones. Of those that fit equally well, apps come first, and the newest of a kind.
    fn best(mut self) -> Vec<SearchResult> {
        self.found.sort_by_key(|(fit, hit)| (*fit, hit.kind));
        self.found.truncate(RESULTS);
        self.found.into_iter().map(|(_, hit)| hit).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests say so by failing")]
mod tests {
    use super::{Fit, Hits};

    #[test]
    fn what_begins_with_the_words_is_first() {
        let fit = |query: &str, name: &str| Hits::of(query).fit("app_1", name);
        assert_eq!(fit("Shop", "shop"), Some(Fit::Whole));
        assert_eq!(fit("app_1", "Shop"), Some(Fit::Whole));
        assert_eq!(fit("sho", "Shop of Ada"), Some(Fit::Begin));
        assert_eq!(fit("ada sh", "Shop of Ada"), Some(Fit::BeginOfWord));
        assert_eq!(fit("op", "Shop"), Some(Fit::Part));
        assert_eq!(fit("shop two", "Shop"), None);
        assert_eq!(fit("1.4", "1.4.2"), Some(Fit::Begin));
        assert!(Fit::Whole < Fit::Part);
    }
}
