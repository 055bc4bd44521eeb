//! Endpoints: everything that is not a cloud function, each at its own path. Each group of endpoints
//! has a module, and a line in [`GROUPS`].

#[macro_use]
mod tables;
mod declaration;
pub mod files;
pub mod install;
pub mod instances;
pub mod oidc;
pub mod operators;
pub mod payments;
pub mod pushes;
pub mod session_routes;
pub mod sources;
pub mod uploads;

pub use declaration::*;
pub use operators::{
    ActorsCheck, Checks, ClockCheck, EgressCheck, EngineCheck, Readiness, ReadyState, StoreCheck,
};
pub use uploads::{
    BuildOfRunner, CreateUploadUrl, DeclaredProvenance, FinalizeArtifact, FinalizeRequest,
    PART_SIZE, Received, ReleaseRequest, UploadUrl, UploadUrlRequest,
};

use crate::{Route, Server};

/// Lists the groups of endpoints, and who serves each:
///
/// - `platform`: the platform, through the same pipeline as functions;
/// - `edge`: the edge itself, at their paths;
/// - `other`: a part of the edge of its own. It passes requests on to instances, and answers those
///   session routes that are no operations.
macro_rules! groups {
    ($($(platform $p:ident::$platform:ident)? $(edge $e:ident::$edge:ident)? $(other $o:ident::$other:ident)?;)+) => {
        /// All groups of endpoints, in the order of the documentation.
        pub const GROUPS: &[EndpointGroup] = &[
            $($($p::$platform::GROUP,)? $($e::$edge::GROUP,)? $($o::$other::GROUP,)?)+
        ];

        /// The routes of every endpoint of the platform.
        pub fn routes<P: Server>() -> impl Iterator<Item = Route<P>>
        where
            $($($p::$platform: ServedBy<P>,)?)+
        {
            [$($($p::$platform::routes(),)?)+].into_iter().flatten()
        }

        /// The routes of every endpoint that the edge answers at its path.
        pub fn edge_routes<E: Edge>() -> impl Iterator<Item = EdgeRoute<E>>
        where
            $($($e::$edge: AnsweredBy<E>,)?)+
        {
            [$($($e::$edge::routes(),)?)+].into_iter().flatten()
        }
    };
}

groups! {
    platform uploads::Uploads;
    platform oidc::KeylessCi;
    platform sources::Folders;
    edge files::Transfers;
    edge sources::FolderArchives;
    edge install::InstallPages;
    edge payments::Payments;
    edge pushes::RepositoryWebhooks;
    other instances::Instances;
    platform session_routes::SessionOperations;
    other session_routes::SessionRoutes;
    edge operators::OperatorEndpoints;
}

/// All endpoints, in the order of the documentation.
pub fn all() -> impl Iterator<Item = &'static Endpoint> {
    GROUPS.iter().flat_map(|group| group.endpoints)
}

/// The prefix of function calls and session routes.
pub const BASE_PATH: &str = "/backend";

/// Whether a path belongs to functions or session routes.
#[allow(clippy::indexing_slicing, reason = "bounded by the loop; iterators are not const")]
pub const fn is_below_base(path: &str) -> bool {
    let (path, base) = (path.as_bytes(), BASE_PATH.as_bytes());
    let mut i = 0;
    while i < base.len() {
        if i >= path.len() || path[i] != base[i] {
            return false;
        }
        i += 1;
    }
    path.len() > base.len() && path[base.len()] == b'/'
}
