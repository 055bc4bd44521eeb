//! The API of `svc`: all cloud functions, endpoints, records, faults and ids.
//!
//! This crate has no I/O and no actors. The router, authorization, the OpenAPI document, the
//! reference and the command line derive from its declarations.

#![warn(missing_docs)]

#[macro_use]
pub mod function;
#[macro_use]
pub mod text;

pub mod announcements;
pub mod apps;
pub mod artifacts;
pub mod assertions;
mod attention;
pub mod authentication;
pub mod backend_instances;
pub mod backups;
pub mod builds;
pub mod certificates;
pub mod checkouts;
pub mod credentials;
pub mod deployments;
pub mod domains;
pub mod endpoint;
pub mod engines;
mod enums;
pub mod env;
pub mod example;
#[cfg(feature = "failpoints")]
pub mod failpoints;
pub mod fault;
pub mod fault_kind;
pub mod git_url;
pub mod glossary;
pub mod home;
pub mod id;
pub mod image_builds;
pub mod images;
pub mod instance_helpers;
pub mod instances;
pub mod list;
pub mod market_instances;
pub mod metadata;
pub mod money;
pub mod openapi;
pub mod operators;
pub mod organizations;
pub mod page;
pub mod params;
pub mod patch;
mod problems;
pub mod projects;
pub mod publishing;
pub mod quotas;
pub mod reference;
pub mod releases;
pub mod repositories;
pub mod retention;
pub mod runners;
pub mod service;
pub mod ssh;
pub mod standing;
mod targets;
pub mod templates;
pub mod time;
pub mod tokens;
pub mod trusted_publishers;
pub mod webhooks;

pub use fault::{Fault, FieldProblem};
pub use fault_kind::FaultKind;
pub use function::{Effect, Function, Operation, Prepared, Reply, Route, Server, Serves, Spec};
pub use id::*;
pub use list::BoundedSet;
pub use page::{Cursor, Limit, Page};
pub use patch::Patch;
pub use standing::{Requirement, Scope, ScopeRule, Standing, Subject};
pub use text::{
    Channel, Description, Email, Name, NewName, Notes, Password, PasswordAttempt, Sha256,
    VersionName, WebUrl,
};
pub use time::Timestamp;

macro_rules! groups {
    ($($module:ident),* $(,)?) => {
        /// The published groups of functions, in the order of the documentation.
        pub const PUBLISHED: &[function::Group] = &[$($module::GROUP),*];

        /// All groups that this build serves: the published ones, and in test builds the
        /// failpoints.
        pub const GROUPS: &[function::Group] = &[
            $($module::GROUP,)*
            #[cfg(feature = "failpoints")]
            failpoints::GROUP,
        ];

        /// A server that serves every function of every group.
        #[cfg(not(feature = "failpoints"))]
        pub trait ServesAll: $($module::Served +)* {}
        #[cfg(not(feature = "failpoints"))]
        impl<P: $($module::Served +)*> ServesAll for P {}

        /// A server that serves every function of every group.
        #[cfg(feature = "failpoints")]
        pub trait ServesAll: $($module::Served +)* failpoints::Served {}
        #[cfg(feature = "failpoints")]
        impl<P: $($module::Served +)* failpoints::Served> ServesAll for P {}

        /// The routes of every function.
        pub fn routes<P: ServesAll>() -> impl Iterator<Item = Route<P>> {
            let routes = [
                $($module::routes(),)*
                #[cfg(feature = "failpoints")]
                failpoints::routes(),
            ];
            routes.into_iter().flatten()
        }
    };
}

groups!(
    authentication,
    home,
    projects,
    organizations,
    apps,
    backend_instances,
    market_instances,
    instance_helpers,
    backups,
    deployments,
    domains,
    templates,
    images,
    image_builds,
    repositories,
    builds,
    runners,
    artifacts,
    releases,
    credentials,
    checkouts,
    tokens,
    trusted_publishers,
    webhooks,
    announcements,
    certificates,
    engines,
    operators,
    service,
);
const _: () = assertions::assert_names_are_unique(GROUPS);

/// All functions, in the order of the documentation.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    GROUPS.iter().flat_map(|group| group.functions)
}
