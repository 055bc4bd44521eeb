//! Finds the repository of an app.

use super::{Repositories, RepositoryClaim};
use crate::runtime::store::{Keyed, Store};
use contract::{AppId, Fault};

/// The connected repository of an app; `None` if none is connected.
pub(crate) fn connected(store: &Store, app: AppId) -> Result<Option<Keyed<Repositories>>, Fault> {
    store.held_by(&RepositoryClaim::App { app })
}
