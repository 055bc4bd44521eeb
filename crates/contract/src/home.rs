//! What a person sees first: what needs somebody, what is live, and what happened.

use crate::{
    AppId, Channel, EventId, InstanceId, Name, OrganizationId, Page, ProjectId, ReleaseId,
    Timestamp, UserId, VersionName,
    instances::{InstanceKind, InstanceState},
    operators::{Attention, Via},
    page::*,
    releases::ReleaseState,
    text::Query,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

functions! {
    group "Home";

    /// Read what the caller's apps do now: what needs somebody, what is live, and the instances.
    ///
    /// It covers the 100 newest apps that the caller may see.
    "svc_getHome": GetHome {} -> Home { who: User, effect: Read, person: true, cost: 5 }

    /// List what was changed in the caller's organizations, newest first.
    ///
    /// Who supervises an organization sees all of it, and others what they did and what happened in
    /// the projects that they work on.
    "svc_getActivity": GetActivity {
        /// Return only what happened in this organization.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        organization_id: Option<OrganizationId>,
        #[serde(default)]
        limit: Limit,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    } -> Page<Activity> { who: Member of (organization_id) or User, effect: Read, person: true }

    /// Find what the caller may see by a part of its name, or by its id.
    ///
    /// It looks at the 1,000 newest projects, apps and instances, and at the last releases and
    /// artifacts of the newest of these apps. What begins with the words comes first.
    "svc_search": Search {
        /// A part of a name in any case, or a whole id. Of several words, a name must have all.
        query: Query,
    } -> SearchResults { who: User, effect: Read, person: true, cost: 5 }
}

records! {
    /// What a person's apps do now.
    pub struct Home {
        /// What needs somebody, the most urgent entries first.
        attention: Vec<Attention>,
        /// The newest apps first.
        apps: Vec<HomeApp>,
    }

    /// An app, with what its users get and what serves it.
    pub struct HomeApp {
        id: AppId,
        /// What people call the app.
        name: Name,
        project_id: ProjectId,
        /// The name of the project that the app belongs to.
        project_name: Name,
        /// The release that users get now in each channel.
        live: Vec<LiveRelease>,
        /// The app's backend and market server, as far as it has them.
        instances: Vec<HomeInstance>,
    }

    /// The release that users of a channel get now.
    pub struct LiveRelease {
        id: ReleaseId,
        channel: Channel,
        /// The version of the release, such as `1.4.2`.
        version: VersionName,
        /// Where the release stands. It may still be on its way to more targets.
        state: ReleaseState,
        /// Since when users get it.
        since: Timestamp,
    }

    /// An instance of an app.
    pub struct HomeInstance {
        id: InstanceId,
        /// What people call the instance.
        name: Name,
        /// Whether it is a backend or a market server.
        kind: InstanceKind,
        /// Where the instance stands as a whole.
        state: InstanceState,
    }

    /// What a search found, the best first. At most 30.
    pub struct SearchResults {
        items: Vec<SearchResult>,
    }

    /// Something with the name that was searched for.
    pub struct SearchResult {
        /// The id of the object. That of a person is the id of their account.
        id: String,
        /// What was found, such as an app or a release.
        kind: SearchKind,
        /// The name, version or file name.
        name: String,
        /// The organization, project or app that it belongs to.
        within: Option<String>,
        /// The app of a release, an artifact or an instance.
        app_id: Option<AppId>,
        /// An organization of a person.
        organization_id: Option<OrganizationId>,
    }

    /// A change that somebody made.
    pub struct Activity {
        id: EventId,
        at: Timestamp,
        /// The function that was called.
        function: String,
        organization_id: OrganizationId,
        /// Null for the master key and for the service itself.
        user_id: Option<UserId>,
        /// The name of the user now. Null if there is no such account any more.
        user_name: Option<Name>,
        /// How the caller authenticated.
        via: Via,
        /// The id of the object.
        resource: String,
        /// What the object is called now. Null if it is gone, has no name, or is out of the caller's
        /// reach now.
        resource_name: Option<String>,
        /// The app that the object belongs to, if both are there and within reach.
        app_id: Option<AppId>,
        /// The name of that app now. Null if `appId` is null.
        app_name: Option<Name>,
    }
}

/// What a search can find.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum SearchKind {
    /// An app.
    App,
    /// A project.
    Project,
    /// A backend or a market server.
    Instance,
    /// A release, found by its version.
    Release,
    /// An artifact, found by its file name.
    Artifact,
    /// An organization.
    Organization,
    /// A member of one of the caller's organizations.
    Person,
}
