//! The menu at the side of each page: where everybody goes, and what the person works on.

use crate::{frame::SIGNED_IN, icon::Icon, response::Refused, visitor::Visitor};
use contract::{
    Limit,
    apps::ListApps,
    authentication::{Role, User},
    backend_instances::{GetBackendInstances, InstanceKinds},
    instances::InstanceKind,
    projects::Project,
};
use std::fmt::Display;

/// The most projects, and the most apps and instances of a project, that the menu shows.
const MOST: u16 = 6;

/// An entry of the menu.
pub struct Entry {
    pub icon: Icon,
    pub label: String,
    pub address: String,
}

impl Entry {
    fn new(icon: Icon, label: impl Display, address: impl Display) -> Entry {
        Entry { icon, label: label.to_string(), address: address.to_string() }
    }
}

/// What the person works on: their projects, or what is in the one that a page is about.
pub struct Work {
    pub heading: String,
    /// The address of the heading, if it has one.
    pub address: Option<String>,
    pub entries: Vec<Entry>,
}

/// The menu of a person.
pub struct Side {
    pub places: Vec<Entry>,
    pub work: Option<Work>,
    pub server: Vec<Entry>,
}

impl Side {
    /// The menu without what the person works on: nothing is called for it.
    pub fn of_user(user: &User) -> Side {
        let say = SIGNED_IN;
        let places = vec![
            Entry::new(Icon::Home, say.menu_home(), "/"),
            Entry::new(Icon::Folder, say.menu_projects(), "/projects"),
            Entry::new(Icon::People, say.menu_organizations(), "/organizations"),
            Entry::new(Icon::Pulse, say.menu_activity(), "/activity"),
        ];
        let operations = Entry::new(Icon::Gauge, say.menu_operations(), "/operations");
        let mut server = Vec::from_iter((user.role == Role::Superadmin).then_some(operations));
        server.push(Entry::new(Icon::Layers, say.menu_templates(), "/templates"));
        server.push(Entry::new(Icon::Book, say.menu_documentation(), "/docs"));
        server.push(Entry::new(Icon::Code, say.menu_reference(), "/reference"));
        Side { places, work: None, server }
    }

    /// Adds the newest projects of the person.
    pub async fn with_projects(self, visitor: &Visitor) -> Result<Side, Refused> {
        let projects = visitor.newest_projects(MOST).await?;
        let entry = |p: &Project| Entry::new(Icon::Folder, &p.name, format!("/projects/{}", p.id));
        let entries: Vec<_> = projects.iter().map(entry).collect();
        let heading = SIGNED_IN.menu_your_projects();
        let work = (!entries.is_empty()).then_some(Work { heading, address: None, entries });
        Ok(Side { work, ..self })
    }

    /// Adds the newest apps and instances of a project.
    pub async fn with_project(self, visitor: &Visitor, project: &Project) -> Result<Side, Refused> {
        let project_id = project.id;
        let at = format!("/projects/{project_id}");
        let apps = ListApps { project_id, query: None, limit: most(), cursor: None };
        let apps = visitor.read(&apps).await?.items;
        let instances = GetBackendInstances {
            project_id,
            kind: InstanceKinds::All,
            state: None,
            deleted: false,
            limit: most(),
            cursor: None,
        };
        let instances = visitor.read(&instances).await?.items;
        let app =
            |app: contract::apps::App| Entry::new(Icon::App, app.name, format!("/apps/{}", app.id));
        let mut entries: Vec<_> = apps.into_iter().map(app).collect();
        entries.extend(instances.into_iter().map(|instance| {
            let icon = match instance.kind {
                InstanceKind::Backend => Icon::Server,
                InstanceKind::Market => Icon::Cart,
            };
            Entry::new(icon, instance.name, format!("/instances/{}", instance.id))
        }));
        let settings = SIGNED_IN.menu_project_settings();
        entries.push(Entry::new(Icon::Sliders, settings, format!("{at}/settings")));
        let work = Work { heading: project.name.to_string(), address: Some(at), entries };
        Ok(Side { work: Some(work), ..self })
    }

    /// The entries, in their order.
    pub fn entries(self) -> impl Iterator<Item = Entry> {
        let work = self.work.into_iter().flat_map(|work| work.entries);
        self.places.into_iter().chain(work).chain(self.server)
    }

    /// The first of these addresses that is one of an entry.
    pub fn nearest<'a>(&self, addresses: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        let work = self.work.iter().flat_map(|work| &work.entries);
        let all: Vec<_> = self.places.iter().chain(work).chain(&self.server).collect();
        let is_entry = |at: &&str| *at == ACCOUNT || all.iter().any(|entry| entry.address == *at);
        addresses.into_iter().find(is_entry)
    }
}

/// The address of the account, which stands at the end of the menu.
pub const ACCOUNT: &str = "/account";

fn most() -> Limit {
    Limit::at_most(MOST)
}
