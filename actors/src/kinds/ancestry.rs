//! Finds the ancestors of an object by way of its parents.

use super::{
    hosting::instances::Instances,
    people::{organizations::Organizations, projects::Projects},
    table::Ancestry,
};
use crate::runtime::{
    resource::{Kept, Resource, Row},
    store::Store,
};
use contract::{Fault, InstanceId};
use store::Snapshot;

/// A kind with its place in an [`Ancestry`].
pub(crate) trait Located: Resource {
    fn place(ancestry: &mut Ancestry) -> &mut Option<(Self::Key, Snapshot<Self>)>;
    fn find_parent(
        ancestry: &mut Ancestry,
        store: &Store,
        state: &Self::State,
    ) -> Result<(), Fault>;
}

impl Ancestry {
    /// Finds a resource and its ancestors. A resource with a deleted ancestor is not found.
    pub(super) fn find<R: Located>(&mut self, store: &Store, id: R::Key) -> Result<(), Fault> {
        self.find_if::<R>(store, id, |kept| !kept.is_deleted())
    }

    /// Finds a deleted instance and its ancestors. One whose app is deleted has the organization to
    /// which it is left, and its project while that exists.
    pub(super) fn find_deleted_instance(
        &mut self,
        store: &Store,
        id: InstanceId,
    ) -> Result<(), Fault> {
        self.find_if::<Instances>(store, id, Kept::is_deleted)?;
        let (_, seen) = self.instance()?;
        let (project, left_to) = (seen.state.project_id, seen.state.left_to);
        let Some(organization) = left_to else { return Ok(()) };
        let found = match self.find::<Projects>(store, project) {
            Err(Fault::NotFound(_)) => self.find::<Organizations>(store, organization),
            found => found,
        };
        found.map_err(|fault| match fault {
            Fault::NotFound(_) => Fault::NotFound(Instances::NOUN),
            fault => fault,
        })
    }

    fn find_if<R: Located>(
        &mut self,
        store: &Store,
        id: R::Key,
        wanted: impl FnOnce(&Kept<R>) -> bool,
    ) -> Result<(), Fault> {
        let missing = Fault::NotFound(R::NOUN);
        let Some(seen) = store.get::<R>(&id)?.filter(|seen| wanted(seen)) else {
            return Err(missing);
        };
        match R::find_parent(self, store, &seen.state) {
            Err(Fault::NotFound(_)) => return Err(missing),
            found => found?,
        }
        *R::place(self) = Some((id, seen));
        Ok(())
    }
}
